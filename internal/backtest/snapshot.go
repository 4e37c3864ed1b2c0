package backtest

import (
	"math"
	"slices"
	"time"

	"assay/internal/money"
	"assay/internal/pricing"
)

// snapshot holds the responses of all markets at one time, and the result of one run with
// them.
type snapshot struct {
	lab     *lab
	sim     *Sim
	first   *Outcome
	markets []int
	pricer  *pricing.Pricer
	priced  pricing.Priced
	quotes  []pricing.Quote
}

func (l *lab) snapshot() (*snapshot, error) {
	t, markets := l.data.fullest()
	var infos []MarketInfo
	var responses []Quotes
	for _, m := range markets {
		infos = append(infos, l.data.Markets[m])
		responses = append(responses, l.data.Quotes[t][m])
	}
	sim := NewSim(l.data.Names, infos, l.opts.Policy)
	first, err := sim.Run(epoch(), responses)
	if err != nil {
		return nil, err
	}
	return &snapshot{lab: l, markets: markets, sim: sim, first: first, pricer: pricing.NewPricer(l.opts.Policy, sim.set)}, nil
}

// offered returns the indices of the markets with an accepted quote of a name.
func (s *snapshot) offered(name int) []int {
	var out []int
	for k := range s.markets {
		if q := s.sim.markets[k].last; q != nil && q[name] > 0 {
			out = append(out, k)
		}
	}
	return out
}

// price computes the price of a name from some markets. If last is not 0, it is the
// previous price.
func (s *snapshot) price(name int, markets []int, last money.Micro) *pricing.Priced {
	s.quotes = s.quotes[:0]
	for _, k := range markets {
		s.quotes = append(s.quotes, s.sim.markets[k].quote(name))
	}
	s.pricer.Price(epoch(), s.sim.traits[name].Class, s.quotes, pricing.State{Price: last}, pricing.References{}, &s.priced)
	return &s.priced
}

// levelled returns a market's quote of a name in the form that the pricing method compares.
// For Consensus, it is adjusted by the market's level at a price.
func (s *snapshot) levelled(k, name int, price money.Micro) money.Micro {
	q := s.sim.markets[k].last[name]
	if s.lab.opts.Policy.Method != pricing.Consensus {
		return q
	}
	v, _ := money.Ratio(q, s.sim.set.LevelAt(s.sim.markets[k].id, price))
	return max(v, 1)
}

// without returns a copy of the list without the element at i.
func without(list []int, i int) []int { return slices.Delete(slices.Clone(list), i, i+1) }

// leaveOneOut compares each quote with the price from all other markets.
func leaveOneOut(l *lab) ([]Measure, error) {
	s, err := l.snapshot()
	if err != nil {
		return nil, err
	}
	var errs, truths, prices []float64
	missed, covered := 0, 0
	for name := range l.data.Names {
		markets := s.offered(name)
		if len(markets) < 2 {
			continue
		}
		for i, k := range markets {
			p := s.price(name, without(markets, i), 0)
			q := s.levelled(k, name, p.Estimated)
			e := logRatio(q, p.Estimated)
			errs = append(errs, e)
			truths, prices = append(truths, float64(q)/money.Scale), append(prices, float64(p.Estimated)/money.Scale)
			if e > math.Log(1.25) {
				missed++
			}
			if q := s.levelled(k, name, p.Consensus); q >= p.Interval.Low && q <= p.Interval.High {
				covered++
			}
		}
	}
	if l.opts.Plots && len(errs) > 0 {
		l.plots = append(l.plots, scatter("leave-one-out", "Price against the quote that was left out", truths, prices))
	}
	return []Measure{
		atMost("error p50", percentile(errs, 0.5), 0.09, ""),
		atMost("error p90", percentile(errs, 0.9), 0.34, ""),
		atMost("missed by more than 25 %", percentOf(missed, len(errs)), 16.5, "%"),
		inRange("interval covers", percentOf(covered, len(errs)), 77, 83, "%"),
		figure("quotes", float64(len(errs)), ""),
	}, nil
}

// dropOut measures how prices change when one market does not respond until its quotes are
// too old.
func dropOut(l *lab) ([]Measure, error) {
	moved, all := 0, 0
	_, markets := l.data.fullest()
	for out := range markets {
		s, err := l.snapshot()
		if err != nil {
			return nil, err
		}
		responses := make([]Quotes, len(s.markets))
		for k := range s.markets {
			if k != out {
				responses[k] = s.sim.markets[k].last
			}
		}
		before := s.sim.markets[out].last
		next, err := s.sim.Run(epoch().Add(25*time.Hour), responses)
		if err != nil {
			return nil, err
		}
		for name := range l.data.Names {
			a, b := s.first.Items[name].Price, next.Items[name].Estimated
			if a == 0 || b == 0 || before == nil || before[name] == 0 {
				continue
			}
			all++
			if logRatio(a, b) > math.Log(1.05) {
				moved++
			}
		}
	}
	return []Measure{atMost("prices that move more than 5 %", percentOf(moved, all), 20, "%")}, nil
}

