package pricing

import (
	"cmp"
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
	now     time.Time
	prev    *Set
	floor   Log // the lowest price that votes: 0.10 dollars
	names   columns
	markets []*entry
	split   bool // half of the markets contradict the others

	moves moves // of the market that is added
	week  []Log // its prices of about a week ago
}

// NewRound begins a round at the time now; prev is the set of the last round, or
// NewSet's.
func NewRound(now time.Time, prev *Set) *Round {
	return &Round{now: now, prev: prev, floor: Ln(max(1, prev.Unit/10)), names: columns{index: map[uint64]int32{}}}
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
		e.last = r.names.of(last)
	}
	current := last
	if next != nil {
		next.Normalize()
		e.check.Names = len(next.Points)
		e.next, e.at = r.names.of(next), next.At
		e.changed = last == nil || !next.contained(last)
		current = next
		if e.refusal = r.alone(e, last, next); e.refusal == nil && last == nil {
			e.first = newWearCheck(next, r.floor)
		}
		if next.Partial {
			fill(e.next, e.last)
		}
	}
	if current == nil {
		return nil
	}
	return r.compareHistory(e, last, current)
}

// Finish compares the markets with each other, finds late ones, and learns the set. It
// calls pause between its steps, so that the caller can let other work go first. The round
// must not be used afterwards.
func (r *Round) Finish(pause func()) Result {
	slices.SortFunc(r.markets, func(a, b *entry) int { return cmp.Compare(a.ID, b.ID) })
	names := len(r.names.keys)
	cross := crossCheck{now: r.now, prev: r.prev, names: names, floor: r.floor, markets: r.markets}
	cross.run()
	r.split = cross.split
	pause()
	for _, e := range r.markets {
		e.settle(r.now)
	}
	live := r.live()
	late := lateCheck{prev: r.prev, names: names, floor: r.floor}
	late.findLate(live)
	pause()
	used := slices.DeleteFunc(slices.Clone(live), func(e *entry) bool { return e.late })
	l := learner{set: r.prev.clone(), names: &r.names}
	l.learn(used)
	pause()
	res := Result{Set: l.set, Movers: newMovers(r.names.keys, live, used)}
	pause()
	for _, e := range r.markets {
		res.Markets = append(res.Markets, r.outcome(e, len(live)))
	}
	r.describe(res.Set, res.Markets)
	return res
}

// live returns the markets whose response is fresh.
func (r *Round) live() []*entry {
	return slices.DeleteFunc(slices.Clone(r.markets), func(e *entry) bool {
		return e.next == nil || (!e.new || e.refusal != nil) && r.now.Sub(e.lastAt) > e.MaxAge
	})
}

// outcome is what is to be stored of a market.
func (r *Round) outcome(e *entry, live int) Outcome {
	o := Outcome{
		ID: e.ID, Refusal: e.refusal, Late: e.late, Repeats: e.repeats,
		Check: e.check, State: e.State, History: e.newest,
	}
	s := &o.State
	s.J = slices.Clone(s.J)
	if r.split {
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

// describe copies into the set what prices are computed with beside levels.
// Markets that are not of this round keep their levels.
func (r *Round) describe(set *Set, outcomes []Outcome) {
	for i := range set.Markets {
		set.Markets[i].Late, set.Markets[i].Repeats = false, 0
	}
	for k, o := range outcomes {
		set.put(SetMarket{ID: o.ID, Far: -1})
		m := set.market(o.ID)
		m.Late, m.Repeats = o.Late, o.Repeats
		m.ChangedAt, m.WideUntil = o.State.ChangedAt, o.State.WideUntil
		r.markets[k].noteAcceptance(r.now, m)
	}
}
