package pricing

import (
	"slices"
	"sync"
	"time"

	"assay/internal/money"
)

const (
	defaultMaxAge        = 24 * time.Hour
	defaultNoSalesWindow = 720 * time.Hour

	// fewestForFilter is how many quotes the outlier rule needs, and the least
	// number that is not thin.
	fewestForFilter = 3
)

// Estimator makes prices by one policy. It is safe for concurrent use, and
// allocates nothing per item once its memory is warm.
type Estimator struct {
	policy  Policy
	scratch sync.Pool // of *scratch
}

// scratch is what one estimate needs beside its result.
type scratch struct {
	prices []money.Micro // that take part, in order
	devs   []logarithm
}

// New returns an estimator for policy; zero fields have their defaults, and so
// have a method and a guard that ParseMethod and ParseGuard refuse. The rates
// must not be changed while the estimator is in use.
func New(policy Policy) *Estimator {
	policy.complete()
	if _, err := ParseMethod(string(policy.Method)); err != nil {
		policy.Method = Robust
	}
	if _, err := ParseGuard(string(policy.Guard)); err != nil {
		policy.Guard = Flag
	}
	return &Estimator{
		policy:  policy,
		scratch: sync.Pool{New: func() any { return new(scratch) }},
	}
}

// Estimate makes the price of one item at the time now from its quotes and what
// was known of it, and writes it over into, whose Verdicts are reused. It keeps
// nothing of its arguments. The quotes' order decides about the order of the
// verdicts and nothing else.
//
// Without a usable quote the last price stays, and what was held back with it:
// nothing was learned.
func (e *Estimator) Estimate(now time.Time, quotes []Quote, last Last, into *Estimate) {
	now = stored(now)
	*into = Estimate{
		Method:   e.policy.Method,
		Markets:  len(quotes),
		Verdicts: e.policy.judge(now, quotes, into.Verdicts[:0]),
		Sales:    e.policy.sales(now, quotes),
	}
	s, _ := e.scratch.Get().(*scratch)
	defer e.scratch.Put(s)

	s.prices = s.prices[:0]
	for i := range into.Verdicts {
		if v := &into.Verdicts[i]; v.Reason == Used {
			s.prices = append(s.prices, v.Price)
		}
	}
	if len(s.prices) == 0 {
		into.keep(last)
		return
	}
	slices.Sort(s.prices)
	into.Status = s.figures(into)
	if e.guard(now, len(s.prices), last, into) {
		into.Status = max(into.Status, Suspect)
	}
}

// keep makes the last price the result where there is no usable quote.
func (e *Estimate) keep(last Last) {
	if last.Price <= 0 {
		e.Status = NoPrice
		return
	}
	e.Status = Stale
	e.Price, e.Candidate, e.CandidateAt = last.Price, last.Candidate, last.CandidateAt
}

// figures computes every figure from s.prices, marks the outliers among the
// verdicts, and grades how far the prices can be trusted by themselves.
func (s *scratch) figures(into *Estimate) Status {
	n := len(s.prices)
	kept, agreed := s.withoutOutliers()
	into.Min, into.Max = s.prices[0], s.prices[n-1]
	into.Average = mean(s.prices)
	into.Median = median(s.prices)
	into.Robust = into.Median
	if agreed {
		into.Robust = mean(kept)
		into.mark(kept)
	}
	into.UsedMarkets = n
	switch {
	case into.Method == Average:
		into.Estimated = into.Average
	case into.Method == Robust && agreed:
		into.Estimated, into.UsedMarkets = into.Robust, len(kept)
	default:
		into.Estimated, into.Method = into.Median, Median
	}
	switch {
	case !agreed, n == 2 && 2*into.Max > 3*into.Min:
		return Disputed
	case n < fewestForFilter:
		return Thin
	default:
		return OK
	}
}

// mark gives the quotes whose prices are not among kept their reason. Equal
// prices share their fate, so the ends of kept tell them apart.
func (e *Estimate) mark(kept []money.Micro) {
	low, high := kept[0], kept[len(kept)-1]
	for i := range e.Verdicts {
		if v := &e.Verdicts[i]; v.Reason == Used && (v.Price < low || v.Price > high) {
			v.Reason = Outlier
		}
	}
}

// mean returns the arithmetic mean of prices, rounded half to even. Prices are
// 10^13 at most, so the sum of 900,000 of them still fits.
func mean(prices []money.Micro) money.Micro {
	var sum money.Micro
	for _, p := range prices {
		sum += p
	}
	return money.Div(sum, int64(len(prices)))
}

// median returns the middle of sorted numbers that are not negative, or the
// mean of the two middle ones, rounded half to even.
func median[T ~int64](sorted []T) T {
	n := len(sorted)
	if n%2 == 1 {
		return sorted[n/2]
	}
	sum := sorted[n/2-1] + sorted[n/2]
	half := sum / 2
	if sum%2 == 1 && half%2 == 1 {
		half++
	}
	return half
}
