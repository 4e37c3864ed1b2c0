package pricing

import (
	"cmp"
	"slices"
	"time"

	"assay/internal/money"
)

// crossCheck compares the responses of a round with each other (step 5). It checks first
// responses together, then the levels of the other markets.
type crossCheck struct {
	now     time.Time
	prev    *Set
	names   int
	floor   Log // lowest price that takes part in checks
	markets []*entry
	split   bool // half of the markets contradict the others; see contest and isSplit

	residuals [][]Log // buffers of compare
}

// comparison is the result of comparing one market with the others of a pool.
type comparison struct {
	level  Log         // median of ln(price / median of the levelled prices of the others)
	names  int         // number of names compared
	far    money.Micro // share of names more than 3x away after levelling, in millionths
	farMax money.Micro // limit of far
}

// run refuses responses until the remaining ones do not contradict each other.
func (c *crossCheck) run() {
	for c.refuseFirst() {
	}
	c.split = c.split || c.isSplit()
	for c.refuseLevel() {
	}
	c.recordLevels()
}

// pool returns the markets to compare and their columns. The column of a market is its new
// response, or its last good response if the new one is missing or refused. If old is
// true, pool prefers the last good response.
func (c *crossCheck) pool(old bool) (entries []*entry, cols [][]Log) {
	for _, e := range c.markets {
		col := e.next
		if !e.new || e.refused(c.now) {
			col = e.last
		}
		if old && e.has {
			col = e.last
		}
		if col != nil && (e.new || c.now.Sub(e.lastAt) <= e.MaxAge) {
			entries, cols = append(entries, e), append(cols, col)
		}
	}
	return entries, cols
}

// compare compares the markets for which which returns true with all others of the pool. If own
// is true, it compares the new responses of these markets instead of their columns in the pool.
func (c *crossCheck) compare(entries []*entry, cols [][]Log, which func(*entry) bool, own bool) []comparison {
	n := len(entries)
	for len(c.residuals) < n {
		c.residuals = append(c.residuals, nil)
	}
	residuals := c.residuals[:n]
	levels := make([]Log, n)
	for k, e := range entries {
		levels[k] = c.prev.Market(e.ID).Level
		if residuals[k] = residuals[k][:0]; which(e) {
			residuals[k] = slices.Grow(residuals[k], quoted(cols[k]))
		}
	}
	value := func(k, i int) Log {
		if own {
			return at(entries[k].next, i)
		}
		return at(cols[k], i)
	}
	quotes, sorted := make([]Log, n), make([]Log, 0, n)
	for i := range c.names {
		sorted = sorted[:0]
		for k := range entries {
			quotes[k] = at(cols[k], i)
			if quotes[k] != none {
				quotes[k] -= levels[k]
				sorted = append(sorted, quotes[k])
			}
		}
		if len(sorted) == 0 {
			continue
		}
		slices.Sort(sorted)
		for k := range entries {
			if !which(entries[k]) {
				continue
			}
			x := value(k, i)
			if m, ok := medianWithout(sorted, quotes[k]); ok && x != none && m >= c.floor {
				residuals[k] = append(residuals[k], x-m)
			}
		}
	}
	out := make([]comparison, n)
	for k, res := range residuals {
		out[k] = newComparison(res)
	}
	return out
}

// medianWithout returns the median of sorted values without the given one. If value is
// none, it returns the median of all. It returns false if no values are left.
func medianWithout(sorted []Log, value Log) (Log, bool) {
	n := len(sorted)
	skip := n
	if value != none {
		skip, _ = slices.BinarySearch(sorted, value)
		n--
	}
	if n == 0 {
		return 0, false
	}
	rest := func(i int) int64 {
		if i >= skip {
			i++
		}
		return int64(sorted[i])
	}
	if n%2 == 1 {
		return Log(rest(n / 2)), true
	}
	return Log((rest(n/2-1) + rest(n/2)) >> 1), true
}

func newComparison(res []Log) comparison {
	p := comparison{names: len(res)}
	if len(res) < minShared {
		return p
	}
	p.level = middleOf(res)
	far := 0
	for _, x := range res {
		if abs(x-p.level) > log3 {
			far++
		}
	}
	p.far, p.farMax = share(far, len(res)), firstFar+deviation2(firstFar, len(res))
	return p
}

