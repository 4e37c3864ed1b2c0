package pricing

import "time"

// SalesSignal summarizes the reports of all markets about the sales of an item.
type SalesSignal uint8

// The signals. SalesUnknown means that no market can exclude sales. SalesNone means that
// there were none.
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

// sales returns the signal of all fresh quotes of an item (step 12). Quotes without an ask
// and quotes with shared listings count too. Any sale in any window means SalesSome.
// SalesNone requires a market with a window of at least NoSalesWindow. All such markets
// must report 0 sales. If the count of one of them is missing, the result is SalesUnknown.
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
