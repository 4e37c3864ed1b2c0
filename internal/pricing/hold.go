package pricing

import (
	"time"

	"assay/internal/money"
)

const (
	suspectFor     = 24 * time.Hour
	suspectForLong = 30 * 24 * time.Hour // a rise of 5x or more on one market

	// EvidenceAfter is how much later than the last reading a response must have
	// changed to be evidence for a price that is held.
	EvidenceAfter = 30 * time.Minute
	// LoneWait is how long a move of 5x or more on one market is held at least.
	LoneWait = 24 * time.Hour

	oldestReference = 7 * 24 * time.Hour
)

// Reference is an accepted price of an item, and the moment that it is of.
type Reference struct {
	Price money.Micro // 0: none
	At    time.Time
}

// References are what a new price is compared with (step 11), from the price
// history: the price in force 24 hours and 7 days before, or the oldest known one
// if the history is shorter. Week is none for a history of less than 48 hours.
type References struct {
	Day, Week Reference
}

// Side is the direction of a move.
type Side int8

// The directions.
const (
	Fall Side = -1
	Rise Side = 1
)

// HeldPrice is a price that is held back. The zero value is none.
type HeldPrice struct {
	Candidate  money.Micro // the least extreme reading since it was held; 0: nothing is held
	Side       Side
	At         time.Time // when it was first held
	EvidenceAt time.Time // of the last reading that was evidence
	Readings   int       // readings that were evidence since then
}

// State is what is remembered of an item between estimates.
type State struct {
	Price        money.Micro // last accepted price, 0: none
	Held         HeldPrice
	ReleasedAt   time.Time // older references are ignored
	SuspectUntil time.Time
	LoneUntil    time.Time // suspect until then unless two quotes support the price
}

// Decision is what the guard did with an estimate.
type Decision string

// The decisions.
const (
	Accepted    Decision = ""            // within the limits
	TakenAtOnce Decision = "takenAtOnce" // beyond them, with two markets that moved themselves
	HeldBack    Decision = "held"
	Released    Decision = "released" // held before, with new evidence now
)

// Move is a comparison of a new price with its references.
type Move struct {
	Decision   Decision    `json:"decision,omitzero"`
	Window     Window      `json:"window"`          // the reference with the largest move beyond its limit
	Reference  money.Micro `json:"reference"`       // its price; 0: no move is beyond its limit
	Factor     money.Micro `json:"factor"`          // the move beyond the class's own, in millionths
	ClassMove  money.Micro `json:"classMove"`       // the class's own move that was allowed for, in millionths
	Supporters int         `json:"supporters"`      // used quotes within 1.5x of the new price
	Moved      int         `json:"moved"`           // of them, those that moved at least half of the way themselves
	Needed     int         `json:"needed,omitzero"` // changed responses that a release needs, of a held price
}

// evidence is what the quotes show about a move.
type evidence struct {
	price     money.Micro
	majority  bool
	supporter []support
}

type support struct {
	moved     Log
	changedAt time.Time
}

// Limit returns the factor beyond which a move is guarded, in millionths.
func (w Window) Limit() money.Micro {
	if w == SinceWeek {
		return 3 * money.Scale
	}
	return 2 * money.Scale
}

// String returns what the window begins with: "last" (price), "day" or "week".
func (w Window) String() string {
	switch w {
	case SinceDay:
		return "day"
	case SinceWeek:
		return "week"
	default:
		return "last"
	}
}

// limit is Window.Limit as a logarithm.
func limit(w Window) Log {
	if w == SinceWeek {
		return log3
	}
	return log2
}

// worst finds the largest move beyond a limit. The class's own move excuses a
// move and never accuses one.
func worst(price money.Micro, s *State, refs References, moves *[windows][classes]Log, c Class) (Move, Log) {
	var found Move
	var most Log
	for w, ref := range [windows]Reference{{Price: s.Price}, refs.Day, refs.Week} {
		if ref.Price <= 0 || (Window(w) != SinceLast && ref.At.Before(s.ReleasedAt)) {
			continue
		}
		x, class := Ln(price)-Ln(ref.Price), moves[w][c]
		if without := x - class; abs(without) < abs(x) {
			x = without
		} else {
			class = 0
		}
		if abs(x) > limit(Window(w)) && abs(x) > abs(most) {
			most = x
			found = Move{Window: Window(w), Reference: ref.Price, Factor: Exp(x), ClassMove: Exp(class)}
		}
	}
	return found, most
}