// refuseFirst compares the markets' first responses with the others and refuses the one that
// exceeds its limits most. It reports whether it refused one.
func (c *crossCheck) refuseFirst() bool {
	if !slices.ContainsFunc(c.markets, (*entry).isFirst) {
		return false
	}
	entries, cols := c.pool(false)
	found := c.compare(entries, cols, (*entry).isFirst, false)
	var bad []int
	for k := range found {
		if entries[k].isFirst() && found[k].exceeds() {
			bad = append(bad, k)
		}
	}
	if len(entries) == 1 && entries[0].isFirst() {
		entries[0].refusal = entries[0].first.refusal()
		return entries[0].refusal != nil
	}
	if c.contest(entries, cols, found, len(bad) > 0) {
		return true
	}
	if len(bad) == 0 {
		return c.checkWears(entries, found)
	}
	worst := slices.MaxFunc(bad, func(a, b int) int {
		return cmp.Or(cmp.Compare(found[a].excess(), found[b].excess()), cmp.Compare(entries[a].ID, entries[b].ID))
	})
	entries[worst].refusal = found[worst].refusal()
	return true
}

// contest refuses first responses if camps of equal size contradict each other, because no
// majority shows which camp is correct. It reports whether it refused one. It also sets
// split if a camp of two or more first responses contradicts the known markets and is at
// least as large. The known markets may then have been wrong from the beginning.
func (c *crossCheck) contest(entries []*entry, cols [][]Log, found []comparison, bad bool) bool {
	first, known := 0, slices.IndexFunc(entries, func(e *entry) bool { return !e.isFirst() })
	for _, e := range entries {
		if e.isFirst() {
			first++
		}
	}
	if first < 2 || known < 0 && !bad {
		return false
	}
	camp, rival := c.camps(entries, cols)
	size, top, equal := make([]int, len(entries)), 0, 0
	for _, of := range camp {
		size[of]++
	}
	for of, n := range size {
		doubts := n >= 2 && known >= 0 && of != camp[known] && n >= size[camp[known]] && rival[of] >= 0
		c.split = c.split || doubts
		if n > top {
			top, equal = n, 0
		}
		if n == top {
			equal++
		}
	}
	if equal < 2 || known >= 0 && top < 2 {
		return false
	}
	contested := false
	for k, e := range entries {
		if e.isFirst() && rival[k] >= 0 && (known < 0 || camp[k] != camp[known]) {
			f := found[k].refusal()
			f.Anomaly, f.Rival = Contested, entries[rival[k]].ID
			e.refusal, contested = f, true
		}
	}
	c.revokeMutual(entries, rival)
	return contested
}

// revokeMutual revokes the acceptances of two responses that contradict each other, because
// accepting both responses does not show which one is correct.
func (c *crossCheck) revokeMutual(entries []*entry, rival []int) {
	var both []*entry
	for k, e := range entries {
		if rival[k] >= 0 && e.accepted(c.now) && entries[rival[k]].accepted(c.now) {
			both = append(both, e)
		}
	}
	for _, e := range both {
		e.State.AcceptedAt = time.Time{}
	}
}

// camps divides the markets of a pool into camps. The number of a camp is the index of its
// first market. All known markets form one camp. A first response joins the camps of all
// responses that it does not contradict. For each market, camps returns its camp and the
// index of a market that it contradicts, or -1.
func (c *crossCheck) camps(entries []*entry, cols [][]Log) (camp, rival []int) {
	camp, rival = make([]int, len(entries)), make([]int, len(entries))
	for b := range entries {
		camp[b], rival[b] = b, -1
		for a := range b {
			together := !entries[a].isFirst() && !entries[b].isFirst()
			if !together {
				pair := c.compare([]*entry{entries[a], entries[b]}, [][]Log{cols[a], cols[b]}, func(e *entry) bool { return e == entries[b] }, false)
				if pair[1].exceeds() {
					rival[a], rival[b] = b, a
					continue
				}
				together = pair[1].names >= minShared
			}
			if from, to := max(camp[a], camp[b]), min(camp[a], camp[b]); together {
				for k := range b + 1 {
					if camp[k] == from {
						camp[k] = to
					}
				}
			}
		}
	}
	return camp, rival
}

