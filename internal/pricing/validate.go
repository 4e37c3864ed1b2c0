package pricing

import (
	"slices"
	"time"

	"assay/internal/money"
)

// The limits of step 5. Shares are in millionths.
const (
	// fewestShared is how many names a check needs to mean anything.
	fewestShared = 100
	// The factors to its own last response that a good response stays within.
	ownLow, ownHigh = money.Scale / 2, money.Scale * 2

	mostOneValue = money.Scale / 5

	jBase    = 60_000          // 6 %
	jPerDay  = 5_000           // 0.5 %
	jUnknown = money.Scale / 5 // until three J are known
	jMost    = 600_000

	firstFar = money.Scale / 10 // names beyond 3x of a first response

	// fewestClass is how many names a class needs to have a move of its own.
	fewestClass = 50

	wearsLow, wearsHigh = 150_000, 1_400_000 // median logarithm between wears, in millionths
)

// alone checks a new response by itself and against the market's last one.
func (r *Round) alone(e *entry, last, next *Response) *Refusal {
	if f := oneValue(next, r.floor()); f != nil {
		return f
	}
	if last == nil {
		return nil
	}
	if n, before := len(next.Points)+next.Old, len(last.Points)+last.Old; !next.Partial && 2*n < before {
		return &Refusal{Anomaly: FewNames, Names: n, Before: before}
	}
	r.ownMoves(e, e.last)
	all := r.scratch[classes]
	e.check.Shared = len(all)
	if len(all) < fewestShared {
		return nil
	}
	middle := r.classMoves(&e.moves[SinceLast])
	e.hasMoves[SinceLast] = true
	e.check.Ratio = Exp(middle)
	if middle < -log2 || middle > log2 {
		return &Refusal{Anomaly: Ratio, Names: len(all), Value: e.check.Ratio, Low: ownLow, High: ownHigh}
	}
	// A class of which all prices changed so is the same fault, in a part of the
	// response: what its own move is compared with would excuse it.
	for c := range classes {
		if m := e.moves[SinceLast][c]; m < -log2 || m > log2 {
			return &Refusal{Anomaly: Ratio, Names: len(r.scratch[c]), Value: Exp(m), Low: ownLow, High: ownHigh}
		}
	}
	far := 0
	for c := range classes {
		for _, x := range r.scratch[c] {
			if abs(x-e.moves[SinceLast][c]) > log2 {
				far++
			}
		}
	}
	e.check.J = share(far, len(all))
	e.check.JLimit = e.State.dispersionLimit(r.now, e.lastAt, len(all))
	if e.check.J > e.check.JLimit {
		return &Refusal{Anomaly: Dispersion, Names: len(all), Value: e.check.J, High: e.check.JLimit}
	}
	return nil
}

// Dispersion returns the share J of the newest response that was compared, and how large
// it may be, in millionths: for a response that was refused for it, as it was then, else
// for a response now. lastAt is the time of the last good response and names how many it
// has. J is -1 before any response was compared.
func (s *MarketState) Dispersion(now, lastAt time.Time, names int) (j, limit money.Micro) {
	if !s.RefusedSince.IsZero() && s.Refused.Anomaly == Dispersion {
		return s.Refused.Value, s.Refused.High
	}
	if j = -1; len(s.J) > 0 {
		j = s.J[len(s.J)-1]
	}
	return j, s.dispersionLimit(now, lastAt, max(names, fewestShared))
}

// dispersionLimit is how large the share J may be. After a refusal the days
// stand still for a week, so that a market does not become believable by being
// refused.
func (s *MarketState) dispersionLimit(now, lastAt time.Time, names int) money.Micro {
	since := s.RefusedSince
	if since.IsZero() {
		since = now
	}
	const week = 7 * 24 * time.Hour
	gone := max(0, since.Sub(lastAt)) + max(0, now.Sub(since)-week)
	limit := money.Micro(jUnknown)
	if len(s.J) >= 3 {
		sorted := slices.Sorted(slices.Values(s.J))
		limit = max(jBase+jPerDay*money.Micro(gone/time.Second)/86_400, median(sorted)*5/2)
	}
	limit = min(limit, jMost)
	return limit + deviation2(limit, names)
}

// deviation2 returns 2 * sqrt(share/n): two standard deviations of a share that
// was counted on n names.
func deviation2(limit money.Micro, n int) money.Micro {
	return money.Micro(2 * root(uint64(limit)*money.Scale/uint64(n)))
}

func share(part, of int) money.Micro { return money.Micro(int64(part) * money.Scale / int64(of)) }

// ownMoves collects, by class and in total, the moves of the new response against
// an earlier one, for names that voted then.
func (r *Round) ownMoves(e *entry, from []Log) {
	for i := range r.scratch {
		r.scratch[i] = r.scratch[i][:0]
	}
	floor := r.floor()
	for i, was := range from {
		is := at(e.next, i)
		if was < floor || is == none {
			continue
		}
		c := r.class[i]
		r.scratch[c] = append(r.scratch[c], is-was)
		r.scratch[classes] = append(r.scratch[classes], is-was)
	}
}

// classMoves returns the median of all collected moves, and that of each class,
// which is that of all for a class with too few names.
func (r *Round) classMoves(into *[classes]Log) Log {
	middle := middleOf(r.scratch[classes])
	for c := range into {
		into[c] = middle
		if len(r.scratch[c]) >= fewestClass {
			into[c] = middleOf(r.scratch[c])
		}
	}
	return middle
}

// oneValue refuses a response in which one price covers too many names.
func oneValue(next *Response, floor Log) *Refusal {
	amounts := make([]money.Micro, 0, len(next.Points))
	for _, p := range next.Points {
		if next.log(p.Amount) >= floor {
			amounts = append(amounts, p.Amount)
		}
	}
	if len(amounts) < fewestShared {
		return nil
	}
	slices.Sort(amounts)
	most, run := 0, 0
	for i := range amounts {
		if i > 0 && amounts[i] != amounts[i-1] {
			run = 0
		}
		run++
		most = max(most, run)
	}
	if s := share(most, len(amounts)); s > mostOneValue {
		return &Refusal{Anomaly: OneValue, Names: len(amounts), Value: s, High: mostOneValue}
	}
	return nil
}

// contained reports whether a response quotes the same as the last one: all of it,
// or of a partial response what it quotes.
func (r *Response) contained(last *Response) bool {
	if !r.Partial {
		return r.same(last)
	}
	j := 0
	for _, p := range r.Points {
		for j < len(last.Points) && last.Points[j].Key < p.Key {
			j++
		}
		if j == len(last.Points) || last.Points[j].Key != p.Key || last.Points[j].Amount != p.Amount {
			return false
		}
	}
	return true
}

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
