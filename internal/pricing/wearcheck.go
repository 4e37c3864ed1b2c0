package pricing

import (
	"slices"

	"assay/internal/money"
)

// wearCheck checks a first response without comparing it with other markets. It compares the
// prices of neighboring wears of one skin, because their ratios are similar on all real markets.
type wearCheck struct {
	middle Log // median absolute logarithm of the ratio
	pairs  int // number of pairs of wears
}

// newWearCheck returns the check of a response. It returns nil if the response has fewer than
// 100 pairs of wears.
func newWearCheck(next *Response, floor Log) *wearCheck {
	type worn struct {
		skin uint32
		wear uint8
		l    Log
	}
	all := make([]worn, 0, len(next.Points))
	for _, p := range next.Points {
		if l := next.log(p.Amount); p.Traits.Skin != 0 && l >= floor {
			all = append(all, worn{p.Traits.Skin, p.Traits.Wear, l})
		}
	}
	slices.SortFunc(all, func(a, b worn) int {
		switch {
		case a.skin != b.skin && a.skin < b.skin:
			return -1
		case a.skin != b.skin:
			return 1
		default:
			return int(a.wear) - int(b.wear)
		}
	})
	steps := make([]Log, 0, len(all))
	for i := 1; i < len(all); i++ {
		if all[i].skin == all[i-1].skin && all[i].wear != all[i-1].wear {
			steps = append(steps, abs(all[i].l-all[i-1].l))
		}
	}
	if len(steps) < minShared {
		return nil
	}
	return &wearCheck{middleOf(steps), len(steps)}
}

func (w *wearCheck) refusal() *Refusal {
	if w == nil {
		return nil
	}
	v := money.Micro(int64(w.middle) * money.Scale >> 24)
	if v >= wearsLow && v <= wearsHigh {
		return nil
	}
	return &Refusal{Anomaly: Wears, Names: w.pairs, Value: v, Low: wearsLow, High: wearsHigh}
}
