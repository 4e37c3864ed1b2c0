package pricing

import (
	"cmp"
	"slices"
	"time"

	"assay/internal/money"
)

// peers compares one market with the others of a pool.
type peers struct {
	level  Log         // median of ln(price / median of the others' levelled prices)
	names  int         // on how many names it rests
	far    money.Micro // share of names beyond 3x after levelling, in millionths
	farMax money.Micro
	rivals int // markets it was compared with
}

// across judges first responses together, and then the levels of the others.
func (r *Round) across() {
	for r.worstFirst() {
	}
	r.torn = r.torn || r.isTorn()
	for r.worstLevel() {
	}
	r.noteLevels()
}

// pool lists what counts while responses are judged: each market's new response,
// or its last good one if that was refused. With old, the last good ones only.
func (r *Round) pool(old bool) (entries []*entry, cols [][]Log) {
	for _, e := range r.markets {
		col := e.next
		if e.refusal != nil && !e.State.accepts(e.refusal, r.now) || !e.new {
			col = e.last
		}
		if old && e.has {
			col = e.last
		}
		if col != nil && (e.new || r.now.Sub(e.lastAt) <= e.MaxAge) {
			entries, cols = append(entries, e), append(cols, col)
		}
	}
	return entries, cols
}

// compare holds each of some markets against all others of the pool. With own,
// the markets' new responses are held against the pool's other columns.
func (r *Round) compare(entries []*entry, cols [][]Log, which func(*entry) bool, own bool) []peers {
	n := len(entries)
	residuals := make([][]Log, n)
	levels := make([]Log, n)
	for k, e := range entries {
		levels[k] = r.prev.Market(e.ID).Level
		if which(e) {
			residuals[k] = make([]Log, 0, len(r.keys))
		}
	}
	floor := r.floor()
	value := func(k, i int) Log {
		if own {
			return at(entries[k].next, i)
		}
		return at(cols[k], i)
	}
	quotes, sorted := make([]Log, n), make([]Log, 0, n)
	for i := range r.keys {
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
			if m, ok := medianWithout(sorted, quotes[k]); ok && x != none && m >= floor {
				residuals[k] = append(residuals[k], x-m)
			}
		}
	}
	out := make([]peers, n)
	for k, res := range residuals {
		out[k] = judge(res)
		out[k].rivals = n - 1
	}
	return out
}

// medianWithout returns the median of sorted values without one of them, or of
// all where that one is none.
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

