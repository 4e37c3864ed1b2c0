package pricing

import "time"

// SalesSignal is what all markets together report of an item's sales.
type SalesSignal uint8

// The signals. Unknown is not none.
const (
	SalesUnknown SalesSignal = iota
	SalesSome
	SalesNone
)

// String returns "unknown", "some" or "none".
func (s SalesSignal) String() string {
	switch s {
	case SalesSome:
		return "some"
	case SalesNone:
		return "none"
	default:
		return "unknown"
	}
}

// sales returns what all fresh quotes together report of an item's sales (step 12).
// Each quote can report it, offered or not, shared listings or not. Any counted sale
// means some, in whatever window. None needs a market whose window is long enough,
// and a count of 0 from every such market: a long window without a count leaves it
// unknown.
func (p *Policy) sales(now time.Time, quotes []Quote) SalesSignal {
	signal := SalesUnknown
	unsure := false
	for i := range quotes {
		q := &quotes[i]
		long := q.SalesWindow >= p.NoSalesWindow
		if (q.Sales <= 0 && !long) || p.freshness(now, q) != Used {
			continue
		}
		switch {
		case q.Sales > 0:
			return SalesSome
		case q.Sales == 0:
			signal = SalesNone
		default:
			unsure = true
		}
	}
	if unsure {
		return SalesUnknown
	}
	return signal
}