// checkWears applies wearCheck to first responses that share too few names with the others. It
// reports whether it refused one.
func (c *crossCheck) checkWears(entries []*entry, found []comparison) bool {
	for k, e := range entries {
		if e.isFirst() && found[k].names < minShared {
			if e.refusal = e.first.refusal(); e.refusal != nil {
				return true
			}
		}
	}
	return false
}

func (p *comparison) exceeds() bool {
	return p.names >= minShared && (abs(p.level) > log4 || p.far > p.farMax)
}

// excess returns by how much a first response exceeds its limits, in millionths. It is the
// larger one of level / limit and far / limit.
func (p *comparison) excess() int64 {
	level := int64(abs(p.level)) * money.Scale / int64(log4)
	return max(level, int64(p.far)*money.Scale/max(1, int64(p.farMax)))
}

func (p *comparison) refusal() *Refusal {
	if abs(p.level) > log4 {
		return &Refusal{Anomaly: FirstLevel, Names: p.names, Value: Exp(p.level), Low: money.Scale / 4, High: 4 * money.Scale}
	}
	return &Refusal{Anomaly: FirstDispersion, Names: p.names, Value: p.far, High: p.farMax}
}

// refuseLevel refuses the response with the largest change of level. It reports whether it
// refused one. The level must have changed against both the current and the last responses
// of the others. Otherwise all markets moved together, or the others moved away from this
// one.
func (c *crossCheck) refuseLevel() bool {
	if !slices.ContainsFunc(c.markets, (*entry).isKnown) {
		return false
	}
	entries, cols := c.pool(false)
	if len(entries) < 3 {
		return false
	}
	now := c.compare(entries, cols, (*entry).isKnown, false)
	var worst *entry
	var far Log
	var why comparison
	for k, e := range entries {
		if !e.isKnown() || now[k].names < minShared || abs(now[k].level-e.State.Level) <= log1_5 {
			continue
		}
		past := c.againstLast(e)
		if past.names < minShared || abs(past.level-e.State.Level) <= log1_5 {
			continue
		}
		if d := abs(past.level - e.State.Level); worst == nil || d > far {
			worst, far, why = e, d, past
		}
	}
	if worst == nil {
		return false
	}
	worst.refusal = &Refusal{
		Anomaly: LevelChange, Names: why.names, Value: Exp(why.level - worst.State.Level),
		Low: money.Scale * 2 / 3, High: money.Scale * 3 / 2,
	}
	return true
}

// isSplit reports whether at least half of the markets contradict the others. A market
// contradicts the others if its response is refused, or if its level moved by more than
// 1.25x since it was learned. It is then unknown which half is correct.
func (c *crossCheck) isSplit() bool {
	entries, cols := c.pool(false)
	apart, levelled := map[*entry]bool{}, func(e *entry) bool { return e.has && e.State.Levelled }
	for k, p := range c.compare(entries, cols, levelled, false) {
		if e := entries[k]; levelled(e) && p.names >= minShared && abs(p.level-e.State.Level) > log1_25 {
			apart[e] = true
		}
	}
	known := 0
	for _, e := range c.markets {
		if e.has {
			known++
		}
		if e.has && (e.refused(c.now) || !e.State.RefusedSince.IsZero() && e.State.AcceptedAt.IsZero()) {
			apart[e] = true
		}
	}
	return len(apart) >= 2 && 2*len(apart) >= known
}

// againstLast compares the new response of a market with the last ones of the others.
func (c *crossCheck) againstLast(e *entry) comparison {
	entries, cols := c.pool(true)
	return c.compare(entries, cols, func(o *entry) bool { return o == e }, true)[slices.Index(entries, e)]
}

// recordLevels stores the level of each new response against the others.
func (c *crossCheck) recordLevels() {
	entries, cols := c.pool(false)
	if len(entries) < 2 {
		return
	}
	good := func(e *entry) bool { return e.new && !e.refused(c.now) }
	for k, p := range c.compare(entries, cols, good, false) {
		if e := entries[k]; p.names >= minShared {
			e.level, e.shared = p.level, p.names
			e.check.Level, e.check.LevelNames = Exp(p.level), p.names
		}
	}
}
