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
	if len(all) < fewestShared {
		return nil
	}
	middle, byClass := r.moves.medians()
	e.moves[SinceLast], e.hasMoves[SinceLast] = byClass, true
	e.check.Ratio = Exp(middle)
	if abs(middle) > log2 {
		return &Refusal{Anomaly: Ratio, Names: len(all), Value: e.check.Ratio, Low: ownLow, High: ownHigh}
	}
	// A class of which all prices changed so is the same fault, in a part of the
	// response: what its own move is compared with would excuse it.
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

// dispersionLimit is how large the share J may be. After a refusal the days stand still
// for a week, so that the refusals themselves do not raise the limit.
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
