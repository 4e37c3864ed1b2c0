package pricing

import "time"

// sales tells what all fresh quotes together say of an item's sales (step 8).
// Each may say it, offered or not, shared listings or not; what is stale says
// nothing. Some says whoever counted one, in whatever window. None takes a
// market whose window is long enough, and that all such say so: a long window
// without a count is no such word.
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
