package pricing

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"assay/internal/money"
)

// Market is one market of a game, as one provider carries it, with what was
// learned of it in earlier rounds.
type Market struct {
	ID int64
	// ByName marks a market that is requested name by name. Its quotes are of many
	// moments, so it is never late, and its level is learned from quotes that were
	// fetched together with the last responses of the others.
	ByName  bool
	MaxAge  time.Duration // longest age of its last good response; 0: 24 h
	State   MarketState
	History History
}

// Round validates the responses of one run for one game, finds late markets and
// learns levels: steps 5 to 7. Add every market, then call Finish once. It keeps
// up to 24 bytes per name and market. The order of Add does not matter. It is for
// one goroutine.
type Round struct {
	now  time.Time
	prev *Set

	index   map[uint64]int32 // of a name, in the order of appearance
	keys    []uint64
	class   []Class
	markets []*entry

	torn    bool // half of the markets contradict the others: see contest and isTorn
	scratch [classes + 1][]Log
	week    []Log // of the market that is added: its prices of about a week ago
}

// NewRound begins a round at the time now; prev is the set of the last round, or
// NewSet's.
func NewRound(now time.Time, prev *Set) *Round {
	return &Round{now: now, prev: prev, index: map[uint64]int32{}}
}

// entry is what a round knows of one market. Columns hold the logarithm of a
// price in the base currency for each name, or none; they may be shorter than the
// list of names.
type entry struct {
	Market
	at      time.Time // of what counts: the new response or the last good one
	lastAt  time.Time
	has     bool // there is a last good response
	new     bool // there is a new response
	changed bool // and it differs from the last
	vouched bool // an operator accepted it

	last   []Log // last good response
	next   []Log // the new one
	before []Log // about a day ago: what moves are measured from
	daily  bool  // before is 20 to 30 h old, so that late markets can be found by it
	day2   []Log // 40 to 56 h ago
	oldest []Log // the oldest known one of each name, of the last eight days

	first    *wearCheck
	moves    [windows][classes]Log
	hasMoves [windows]bool
	newest   History // with the new response; nil: as it is stored
	damaged  bool    // the stored history is

	refusal  *Refusal
	check    Check
	level    Log // against the others, now
	shared   int // on how many names level rests
	anchor   Log // against the others at the levels that this round learned
	anchored bool
	late     bool
	repeats  int64
}

// Check holds the figures of one validation, for operators and metrics.
type Check struct {
	Names      int         // names in the response
	Shared     int         // names compared with the last response
	Ratio      money.Micro // median factor to it, in millionths; 0: not compared
	J          money.Micro // share of names that moved apart from their class, in millionths; -1: not compared
	JLimit     money.Micro
	Level      money.Micro // factor against the other markets, in millionths; 0: not compared
	LevelNames int
}

// Outcome is what a round decided about one market.
type Outcome struct {
	ID      int64
	Refusal *Refusal // nil: the new response is good, or there is none
	Late    bool
	Repeats int64 // the market that a late one repeats; 0: it stands still
	Check   Check
	State   MarketState // to be stored
	History History     // to be stored; nil: the stored one stays
}

// Result is what a round decided and learned.
type Result struct {
	Set     *Set
	Markets []Outcome // by ID
	Movers  Movers
}

// Add takes a market: its last good response, and the new one if it has responded
// in this run; either may be nil. It sorts and cleans their points (Normalize) and
// keeps nothing of them. A damaged history counts as empty and is the error; the
// market takes part all the same.
func (r *Round) Add(m Market, last, next *Response) error {
	m.MaxAge = cmp.Or(m.MaxAge, defaultMaxAge)
	e := &entry{Market: m, has: last != nil, new: next != nil}
	e.check.J = -1
	r.markets = append(r.markets, e)
	if last != nil {
		last.Normalize()
		e.at, e.lastAt = last.At, last.At
		e.last = r.column(last)
	}
	current := last
	if next != nil {
		next.Normalize()
		e.check.Names = len(next.Points)
		e.next, e.at = r.column(next), next.At
		e.changed = last == nil || !next.contained(last)
		current = next
		if e.refusal = r.alone(e, last, next); e.refusal == nil && last == nil {
			e.first = newWearCheck(next, r.floor())
		}
		if next.Partial {
			e.next = r.over(e.next, e.last)
		}
	}
	if current == nil {
		return nil
	}
	return r.compareHistory(e, last, current)
}

// floor is the logarithm of the lowest price that votes: 0.10 dollars.
func (r *Round) floor() Log { return Ln(max(1, r.prev.Unit/10)) }

// column returns the logarithms of a response by name.
func (r *Round) column(resp *Response) []Log {
	for _, p := range resp.Points {
		if _, ok := r.index[p.Key]; !ok {
			r.index[p.Key] = int32(len(r.keys))
			r.keys, r.class = append(r.keys, p.Key), append(r.class, p.Traits.Class)
		}
	}
	col := r.empty()
	offset := resp.offset()
	for _, p := range resp.Points {
		col[r.index[p.Key]] = Ln(p.Amount) + offset
	}
	return col
}

// over fills the gaps of one column from another.
func (r *Round) over(col, base []Log) []Log {
	for i, l := range base {
		if col[i] == none {
			col[i] = l
		}
	}
	return col
}

// empty returns a column without prices.
func (r *Round) empty() []Log { return r.emptied(nil) }

// emptied is empty in the memory of another column.
func (r *Round) emptied(col []Log) []Log {
	col = slices.Grow(col[:0], len(r.keys))[:len(r.keys)]
	for i := range col {
		col[i] = none
	}
	return col
}

// at returns a column's value; it may be shorter than the list of names.
func at(col []Log, i int) Log {
	if i < len(col) {
		return col[i]
	}
	return none
}

