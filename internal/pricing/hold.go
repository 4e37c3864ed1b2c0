package pricing

import (
	"time"

	"assay/internal/money"
)

const (
	suspectFor     = 24 * time.Hour
	suspectForLong = 30 * 24 * time.Hour // after a rise of 5x or more on one market

	// EvidenceAfter is the minimum time between two readings that are evidence for a held
	// price.
	EvidenceAfter = 30 * time.Minute
	// SingleMarketWait is the minimum hold of a move of 5x or more on one market.
	SingleMarketWait = 24 * time.Hour

	oldestReference = 7 * 24 * time.Hour
)

// Reference is an accepted price of an item at a certain time.
type Reference struct {
	Price money.Micro // 0: none
	At    time.Time
}

// References are the prices from the history that the guard compares with a new price (step
// 11). Day is the price of 24 hours ago and Week the price of 7 days ago. If the history
// is shorter, they are the oldest known price. Week is empty if the history has less than
// 48 hours.
type References struct {
	Day, Week Reference
}

// Side is the direction of a move.
type Side int8

// The directions of a move.
const (
	Fall Side = -1
	Rise Side = 1
)

// HeldPrice is a price that the guard holds back. The zero value means that no price is
// held.
type HeldPrice struct {
	Candidate  money.Micro // least extreme estimate since the start of the hold; 0: no hold
	Side       Side
	At         time.Time // start of the hold
	EvidenceAt time.Time // last reading that was evidence; at first the start of the hold
	Readings   int       // number of readings that were evidence
}

// State is the stored state of an item between estimates.
type State struct {
	Price             money.Micro // last accepted price; 0: none
	Held              HeldPrice
	ReleasedAt        time.Time // the guard ignores references before this time
	SuspectUntil      time.Time
	SingleMarketUntil time.Time // suspect until this time unless two quotes support the price
}

// Decision is the decision of the guard about an estimate.
type Decision string

// The decisions of the guard.
const (
	Accepted    Decision = ""            // the move is within the limits
	TakenAtOnce Decision = "takenAtOnce" // accepted immediately, because the quotes of two markets moved
	HeldBack    Decision = "held"        // the last accepted price stays
	Released    Decision = "released"    // accepted after a hold, because of new evidence
)

// Move is a comparison of a new price with its references.
type Move struct {
	Decision   Decision    `json:"decision,omitzero"`
	Window     Window      `json:"window"`          // window of the largest move above its limit
	Reference  money.Micro `json:"reference"`       // reference price of the window; 0: no move is above its limit
	Factor     money.Micro `json:"factor"`          // the move without the move of the class, in millionths
	ClassMove  money.Micro `json:"classMove"`       // the move of the class that was subtracted, in millionths
	Supporters int         `json:"supporters"`      // number of used quotes within 1.5x of the new price
	Moved      int         `json:"moved"`           // number of supporters that moved at least half as far as the price
	Needed     int         `json:"needed,omitzero"` // number of readings with evidence that a release requires
	// Earlier is the price that was held before an estimate that continues or ends a hold; 0:
	// none. The guard then holds or releases the less extreme of Earlier and the new estimate.
	Earlier money.Micro `json:"earlier,omitzero"`
}

// evidence summarizes the used quotes for a decision about a move.
type evidence struct {
	price      money.Micro
	majority   bool
	supporters []support
}

// support is a used quote near the new price: its own move, and the last change of its response.
type support struct {
	moved     Log
	changedAt time.Time
}

// Limit returns the largest factor that the guard always accepts, in millionths.
func (w Window) Limit() money.Micro {
	if w == SinceWeek {
		return 3 * money.Scale
	}
	return 2 * money.Scale
}

// String returns "last", "day" or "week".
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

// limit returns Window.Limit as a logarithm.
func limit(w Window) Log {
	if w == SinceWeek {
		return log3
	}
	return log2
}

// largestMove returns the largest move above its limit, and its logarithm. It subtracts the move
// of the class, but only if that makes the move smaller.
func largestMove(price money.Micro, s *State, refs References, moves *[windows][classes]Log, c Class) (Move, Log) {
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

// guard decides about a new price and updates the state (step 11). It returns the current
// price.
func (s *State) guard(now time.Time, ev *evidence, m *Move, move Log, hold bool) money.Micro {
	if m.Reference == 0 {
		s.Held = HeldPrice{}
		return ev.price
	}
	m.Supporters = len(ev.supporters)
	side := Rise
	if move < 0 {
		side = Fall
	}
	s.SuspectUntil = now.Add(suspectFor)
	if side == Rise && move >= log5 && m.Supporters < 2 {
		s.SingleMarketUntil = now.Add(suspectForLong)
	}
	for _, v := range ev.supporters {
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
	if s.Held.Side == side {
		m.Earlier = s.Held.Candidate
	}
	if s.Held.addReading(now, ev, side) && s.Held.Readings >= m.Needed && (m.Needed == 1 || now.Sub(s.Held.At) >= SingleMarketWait) {
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

// addReading adds a reading to the hold, or starts a new hold. It reports whether the reading is
// evidence: the response of a supporter must have changed at least 30 minutes after the last
// evidence.
func (h *HeldPrice) addReading(now time.Time, ev *evidence, side Side) bool {
	if h.Candidate <= 0 || h.Side != side {
		*h = HeldPrice{Candidate: ev.price, Side: side, At: now, EvidenceAt: now}
		return false
	}
	if (side == Rise) == (ev.price < h.Candidate) {
		h.Candidate = ev.price
	}
	for _, v := range ev.supporters {
		if !v.changedAt.Before(h.EvidenceAt.Add(EvidenceAfter)) {
			h.Readings++
			h.EvidenceAt = now
			return true
		}
	}
	return false
}

// pending reports whether until is in the future, by at most limit. A later time is invalid:
// the clock was set back after the time was stored.
func pending(now, until time.Time, limit time.Duration) bool {
	left := until.Sub(now)
	return left > 0 && left <= limit
}

// dropExpired clears times that have no further effect. The state of an item with a stable
// price then needs no storage after a week.
func (s *State) dropExpired(now time.Time) {
	if !pending(now, s.SuspectUntil, suspectFor) {
		s.SuspectUntil = time.Time{}
	}
	if !pending(now, s.SingleMarketUntil, suspectForLong) {
		s.SingleMarketUntil = time.Time{}
	}
	if now.Sub(s.ReleasedAt) >= oldestReference {
		s.ReleasedAt = time.Time{}
	}
}

// ReferencesOf returns the references of an item at the time now. first is the oldest
// accepted price. day and week are the accepted prices of 24 hours and 7 days ago, or 0 if
// the history is shorter.
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

// Range is the range of all accepted prices of an item in at least the last week. If a new
// price is within 2x of both ends, its references have no effect and need not be read. The
// zero value means that the range is unknown.
type Range struct{ Low, High money.Micro }

// Near reports whether a price is within 2x of both ends of the range.
func (r Range) Near(price money.Micro) bool {
	const limit = 199 // hundredths, slightly less than the limit of the guard
	return r.Low > 0 && 100*price <= limit*r.Low && 100*r.High <= limit*price
}

// With returns the range extended by another accepted price. It ignores a price of 0.
func (r Range) With(price money.Micro) Range {
	if price <= 0 {
		return r
	}
	if r.Low <= 0 {
		return Range{price, price}
	}
	return Range{min(r.Low, price), max(r.High, price)}
}
