package pricing

import (
	"slices"
	"time"
)

// entry is the state of one market in a round.
type entry struct {
	Market
	at          time.Time // time of the response that counts: the new one or the last good one
	lastAt      time.Time // time of the last good response
	has         bool      // there is a last good response
	new         bool      // there is a new response
	changed     bool      // the new response differs from the last good one
	wasAccepted bool      // an operator accepted the new response

	last   []Log // last good response
	next   []Log // new response
	before []Log // about a day ago; moves are measured from here
	daily  bool  // before is 20 to 30 h old, as findLate requires
	day2   []Log // 40 to 56 h ago

	sides     []side // how the prices in next moved since the oldest prices of the last eight days
	lastSides []side // the same for last

	first    *wearCheck
	moves    [windows][classes]Log
	hasMoves [windows]bool
	newest   History // history with the new response; nil: the stored one is unchanged
	damaged  bool    // the stored history is damaged

	refusal  *Refusal
	check    Check
	level    Log  // current level against the others
	shared   int  // number of names behind level
	anchor   Log  // level against the others at the levels learned in this round
	anchored bool // anchor is known
	late     bool
	repeats  int64
}

// accepted reports whether the new response was refused and an operator accepted it.
func (e *entry) accepted(now time.Time) bool {
	return e.refusal != nil && e.State.accepts(e.refusal, now)
}

// refused reports whether the new response was refused and no operator accepted it.
func (e *entry) refused(now time.Time) bool {
	return e.refusal != nil && !e.State.accepts(e.refusal, now)
}

// isFirst reports whether the new response is the first of its market and was not refused.
func (e *entry) isFirst() bool { return e.new && !e.has && e.refusal == nil }

// isKnown reports whether the new response was not refused and its market has a learned
// level.
func (e *entry) isKnown() bool { return e.new && e.has && e.refusal == nil && e.State.Levelled }

// resolve discards a refused response, so that the last good one counts. It keeps a response
// that is good or accepted.
func (e *entry) resolve(now time.Time) {
	if e.accepted(now) {
		// The history starts again, because later responses resemble the accepted one.
		e.refusal, e.wasAccepted, e.newest = nil, true, History{}
	}
	if e.new && e.refusal == nil {
		return
	}
	e.next, e.sides, e.newest, e.at, e.changed = e.last, e.lastSides, e.unchanged(), e.lastAt, false
	e.hasMoves = [windows]bool{}
}

// unchanged returns the history to store without a good new response. It returns nil to
// keep the stored one, or an empty history to replace a damaged one.
func (e *entry) unchanged() History {
	if e.damaged {
		return History{}
	}
	return nil
}

// recordAcceptance stores the moves that an operator accepted with a response. It deletes them
// after seven days, because all references are then from after the acceptance.
func (e *entry) recordAcceptance(now time.Time, m *SetMarket) {
	moved := func(l Log) bool { return abs(l) > log2 }
	switch {
	case e.wasAccepted && e.hasMoves[SinceLast] && slices.ContainsFunc(e.moves[SinceLast][:], moved):
		m.AcceptedAt, m.AcceptedMoves = now, e.moves[SinceLast]
	case now.Sub(m.AcceptedAt) >= oldestReference:
		m.AcceptedAt, m.AcceptedMoves = time.Time{}, [classes]Log{}
	}
}
