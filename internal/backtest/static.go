package backtest

import (
	"math"
	"slices"
	"time"

	"assay/internal/money"
	"assay/internal/pricing"
)

// shot is all markets at one time, after one run of the production code.
type shot struct {
	lab     *lab
	sim     *Sim
	first   *Outcome
	markets []int
	pricer  *pricing.Pricer
	priced  pricing.Priced
	quotes  []pricing.Quote
}

func (l *lab) shot() (*shot, error) {
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
	return &shot{lab: l, markets: markets, sim: sim, first: first, pricer: pricing.NewPricer(l.opts.Policy, sim.set)}, nil
}

// offered lists the markets of the shot that quote a name and were accepted.
func (s *shot) offered(name int) []int {
	var out []int
	for k := range s.markets {
		if q := s.sim.markets[k].last; q != nil && q[name] > 0 {
			out = append(out, k)
		}
	}
	return out
}

// price prices a name from some markets, with a last price if that is not 0.
func (s *shot) price(name int, markets []int, last money.Micro) *pricing.Priced {
	s.quotes = s.quotes[:0]
	for _, k := range markets {
		s.quotes = append(s.quotes, s.sim.markets[k].quote(name))
	}
	s.pricer.Price(epoch(), s.sim.traits[name].Class, s.quotes, pricing.State{Price: last}, pricing.References{}, &s.priced)
	return &s.priced
}

// levelled returns a market's quote of a name as the method compares it, near a
// price.
func (s *shot) levelled(k, name int, price money.Micro) money.Micro {
	q := s.sim.markets[k].last[name]
	if s.lab.opts.Policy.Method != pricing.Consensus {
		return q
	}
	v, _ := money.Ratio(q, s.sim.set.LevelAt(s.sim.markets[k].id, price))
	return max(v, 1)
}

// without returns the list without one element.
func without(list []int, i int) []int { return slices.Delete(slices.Clone(list), i, i+1) }

func leaveOneOut(l *lab) ([]Measure, error) {
	s, err := l.shot()
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
		most("error p50", percentile(errs, 0.5), 0.09, ""),
		most("error p90", percentile(errs, 0.9), 0.34, ""),
		most("missed by more than 25 %", percentOf(missed, len(errs)), 16.5, "%"),
		between("interval covers", percentOf(covered, len(errs)), 77, 83, "%"),
		figure("quotes", float64(len(errs)), ""),
	}, nil
}

// dropOut lets one market after another be silent for longer than its maximum age.
func dropOut(l *lab) ([]Measure, error) {
	moved, all := 0, 0
	_, markets := l.data.fullest()
	for out := range markets {
		s, err := l.shot()
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
	return []Measure{most("prices that move more than 5 %", percentOf(moved, all), 20, "%")}, nil
}

func twoQuotes(l *lab) ([]Measure, error) {
	s, err := l.shot()
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
		most("wrong side", percentOf(wrong, all), 17, "%"),
		most("wrong side with a last price within 1.3x", percentOf(withLast, sure), 0, "%"),
		figure("pairs", float64(all), ""),
		figure("pairs with one right quote", float64(sure), ""),
	}, nil
}

// both returns two quotes as the method compares them.
func (s *shot) both(name int, pair []int) (a, b money.Micro) {
	p := s.price(name, pair, 0)
	if s.lab.opts.Policy.Method == pricing.Consensus {
		return p.Quotes[0].Levelled, p.Quotes[1].Levelled
	}
	return p.Quotes[0].Price, p.Quotes[1].Price
}

// wrong reports whether the price of a pair is nearer to the quote that is further
// from the truth.
func (s *shot) wrong(name int, pair []int, last, a, b, truth money.Micro) bool {
	p := s.price(name, pair, last).Estimated
	near, far := a, b
	if logRatio(a, truth) > logRatio(b, truth) {
		near, far = b, a
	}
	return logRatio(p, near) >= logRatio(p, far)
}

// unseen prices every name from each part of its quotes that leaves three or more
// unseen.
func unseen(l *lab) ([]Measure, error) {
	s, err := l.shot()
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
			if math.Abs(middle(v)) > math.Log(1.25) {
				missed++
			}
		}
	}
	return []Measure{
		most("ok that misses by more than 25 %", percentOf(missed, ok), 4, "%"),
		least("share of ok", percentOf(ok, all), 40, "%"),
	}, nil
}

func middle(v []float64) float64 {
	n := len(v)
	return (percentile(v, float64((n-1)/2)/float64(n)) + percentile(v, float64(n/2)/float64(n))) / 2
}

// oneWrong multiplies one quote of every name that six markets (or as many as there
// are) quote, and measures how far the price moves.
func oneWrong(l *lab) ([]Measure, error) {
	s, err := l.shot()
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
		most("price moves, p50", percentile(moves, 0.5), 1, "%"),
		most("price moves, p90", percentile(moves, 0.9), 7, "%"),
	}, nil
}

func clean(l *lab) ([]Measure, error) {
	s, err := l.shot()
	if err != nil {
		return nil, err
	}
	count := map[pricing.Status]int{}
	for _, it := range s.first.Items {
		count[it.Status]++
	}
	per := 1000 / float64(len(l.data.Names))
	return []Measure{
		least("ok of 1,000", float64(count[pricing.OK])*per, 800, "names"),
		figure("thin of 1,000", float64(count[pricing.Thin])*per, "names"),
		figure("disputed of 1,000", float64(count[pricing.Disputed])*per, "names"),
		most("first responses refused", float64(refusals([]*Outcome{s.first})), 0, ""),
	}, nil
}