func judge(res []Log) peers {
	p := peers{names: len(res)}
	if len(res) < fewestShared {
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

// isFirst reports whether a market's first response is not refused yet.
func (e *entry) isFirst() bool { return e.new && !e.has && e.refusal == nil }

// worstFirst refuses the first response that is furthest from the others, and
// reports whether it refused one.
func (r *Round) worstFirst() bool {
	if !slices.ContainsFunc(r.markets, (*entry).isFirst) {
		return false
	}
	entries, cols := r.pool(false)
	found := r.compare(entries, cols, (*entry).isFirst, false)
	var bad []int
	for k := range found {
		if entries[k].isFirst() && found[k].bad() {
			bad = append(bad, k)
		}
	}
	if len(entries) == 1 && entries[0].isFirst() {
		entries[0].refusal = entries[0].first.refusal()
		return entries[0].refusal != nil
	}
	if r.contest(entries, cols, found, len(bad) > 0) {
		return true
	}
	if len(bad) == 0 {
		return r.alike(entries, found)
	}
	worst := slices.MaxFunc(bad, func(a, b int) int {
		return cmp.Or(cmp.Compare(found[a].badness(), found[b].badness()), cmp.Compare(entries[a].ID, entries[b].ID))
	})
	entries[worst].refusal = found[worst].refusal()
	return true
}

// contest refuses first responses of which equally many contradict each other, and
// reports whether it refused one: no majority shows which are right. Two or more that
// agree with each other also doubt as many known markets that they contradict, or
// fewer: those may have been wrong from the beginning.
func (r *Round) contest(entries []*entry, cols [][]Log, found []peers, bad bool) bool {
	first, known := 0, slices.IndexFunc(entries, func(e *entry) bool { return !e.isFirst() })
	for _, e := range entries {
		if e.isFirst() {
			first++
		}
	}
	if first < 2 || known < 0 && !bad {
		return false
	}
	camp, rival := r.camps(entries, cols)
	size, top, equal := make([]int, len(entries)), 0, 0
	for _, c := range camp {
		size[c]++
	}
	for c, n := range size {
		doubts := n >= 2 && known >= 0 && c != camp[known] && n >= size[camp[known]] && rival[c] >= 0
		r.torn = r.torn || doubts
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
			f.Anomaly, f.Rival = Contradicted, entries[rival[k]].ID
			e.refusal, contested = f, true
		}
	}
	r.voidBoth(entries, rival)
	return contested
}

// voidBoth voids the acceptance of both sides of a contradiction: it does not say which
// is right, and between them there is no price.
func (r *Round) voidBoth(entries []*entry, rival []int) {
	var both []*entry
	accepted := func(e *entry) bool { return e.refusal != nil && e.State.accepts(e.refusal, r.now) }
	for k, e := range entries {
		if rival[k] >= 0 && accepted(e) && accepted(entries[rival[k]]) {
			both = append(both, e)
		}
	}
	for _, e := range both {
		e.State.AcceptedAt = time.Time{}
	}
}

// camps divides the markets of a pool into camps, each named by its first market: known
// markets are one camp, and a first response is of the camp of every response that it
// does not contradict. It returns each market's camp, and one that it contradicts or -1.
func (r *Round) camps(entries []*entry, cols [][]Log) (camp, rival []int) {
	camp, rival = make([]int, len(entries)), make([]int, len(entries))
	for b := range entries {
		camp[b], rival[b] = b, -1
		for a := range b {
			together := !entries[a].isFirst() && !entries[b].isFirst()
			if !together {
				pair := r.compare([]*entry{entries[a], entries[b]}, [][]Log{cols[a], cols[b]}, func(e *entry) bool { return e == entries[b] }, false)
				if pair[1].bad() {
					rival[a], rival[b] = b, a
					continue
				}
				together = pair[1].names >= fewestShared
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

// alike checks the wears of a first response that shares too few names with the
// others to be compared with them.
func (r *Round) alike(entries []*entry, found []peers) bool {
	for k, e := range entries {
		if e.isFirst() && found[k].names < fewestShared {
			if e.refusal = e.first.refusal(); e.refusal != nil {
				return true
			}
		}
	}
	return false
}

func (p *peers) bad() bool {
	return p.names >= fewestShared && (abs(p.level) > log4 || p.far > p.farMax)
}

// badness grades how far beyond its limits a first response is, in millionths.
func (p *peers) badness() int64 {
	level := int64(abs(p.level)) * money.Scale / int64(log4)
	return max(level, int64(p.far)*money.Scale/max(1, int64(p.farMax)))
}

func (p *peers) refusal() *Refusal {
	if abs(p.level) > log4 {
		return &Refusal{Anomaly: FirstLevel, Names: p.names, Value: Exp(p.level), Low: money.Scale / 4, High: 4 * money.Scale}
	}
	return &Refusal{Anomaly: FirstDispersion, Names: p.names, Value: p.far, High: p.farMax}
}

// isKnown reports whether a market's new response can be held against its own
// remembered level.
func (e *entry) isKnown() bool { return e.new && e.has && e.refusal == nil && e.State.Levelled }

// worstLevel refuses the response whose level moved furthest, and reports whether
// it refused one. It must have moved both against what the others quote now and
// against what they quoted last: where all move together, or the others move away
// from one, its level did not change.
func (r *Round) worstLevel() bool {
	if !slices.ContainsFunc(r.markets, (*entry).isKnown) {
		return false
	}
	entries, cols := r.pool(false)
	if len(entries) < 3 {
		return false
	}
	now := r.compare(entries, cols, (*entry).isKnown, false)
	var worst *entry
	var far Log
	var why peers
	for k, e := range entries {
		if !e.isKnown() || now[k].names < fewestShared || abs(now[k].level-e.State.Level) <= log1_5 {
			continue
		}
		past := r.againstLast(e)
		if past.names < fewestShared || abs(past.level-e.State.Level) <= log1_5 {
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

// isTorn reports whether half of the markets or more contradict the others: their
// responses are refused, or their level moved by more than 1.25x since it was learned.
// Nothing shows which of the two halves moved away from the truth.
func (r *Round) isTorn() bool {
	entries, cols := r.pool(false)
	apart, levelled := map[*entry]bool{}, func(e *entry) bool { return e.has && e.State.Levelled }
	for k, p := range r.compare(entries, cols, levelled, false) {
		if e := entries[k]; levelled(e) && p.names >= fewestShared && abs(p.level-e.State.Level) > log1_25 {
			apart[e] = true
		}
	}
	known := 0
	for _, e := range r.markets {
		if e.has {
			known++
		}
		refused := e.refusal != nil && !e.State.accepts(e.refusal, r.now)
		if e.has && (refused || !e.State.RefusedSince.IsZero() && e.State.AcceptedAt.IsZero()) {
			apart[e] = true
		}
	}
	return len(apart) >= 2 && 2*len(apart) >= known
}

// againstLast holds a market's new response against the others' last ones.
func (r *Round) againstLast(e *entry) peers {
	entries, cols := r.pool(true)
	return r.compare(entries, cols, func(o *entry) bool { return o == e }, true)[slices.Index(entries, e)]
}

// noteLevels notes each market's level against the others that count.
func (r *Round) noteLevels() {
	entries, cols := r.pool(false)
	if len(entries) < 2 {
		return
	}
	good := func(e *entry) bool { return e.new && (e.refusal == nil || e.State.accepts(e.refusal, r.now)) }
	for k, p := range r.compare(entries, cols, good, false) {
		if e := entries[k]; p.names >= fewestShared {
			e.level, e.shared = p.level, p.names
			e.check.Level, e.check.LevelNames = Exp(p.level), p.names
		}
	}
}