// twoQuotes prices names from two quotes that differ by a factor of more than 2. The price
// of the other markets is the truth.
func twoQuotes(l *lab) ([]Measure, error) {
	s, err := l.snapshot()
	if err != nil {
		return nil, err
	}
	wrong, withLast, sure, all := 0, 0, 0, 0
	for name := range l.data.Names {
		markets := s.offered(name)
		if len(markets) < 5 {
			continue
		}
		for i := range markets {
			for j := i + 1; j < len(markets); j++ {
				rest := without(without(markets, j), i)
				truth := s.price(name, rest, 0)
				if !truth.Majority {
					continue
				}
				price := truth.Median
				if l.opts.Policy.Method == pricing.Consensus {
					price = truth.Consensus
				}
				pair := []int{markets[i], markets[j]}
				a, b := s.both(name, pair)
				if max(a, b) <= 2*min(a, b) {
					continue
				}
				all++
				near, far := min(logRatio(a, price), logRatio(b, price)), max(logRatio(a, price), logRatio(b, price))
				clear := near < math.Log(1.5) && far-near > 2*math.Log(1.3)
				if s.wrong(name, pair, 0, a, b, price) {
					wrong++
				}
				last := money.Micro(float64(price) * math.Pow(1.3, 2*l.rand.Float64()-1))
				if clear {
					sure++
					if s.wrong(name, pair, last, a, b, price) {
						withLast++
					}
				}
			}
		}
	}
	return []Measure{
		atMost("wrong side", percentOf(wrong, all), 17, "%"),
		atMost("wrong side with a last price within 1.3x", percentOf(withLast, sure), 0, "%"),
		figure("pairs", float64(all), ""),
		figure("pairs with one right quote", float64(sure), ""),
	}, nil
}

// both returns two quotes in the form that the pricing method compares.
func (s *snapshot) both(name int, pair []int) (a, b money.Micro) {
	p := s.price(name, pair, 0)
	if s.lab.opts.Policy.Method == pricing.Consensus {
		return p.Quotes[0].Levelled, p.Quotes[1].Levelled
	}
	return p.Quotes[0].Price, p.Quotes[1].Price
}

// wrong reports whether the price from a pair of quotes is nearer to the wrong quote. The
// wrong quote is the one further from the truth.
func (s *snapshot) wrong(name int, pair []int, last, a, b, truth money.Micro) bool {
	p := s.price(name, pair, last).Estimated
	near, far := a, b
	if logRatio(a, truth) > logRatio(b, truth) {
		near, far = b, a
	}
	return logRatio(p, near) >= logRatio(p, far)
}

// unseen prices each name from every subset of its quotes that excludes at least three. It
// compares the price with the excluded quotes.
func unseen(l *lab) ([]Measure, error) {
	s, err := l.snapshot()
	if err != nil {
		return nil, err
	}
	ok, missed, all := 0, 0, 0
	for name := range l.data.Names {
		markets := s.offered(name)
		for set := 1; set < 1<<len(markets); set++ {
			var seen, rest []int
			for i, k := range markets {
				if set>>i&1 == 1 {
					seen = append(seen, k)
				} else {
					rest = append(rest, k)
				}
			}
			if len(seen) < 2 || len(rest) < 3 {
				continue
			}
			all++
			p := s.price(name, seen, 0)
			if p.Status != pricing.OK {
				continue
			}
			ok++
			price := p.Estimated
			var v []float64
			for _, k := range rest {
				v = append(v, math.Log(float64(s.levelled(k, name, price))/float64(price)))
			}
			if math.Abs(median(v)) > math.Log(1.25) {
				missed++
			}
		}
	}
	return []Measure{
		atMost("ok that misses by more than 25 %", percentOf(missed, ok), 4, "%"),
		atLeast("share of ok", percentOf(ok, all), 40, "%"),
	}, nil
}

func median(v []float64) float64 {
	n := len(v)
	return (percentile(v, float64((n-1)/2)/float64(n)) + percentile(v, float64(n/2)/float64(n))) / 2
}

// oneWrong multiplies single quotes of the names that all markets quote. It measures the
// change of the price.
func oneWrong(l *lab) ([]Measure, error) {
	s, err := l.snapshot()
	if err != nil {
		return nil, err
	}
	var moves []float64
	for name := range l.data.Names {
		markets := s.offered(name)
		if len(markets) < len(s.markets) {
			continue
		}
		before := s.price(name, markets, 0).Estimated
		for _, k := range markets {
			q := &s.sim.markets[k].last[name]
			good := *q
			for _, f := range []float64{10, 100, 0.1} {
				*q = money.Micro(float64(good) * f)
				moves = append(moves, 100*(math.Exp(logRatio(s.price(name, markets, 0).Estimated, before))-1))
			}
			*q = good
		}
	}
	return []Measure{
		atMost("price moves, p50", percentile(moves, 0.5), 1, "%"),
		atMost("price moves, p90", percentile(moves, 0.9), 7, "%"),
	}, nil
}

// clean measures the statuses of prices without faults.
func clean(l *lab) ([]Measure, error) {
	s, err := l.snapshot()
	if err != nil {
		return nil, err
	}
	count := map[pricing.Status]int{}
	for _, it := range s.first.Items {
		count[it.Status]++
	}
	per := 1000 / float64(len(l.data.Names))
	return []Measure{
		atLeast("ok of 1,000", float64(count[pricing.OK])*per, 800, "names"),
		figure("thin of 1,000", float64(count[pricing.Thin])*per, "names"),
		figure("disputed of 1,000", float64(count[pricing.Disputed])*per, "names"),
		atMost("first responses refused", float64(refusals([]*Outcome{s.first})), 0, ""),
	}, nil
}
