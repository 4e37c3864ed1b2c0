package feed

import (
	"fmt"

	"assay/internal/provider"
)

// MaxItems bounds the items of one response: no game has half as many names.
const MaxItems = 500_000

// Tally passes the quotes and rejects of one response to a sink and counts them.
type Tally struct {
	sink provider.Sink
	most int // items
	seen Seen

	name, phase string         // of the last quote
	markets     *uint64        // where that item was quoted
	bits        map[string]int // position of each market's bit in seen

	quotes, rejects int
	reasons         map[string]int
	refused         error // with which the sink refused the response
}

// NewTally returns a Tally for a response of at most most items. sink may be nil if
// Quote is never called.
func NewTally(sink provider.Sink, most int) *Tally {
	return &Tally{sink: sink, most: most, bits: map[string]int{}, reasons: map[string]int{}}
}

// Quote passes a quote on. One of an item that was quoted on its market before is no
// row that counts; the sink decides what that means for both. A response has at most
// 64 markets.
func (t *Tally) Quote(q *provider.Quote) error {
	bit, ok := t.bits[q.Market]
	if !ok {
		bit = len(t.bits)
		t.bits[q.Market] = bit
	}
	if t.markets == nil || q.Name != t.name || q.Phase != t.phase { // the markets of an item mostly follow each other
		t.name, t.phase, t.markets = q.Name, q.Phase, t.seen.Markets(q.Name, q.Phase)
	}
	if t.seen.Len() > t.most {
		return TooManyItems(t.most)
	}
	if seen := t.markets; *seen&(1<<bit) != 0 {
		t.note(provider.RejectRepeat)
	} else {
		*seen |= 1 << bit
		t.quotes++
	}
	t.refused = t.sink.Quote(q)
	return t.refused
}

// Quotes returns how many rows counted so far.
func (t *Tally) Quotes() int { return t.quotes }

// Rejects returns how many rows, or parts of them, were rejected so far.
func (t *Tally) Rejects() int { return t.rejects }

// Items returns how many items were quoted so far.
func (t *Tally) Items() int { return t.seen.Len() }

// Refused returns the error with which the sink refused a quote.
func (t *Tally) Refused() error { return t.refused }

// Count counts rows that are good and no quotes by themselves.
func (t *Tally) Count(n int) { t.quotes += n }

// Reject counts a row, or one market's part of it, that is no quote.
func (t *Tally) Reject(market string, name []byte, reason string) {
	t.note(reason)
	if t.sink != nil {
		t.sink.Reject(market, Named(name), reason)
	}
}

func (t *Tally) note(reason string) {
	t.rejects++
	t.reasons[reason]++
}

// Sound fails if most rows so far were rejected. Read calls it at the end of
// a response; call it before passing on quotes that are no rows of this response.
func (t *Tally) Sound() error {
	if t.rejects <= t.quotes {
		return nil
	}
	return Malformed("%d quotes and %d rejects; %s", t.quotes, t.rejects, t.TopReason())
}

// TopReason names the reason of most rejects.
func (t *Tally) TopReason() string {
	var top string
	for reason, n := range t.reasons {
		if n > t.reasons[top] || n == t.reasons[top] && reason < top {
			top = reason
		}
	}
	return fmt.Sprintf("most often: %s (%d times)", top, t.reasons[top])
}

type tooMany int

func (most tooMany) Error() string { return fmt.Sprintf("more than %d items", int(most)) }

// TooManyItems returns the error that ends a response with more than most items.
func TooManyItems(most int) error { return tooMany(most) }
