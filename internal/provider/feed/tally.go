package feed

import (
	"fmt"

	"assay/internal/provider"
)

// MaxItems bounds the items of one response. No game has half as many names.
const MaxItems = 500_000

// Tally passes the quotes and rejects of one response to a sink and counts them.
type Tally struct {
	sink provider.Sink
	most int // items
	seen Seen

	name, phase string         // of the previous quote
	markets     *uint64        // markets of that item
	bits        map[string]int // position of each market's bit in seen

	quotes, rejects int
	reasons         map[string]int
	refused         error // the sink's error for a quote
}

// NewTally returns a Tally for a response of at most most items. sink may be nil if Quote
// is never called.
func NewTally(sink provider.Sink, most int) *Tally {
	return &Tally{sink: sink, most: most, bits: map[string]int{}, reasons: map[string]int{}}
}

// Quote passes a quote on. A repeated item and market does not count as a row; the sink
// decides what it means. A response has at most 64 markets.
func (t *Tally) Quote(q *provider.Quote) error {
	bit, ok := t.bits[q.Market]
	if !ok {
		bit = len(t.bits)
		t.bits[q.Market] = bit
	}
	if t.markets == nil || q.Name != t.name || q.Phase != t.phase { // the quotes of an item usually follow each other
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

// Quotes returns the number of accepted rows.
func (t *Tally) Quotes() int { return t.quotes }

// Rejects returns the number of rejected rows, or parts of rows.
func (t *Tally) Rejects() int { return t.rejects }

// Items returns the number of quoted items.
func (t *Tally) Items() int { return t.seen.Len() }

// Refused returns the sink's error for a quote.
func (t *Tally) Refused() error { return t.refused }

// Count adds accepted rows that are no quotes by themselves.
func (t *Tally) Count(n int) { t.quotes += n }

// Reject counts an invalid row, or an invalid part of it for one market.
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

// Sound returns an error if most rows so far were rejected. Read calls it at the end of a
// response. Call it earlier before passing on quotes that are not rows of this response.
func (t *Tally) Sound() error {
	if t.rejects <= t.quotes {
		return nil
	}
	return Malformed("more rows rejected than accepted (%d and %d); %s", t.rejects, t.quotes, t.TopReason())
}

// TopReason returns the most frequent reason of the rejects.
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

// TooManyItems returns the error for a response with more than most items.
func TooManyItems(most int) error { return tooMany(most) }
