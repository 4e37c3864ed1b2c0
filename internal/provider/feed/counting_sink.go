package feed

import (
	"fmt"

	"assay/internal/provider"
)

// MaxItems is the maximum number of items in one response. Every game has fewer than half as
// many names.
const MaxItems = 500_000

// CountingSink passes the quotes and rejects of one response to a sink and counts them.
type CountingSink struct {
	sink     provider.Sink
	maxItems int
	seen     Seen

	name, phase string         // item of the previous quote
	markets     *uint64        // market bits of that item
	bits        map[string]int // bit position of each market

	quotes, rejects int
	reasons         map[string]int
	sinkErr         error // error from the sink
}

// NewCountingSink returns a CountingSink for a response of at most maxItems items. sink may be
// nil if Quote is never called.
func NewCountingSink(sink provider.Sink, maxItems int) *CountingSink {
	return &CountingSink{sink: sink, maxItems: maxItems, bits: map[string]int{}, reasons: map[string]int{}}
}

// Quote passes a quote to the sink. A repeated item and market counts as a rejected row, but
// the sink still gets the quote. A response may have at most 64 markets.
func (t *CountingSink) Quote(q *provider.Quote) error {
	bit, ok := t.bits[q.Market]
	if !ok {
		bit = len(t.bits)
		t.bits[q.Market] = bit
	}
	if t.markets == nil || q.Name != t.name || q.Phase != t.phase { // quotes of an item usually follow each other
		t.name, t.phase, t.markets = q.Name, q.Phase, t.seen.Markets(q.Name, q.Phase)
	}
	if t.seen.Len() > t.maxItems {
		return TooManyItems(t.maxItems)
	}
	if seen := t.markets; *seen&(1<<bit) != 0 {
		t.note(provider.RejectRepeat)
	} else {
		*seen |= 1 << bit
		t.quotes++
	}
	t.sinkErr = t.sink.Quote(q)
	return t.sinkErr
}

// Quotes returns the number of accepted rows.
func (t *CountingSink) Quotes() int { return t.quotes }

// Rejects returns the number of rejected rows and parts of rows.
func (t *CountingSink) Rejects() int { return t.rejects }

// Items returns the number of items with a quote.
func (t *CountingSink) Items() int { return t.seen.Len() }

// SinkError returns the error from the sink, if any.
func (t *CountingSink) SinkError() error { return t.sinkErr }

// Count adds n accepted rows that are not quotes.
func (t *CountingSink) Count(n int) { t.quotes += n }

// Reject counts an invalid row, or an invalid part of it for one market.
func (t *CountingSink) Reject(market string, name []byte, reason string) {
	t.note(reason)
	if t.sink != nil {
		t.sink.Reject(market, RowName(name), reason)
	}
}

func (t *CountingSink) note(reason string) {
	t.rejects++
	t.reasons[reason]++
}

// CheckRejectRate returns an error if most rows so far were rejected. Read calls it at the end
// of a response. A decoder that adds quotes from another response calls it before it adds them.
func (t *CountingSink) CheckRejectRate() error {
	if t.rejects <= t.quotes {
		return nil
	}
	return Malformed("more rows rejected than accepted (%d and %d); %s", t.rejects, t.quotes, t.TopReason())
}

// TopReason returns the most frequent reject reason with its count.
func (t *CountingSink) TopReason() string {
	var top string
	for reason, n := range t.reasons {
		if n > t.reasons[top] || n == t.reasons[top] && reason < top {
			top = reason
		}
	}
	return fmt.Sprintf("most often: %s (%d times)", top, t.reasons[top])
}

type tooMany int

func (n tooMany) Error() string { return fmt.Sprintf("more than %d items", int(n)) }

// TooManyItems returns the error for a response with more than limit items.
func TooManyItems(limit int) error { return tooMany(limit) }
