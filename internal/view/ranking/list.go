package ranking

import (
	"cmp"
	"slices"
)

// maxKept is the number of traders that a list keeps when it drops the others. It drops them when
// it exceeds twice this number. maxKept exceeds Ranks, so that traders can leave the list before
// it must be rebuilt.
const maxKept = 5 * Ranks

// list holds the top traders by one figure.
type list struct {
	figure func(*Trader) int64
	top    []Trader
	// floor is the lowest trader that was kept when others were dropped. Traders that are not on
	// the list rank below it. A nil floor means that all traders are on the list.
	floor *Trader
}

// figures returns the functions that compute the ranking figures, by name.
func figures() map[string]func(t *Trader) int64 {
	return map[string]func(t *Trader) int64{
		"volume":         func(t *Trader) int64 { return t.Ranked },
		"trades":         func(t *Trader) int64 { return t.Trades },
		"counterparties": func(t *Trader) int64 { return t.Others },
	}
}

// compare orders traders. Two traders are never equal.
func (l *list) compare(a, b *Trader) int {
	return cmp.Or(
		cmp.Compare(l.figure(b), l.figure(a)), cmp.Compare(b.Ranked, a.Ranked), cmp.Compare(b.Trades, a.Trades),
		cmp.Compare(b.Others, a.Others), cmp.Compare(a.Key, b.Key))
}

// add adds a trader. The list must be sorted afterwards.
func (l *list) add(t Trader) {
	if l.floor != nil && l.compare(&t, l.floor) > 0 {
		return
	}
	if l.top = append(l.top, t); len(l.top) > 2*maxKept {
		l.sort()
		l.top = l.top[:maxKept]
		floor := l.top[maxKept-1]
		l.floor = &floor
	}
}

func (l *list) sort() {
	slices.SortFunc(l.top, func(a, b Trader) int { return l.compare(&a, &b) })
}

// without returns a copy of the list without the given users.
func (l *list) without(users map[int64]bool) *list {
	rest := make([]Trader, 0, len(l.top))
	for _, t := range l.top {
		if !users[t.Key] {
			rest = append(rest, t)
		}
	}
	return &list{figure: l.figure, top: rest, floor: l.floor}
}
