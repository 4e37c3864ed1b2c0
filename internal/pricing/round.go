package pricing

import (
	"cmp"
	"slices"
	"time"

	"assay/internal/money"
)

// Market is one market of a game from one provider, with its state from earlier rounds.
type Market struct {
	ID int64
	// ByName marks a market that is requested name by name. Its quotes have different
	// fetch times, so the market is never late. Its level is learned from stored quotes
	// and the last responses of the others.
	ByName  bool
	MaxAge  time.Duration // maximum age of the last good response; 0: 24 h
	State   ValidationState
	History History
}

// Round validates the responses of one run for one game, finds late markets and learns
// levels (steps 5 to 7). Call Add for every market in any order, then call Finish once. A
// Round uses up to 22 bytes per name and market. It is not safe for concurrent use.
type Round struct {
	now     time.Time
	prev    *Set
	floor   Log // lowest price that takes part in checks: 0.10 dollars
	names   columns
	markets []*entry
	split   bool // half of the markets contradict the others

	moves  moves   // buffer of Add for the moves of one market
	week   []Log   // buffer of Add for the prices of about a week ago
	ratios [][]Log // buffers of Add for the moves since each day of the last week
}

// NewRound starts a round at the time now. prev is the set of the last round, or the
// result of NewSet.
func NewRound(now time.Time, prev *Set) *Round {
	return &Round{now: now, prev: prev, floor: Ln(max(1, prev.Unit/10))}
}

// Check contains the figures of one validation, for operators and metrics.
type Check struct {
	Names           int         // names in the response
	Shared          int         // names compared with the last response
	Ratio           money.Micro // median factor to the last response, in millionths; 0: not compared
	Dispersion      money.Micro // share of names that moved by more than 2x relative to their class, in millionths; -1: not compared
	DispersionLimit money.Micro // limit of Dispersion, in millionths
	Level           money.Micro // median factor to the other markets, in millionths; 0: not compared
	LevelNames      int         // names compared for Level
}

// Outcome is the result of a round for one market.
type Outcome struct {
	ID      int64
	Refusal *Refusal // nil: the new response is good or missing
	Late    bool
	Repeats int64 // market that a late market repeats; 0: the late market stands still
	Check   Check
	State   ValidationState // the caller stores it
	History History         // the caller stores it; nil: unchanged
}

// Result is the result of a round.
type Result struct {
	Set     *Set
	Markets []Outcome // by ID
	Movers  Movers
}

// Add adds a market with its last good response and its new response. Both may be nil. Add
// normalizes the responses and does not retain them. It returns an error if the history is
// damaged. The market then takes part in the round without a history.
func (r *Round) Add(m Market, last, next *Response) error {
	m.MaxAge = cmp.Or(m.MaxAge, defaultMaxAge)
	e := &entry{Market: m, has: last != nil, new: next != nil}
	e.check.Dispersion = -1
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
		if e.refusal = r.checkAlone(e, last, next); e.refusal == nil && last == nil {
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

// Finish compares the markets with each other, finds late markets and learns the set. It
// calls pause between these steps, so that the caller can yield to other work. The Round
// must not be used afterwards.
func (r *Round) Finish(pause func()) Result {
	slices.SortFunc(r.markets, func(a, b *entry) int { return cmp.Compare(a.ID, b.ID) })
	r.moves, r.week, r.ratios, r.names.slots = moves{}, nil, nil, nil // frees the memory that only Add needs
	names := len(r.names.keys)
	cross := crossCheck{now: r.now, prev: r.prev, names: names, floor: r.floor, markets: r.markets}
	cross.run()
	r.split = cross.split
	pause()
	for _, e := range r.markets {
		e.resolve(r.now)
	}
	r.freeLast()
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

// freeLast frees the last good responses. The steps after crossCheck need them only if a market
// is requested by name.
func (r *Round) freeLast() {
	if slices.ContainsFunc(r.markets, func(e *entry) bool { return e.ByName }) {
		return
	}
	for _, e := range r.markets {
		e.last, e.lastSides = nil, nil
	}
}

// live returns the markets with a new or still fresh response.
func (r *Round) live() []*entry {
	return slices.DeleteFunc(slices.Clone(r.markets), func(e *entry) bool {
		return e.next == nil || (!e.new || e.refusal != nil) && r.now.Sub(e.lastAt) > e.MaxAge
	})
}

// outcome returns the result for a market. live is the number of live markets.
func (r *Round) outcome(e *entry, live int) Outcome {
	o := Outcome{
		ID: e.ID, Refusal: e.refusal, Late: e.late, Repeats: e.repeats,
		Check: e.check, State: e.State, History: e.newest,
	}
	s := &o.State
	s.Dispersions = slices.Clone(s.Dispersions)
	if r.split {
		s.MarketMovedUntil = r.now.Add(suspectFor)
	}
	switch {
	case !e.new:
		return o
	case e.refusal != nil:
		if s.RefusedSince.IsZero() {
			s.RefusedSince = r.now
		}
		// An earlier acceptance was for another response.
		s.Refused, s.AcceptedAt = *e.refusal, time.Time{}
		return o
	}
	s.RefusedSince, s.Refused, s.AcceptedAt = time.Time{}, Refusal{}, time.Time{}
	if e.changed {
		s.ChangedAt = e.at
	}
	if e.check.Dispersion >= 0 && !e.wasAccepted {
		if s.Dispersions = append(s.Dispersions, e.check.Dispersion); len(s.Dispersions) > keptDispersions {
			s.Dispersions = s.Dispersions[len(s.Dispersions)-keptDispersions:]
		}
	}
	r.follow(e, s)
	if live < 3 && e.check.Ratio > 0 && abs(Ln(e.check.Ratio)-Ln(money.Scale)) > log1_35 {
		s.MarketMovedUntil = r.now.Add(suspectFor)
	}
	return o
}

// follow moves the stored level towards the current one, by at most 2 % per response and 4 %
// per day. So if a market drifts away faster, its distance from the stored level grows until
// the check of the level refuses its response.
func (r *Round) follow(e *entry, s *ValidationState) {
	s.Levelled = s.Levelled && !e.wasAccepted
	switch {
	case s.Levelled:
	case e.anchored:
		s.Level, s.Levelled = e.anchor, true
		return
	case e.wasAccepted && e.shared >= minShared:
		s.Level, s.Levelled = e.level, true
		return
	}
	if !s.Levelled || e.shared < minShared {
		return
	}
	const most, perDay = logOne / 50, logOne / 25
	gone := min(24*time.Hour, max(0, r.now.Sub(e.lastAt))) / time.Second // in seconds, so that the product below cannot overflow
	step := Log(min(int64(most), int64(perDay)*int64(gone)/int64(24*time.Hour/time.Second)))
	s.Level += max(-step, min(step, e.level-s.Level))
}

// describe copies the outcomes of the markets to the set. Markets that are not part of the
// round keep their levels.
func (r *Round) describe(set *Set, outcomes []Outcome) {
	for i := range set.Markets {
		set.Markets[i].Late, set.Markets[i].Repeats = false, 0
	}
	for k, o := range outcomes {
		set.put(SetMarket{ID: o.ID, Far: -1})
		m := set.market(o.ID)
		m.Late, m.Repeats = o.Late, o.Repeats
		m.ChangedAt, m.MarketMovedUntil = o.State.ChangedAt, o.State.MarketMovedUntil
		r.markets[k].recordAcceptance(r.now, m)
	}
}
