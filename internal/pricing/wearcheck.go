package pricing

import (
	"slices"

	"assay/internal/money"
)

// wearCheck is the check of a first response for which there is no other market:
// the wears of one skin, which real markets price within a factor of each other.
type wearCheck struct {
	middle Log
	pairs  int
}

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
	if len(steps) < fewestShared {
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