// guard decides whether a new price counts, and updates the state (step 11). It returns
// the price that counts.
func (s *State) guard(now time.Time, ev *evidence, m *Move, move Log, hold bool) money.Micro {
	if m.Reference == 0 {
		s.Held = HeldPrice{}
		return ev.price
	}
	m.Supporters = len(ev.supporter)
	side := Rise
	if move < 0 {
		side = Fall
	}
	s.SuspectUntil = now.Add(suspectFor)
	if side == Rise && move >= log5 && m.Supporters < 2 {
		s.LoneUntil = now.Add(suspectForLong)
	}
	for _, v := range ev.supporter {
		if 2*int64(v.moved)*int64(side) >= int64(abs(move)) {
			m.Moved++
		}
	}
	if ev.majority && m.Moved >= 2 && !hold {
		m.Decision, s.Held, s.ReleasedAt = TakenAtOnce, HeldPrice{}, now
		return ev.price
	}
	if m.Needed = 1; abs(move) >= log5 && m.Supporters < 2 {
		m.Needed = 2
	}
	if s.Held.reads(now, ev, side) && s.Held.Readings >= m.Needed && (m.Needed == 1 || now.Sub(s.Held.At) >= LoneWait) {
		price := s.Held.Candidate
		m.Decision, s.Held, s.ReleasedAt = Released, HeldPrice{}, now
		return price
	}
	m.Decision = HeldBack
	if s.Price <= 0 {
		return ev.price
	}
	return s.Price
}

// reads adds a reading to the hold, or begins one. It reports whether the reading
// is evidence: a supporter's response that changed 30 minutes or more after the
// last one that was. A response that changed earlier and is read again is none.
func (h *HeldPrice) reads(now time.Time, ev *evidence, side Side) bool {
	if h.Candidate <= 0 || h.Side != side {
		*h = HeldPrice{Candidate: ev.price, Side: side, At: now, EvidenceAt: now}
		return false
	}
	if (side == Rise) == (ev.price < h.Candidate) {
		h.Candidate = ev.price
	}
	for _, v := range ev.supporter {
		if !v.changedAt.Before(h.EvidenceAt.Add(EvidenceAfter)) {
			h.Readings++
			h.EvidenceAt = now
			return true
		}
	}
	return false
}

// pending reports whether a time that was set at most so far ahead is still to come. One
// that is further ahead was set by a clock that has been set back since.
func pending(now, until time.Time, most time.Duration) bool {
	left := until.Sub(now)
	return left > 0 && left <= most
}

// forget drops times that no longer matter, so that nothing is stored of an item
// whose price has been quiet for a week.
func (s *State) forget(now time.Time) {
	if !pending(now, s.SuspectUntil, suspectFor) {
		s.SuspectUntil = time.Time{}
	}
	if !pending(now, s.LoneUntil, suspectForLong) {
		s.LoneUntil = time.Time{}
	}
	if now.Sub(s.ReleasedAt) >= oldestReference {
		s.ReleasedAt = time.Time{}
	}
}

// ReferencesOf returns what a price is compared with at a time: first is the oldest
// accepted price, day and week those that were in force 24 hours and 7 days before
// (0: none was yet).
func ReferencesOf(now time.Time, first Reference, day, week money.Micro) References {
	const oneDay = 24 * time.Hour
	var r References
	if first.Price <= 0 {
		return r
	}
	if r.Day = first; day > 0 {
		r.Day = Reference{day, now.Add(-oneDay)}
	}
	if now.Sub(first.At) < 2*oneDay {
		return r
	}
	if r.Week = first; week > 0 {
		r.Week = Reference{week, now.Add(-oldestReference)}
	}
	return r
}

// Range holds all accepted prices of an item of at least the last week. While a new
// price is within 2x of both ends, its references cannot matter and need not be
// read. The zero value is unknown.
type Range struct{ Low, High money.Micro }

// Near reports whether a price is within 2x of the whole range.
func (r Range) Near(price money.Micro) bool {
	const limit = 199 // hundredths, a little less than the guard allows
	return r.Low > 0 && 100*price <= limit*r.Low && 100*r.High <= limit*price
}

// With returns the range with another accepted price; 0 is none.
func (r Range) With(price money.Micro) Range {
	if price <= 0 {
		return r
	}
	if r.Low <= 0 {
		return Range{price, price}
	}
	return Range{min(r.Low, price), max(r.High, price)}
}