// Finish judges first responses and levels across markets, finds late markets,
// and learns the set. It calls pause between its steps, so that the caller can let
// other work go first. The round must not be used afterwards.
func (r *Round) Finish(pause func()) Result {
	slices.SortFunc(r.markets, func(a, b *entry) int { return cmp.Compare(a.ID, b.ID) })
	r.across()
	pause()
	for _, e := range r.markets {
		e.settle(r.now)
	}
	live := r.live()
	r.findLate(live)
	pause()
	used := slices.DeleteFunc(slices.Clone(live), func(e *entry) bool { return e.late })
	set := r.learn(used)
	pause()
	res := Result{Set: set, Movers: r.movers(live, used)}
	pause()
	for _, e := range r.markets {
		res.Markets = append(res.Markets, r.outcome(e, len(live)))
	}
	r.describe(set, res.Markets)
	return res
}

// settle makes the new response the one that counts, unless it was refused.
func (e *entry) settle(now time.Time) {
	if e.refusal != nil && e.State.accepts(e.refusal, now) {
		// Later responses are compared with this one, not with what it differs from.
		e.refusal, e.vouched, e.newest = nil, true, History{}
	}
	if e.new && e.refusal == nil {
		return
	}
	e.next, e.newest, e.at, e.changed = e.last, e.unchanged(), e.lastAt, false
	e.hasMoves = [windows]bool{}
}

// unchanged is the history to be stored of a market without a good new response: none,
// unless the stored one is damaged.
func (e *entry) unchanged() History {
	if e.damaged {
		return History{}
	}
	return nil
}

// live returns the markets whose response is fresh.
func (r *Round) live() []*entry {
	var out []*entry
	for _, e := range r.markets {
		if e.next != nil && (e.new && e.refusal == nil || r.now.Sub(e.lastAt) <= e.MaxAge) {
			out = append(out, e)
		}
	}
	return out
}

// outcome is what is to be stored of a market.
func (r *Round) outcome(e *entry, live int) Outcome {
	o := Outcome{
		ID: e.ID, Refusal: e.refusal, Late: e.late, Repeats: e.repeats,
		Check: e.check, State: e.State, History: e.newest,
	}
	s := &o.State
	s.J = slices.Clone(s.J)
	if r.torn {
		s.WideUntil = r.now.Add(suspectFor)
	}
	switch {
	case !e.new:
		return o
	case e.refusal != nil:
		if s.RefusedSince.IsZero() {
			s.RefusedSince = r.now
		}
		// What an operator accepted before was another response.
		s.Refused, s.AcceptedAt = *e.refusal, time.Time{}
		return o
	}
	s.RefusedSince, s.Refused, s.AcceptedAt = time.Time{}, Refusal{}, time.Time{}
	if e.changed {
		s.ChangedAt = e.at
	}
	if e.check.J >= 0 && !e.vouched {
		if s.J = append(s.J, e.check.J); len(s.J) > spreads {
			s.J = s.J[len(s.J)-spreads:]
		}
	}
	r.follow(e, s)
	if live < 3 && e.check.Ratio > 0 && abs(Ln(e.check.Ratio)-Ln(money.Scale)) > log1_35 {
		s.WideUntil = r.now.Add(suspectFor)
	}
	return o
}

// follow moves the remembered level towards the present one: by at most 2 % per
// response and 4 % per day, so that it stays where it was learned while a market
// runs away.
func (r *Round) follow(e *entry, s *MarketState) {
	s.Levelled = s.Levelled && !e.vouched
	switch {
	case s.Levelled:
	case e.anchored:
		s.Level, s.Levelled = e.anchor, true
		return
	case e.vouched && e.shared >= fewestShared:
		s.Level, s.Levelled = e.level, true
		return
	}
	if !s.Levelled || e.shared < fewestShared {
		return
	}
	const most, perDay = logOne / 50, logOne / 25
	gone := min(24*time.Hour, max(0, r.now.Sub(e.lastAt))) / time.Second // whole seconds: the product stays far below 2^63
	step := Log(min(int64(most), int64(perDay)*int64(gone)/int64(24*time.Hour/time.Second)))
	s.Level += max(-step, min(step, e.level-s.Level))
}

// noteAcceptance notes the moves that an operator accepted with a response, for as long
// as prices are compared with those from before it.
func (e *entry) noteAcceptance(now time.Time, m *SetMarket) {
	moved := func(l Log) bool { return abs(l) > log2 }
	switch {
	case e.vouched && e.hasMoves[SinceLast] && slices.ContainsFunc(e.moves[SinceLast][:], moved):
		m.AcceptedAt, m.AcceptedMoves = now, e.moves[SinceLast]
	case now.Sub(m.AcceptedAt) >= oldestReference:
		m.AcceptedAt, m.AcceptedMoves = time.Time{}, [classes]Log{}
	}
}

// describe copies into the set what prices are computed with beside levels.
// Markets that are not of this round keep their levels.
func (r *Round) describe(set *Set, outcomes []Outcome) {
	known := map[int64]SetMarket{}
	for _, m := range set.Markets {
		m.Late, m.Repeats = false, 0
		known[m.ID] = m
	}
	for k, o := range outcomes {
		m, ok := known[o.ID]
		if !ok {
			m = SetMarket{ID: o.ID, Far: -1}
		}
		m.Late, m.Repeats = o.Late, o.Repeats
		m.ChangedAt, m.WideUntil = o.State.ChangedAt, o.State.WideUntil
		r.markets[k].noteAcceptance(r.now, &m)
		known[o.ID] = m
	}
	set.Markets = set.Markets[:0]
	for _, id := range slices.Sorted(maps.Keys(known)) {
		set.Markets = append(set.Markets, known[id])
	}
}
