package pricing

import (
	"slices"
	"time"
)

// entry is what a round knows of one market.
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

// accepted reports whether an operator accepted what the new response is refused for.
func (e *entry) accepted(now time.Time) bool {
	return e.refusal != nil && e.State.accepts(e.refusal, now)
}

// refused reports whether the new response is refused and not accepted.
func (e *entry) refused(now time.Time) bool {
	return e.refusal != nil && !e.State.accepts(e.refusal, now)
}

// isFirst reports whether a market's first response is not refused yet.
func (e *entry) isFirst() bool { return e.new && !e.has && e.refusal == nil }

// isKnown reports whether a market's new response can be compared with its own
// remembered level.
func (e *entry) isKnown() bool { return e.new && e.has && e.refusal == nil && e.State.Levelled }

// settle makes the new response the one that counts, unless it was refused.
func (e *entry) settle(now time.Time) {
	if e.accepted(now) {
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
