package pricing

import (
	"slices"
	"time"

	"assay/internal/money"
)

// The limits of step 5. Shares are in millionths.
const (
	// minShared is the minimum number of shared names for a check.
	minShared = 100
	// ownLow and ownHigh limit the median factor to the last response of a market.
	ownLow, ownHigh = money.Scale / 2, money.Scale * 2

	maxOneValue = money.Scale / 5 // maximum share of names with the same price

	dispersionBase    = 60_000          // base limit of the dispersion
	dispersionPerDay  = 5_000           // added for each day since the last good response
	dispersionUnknown = money.Scale / 5 // limit of the dispersion with fewer than three known values
	dispersionMax     = 600_000         // maximum limit of the dispersion, without the allowance for chance

	firstFar = money.Scale / 10 // maximum share of names beyond 3x in a first response

	// minClass is the minimum number of names for the move of a class.
	minClass = 50

	wearsLow, wearsHigh = 150_000, 1_400_000 // limits of the median logarithm between wears
)

// checkAlone checks a new response without the other markets. It compares the response with the
// last good one of the same market.
func (r *Round) checkAlone(e *entry, last, next *Response) *Refusal {
	if f := oneValue(next, r.floor); f != nil {
		return f
	}
	if last == nil {
		return nil
	}
	if n, before := len(next.Points)+next.Old, len(last.Points)+last.Old; !next.Partial && 2*n < before {
		return &Refusal{Anomaly: FewNames, Names: n, Before: before}
	}
	r.moves.collect(e.last, e.next, r.names.class, r.floor)
	all := r.moves[classes]
	e.check.Shared = len(all)
	if len(all) < minShared {
		return nil
	}
	middle, byClass := r.moves.medians()
	e.moves[SinceLast], e.hasMoves[SinceLast] = byClass, true
	e.check.Ratio = Exp(middle)
	if abs(middle) > log2 {
		return &Refusal{Anomaly: Ratio, Names: len(all), Value: e.check.Ratio, Low: ownLow, High: ownHigh}
	}
	// The same fault can affect only one class. The check of the dispersion below would not find it,
	// because it subtracts the move of the class.
	for c, m := range byClass {
		if abs(m) > log2 {
			return &Refusal{Anomaly: Ratio, Names: len(r.moves[c]), Value: Exp(m), Low: ownLow, High: ownHigh}
		}
	}
	far := 0
	for c, m := range byClass {
		for _, x := range r.moves[c] {
			if abs(x-m) > log2 {
				far++
			}
		}
	}
	e.check.Dispersion = share(far, len(all))
	e.check.DispersionLimit = e.State.dispersionLimit(r.now, e.lastAt, len(all))
	if e.check.Dispersion > e.check.DispersionLimit {
		return &Refusal{Anomaly: Dispersion, Names: len(all), Value: e.check.Dispersion, High: e.check.DispersionLimit}
	}
	return nil
}

// Dispersion returns the dispersion of the newest compared response and its limit, both in
// millionths. If the last response was refused because of its dispersion, limit is the limit at that
// time. Otherwise it is the current limit. The last good response was fetched at lastAt and
// has the given number of names. dispersion is -1 if no response was compared yet.
func (s *ValidationState) Dispersion(now, lastAt time.Time, names int) (dispersion, limit money.Micro) {
	if !s.RefusedSince.IsZero() && s.Refused.Anomaly == Dispersion {
		return s.Refused.Value, s.Refused.High
	}
	if dispersion = -1; len(s.Dispersions) > 0 {
		dispersion = s.Dispersions[len(s.Dispersions)-1]
	}
	return dispersion, s.dispersionLimit(now, lastAt, max(names, minShared))
}

// dispersionLimit returns the limit of the dispersion. The limit grows with the days since the
// last good response. The first week of refusals does not count for these days. Otherwise
// refused responses would soon be within the limit.
func (s *ValidationState) dispersionLimit(now, lastAt time.Time, names int) money.Micro {
	since := s.RefusedSince
	if since.IsZero() {
		since = now
	}
	const week = 7 * 24 * time.Hour
	gone := max(0, since.Sub(lastAt)) + max(0, now.Sub(since)-week)
	limit := money.Micro(dispersionUnknown)
	if len(s.Dispersions) >= 3 {
		sorted := slices.Sorted(slices.Values(s.Dispersions))
		limit = max(dispersionBase+dispersionPerDay*money.Micro(gone/time.Second)/86_400, median(sorted)*5/2)
	}
	limit = min(limit, dispersionMax)
	return limit + deviation2(limit, names)
}

// deviation2 returns 2 * sqrt(limit/n), two standard deviations of a share of n names.
func deviation2(limit money.Micro, n int) money.Micro {
	return money.Micro(2 * root(uint64(limit)*money.Scale/uint64(n)))
}

func share(part, of int) money.Micro { return money.Micro(int64(part) * money.Scale / int64(of)) }

// oneValue returns a Refusal if too many names have the same price.
func oneValue(next *Response, floor Log) *Refusal {
	amounts := make([]money.Micro, 0, len(next.Points))
	for _, p := range next.Points {
		if next.log(p.Amount) >= floor {
			amounts = append(amounts, p.Amount)
		}
	}
	if len(amounts) < minShared {
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
	if s := share(most, len(amounts)); s > maxOneValue {
		return &Refusal{Anomaly: OneValue, Names: len(amounts), Value: s, High: maxOneValue}
	}
	return nil
}

// contained reports whether a response has the same amounts as the last one. A partial
// response needs to have only some of the names.
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
