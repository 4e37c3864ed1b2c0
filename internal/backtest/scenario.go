package backtest

import (
	"math"
	"math/rand/v2"
	"time"

	"assay/internal/money"
	"assay/internal/pricing"
)

// step is the time between two runs of a scenario.
const step = 12 * time.Hour

// scenario holds generated responses of several markets for a sequence of runs. They are
// derived from real prices. All runs are generated in advance, so that a late market can
// return the quotes of an earlier run.
type scenario struct {
	names   []string
	markets []MarketInfo
	truth   [][]money.Micro // true price by run and name; 0 if not offered
	quotes  [][]Quotes      // quotes by run and market
}

// at returns the time of a run.
func (w *scenario) at(run int) time.Time { return epoch().Add(time.Duration(run) * step) }

// scaled returns m times f, rounded like the prices of real markets.
func scaled(m money.Micro, f float64) money.Micro {
	if m == 0 {
		return 0
	}
	// Prices of at least one unit of currency have whole cents.
	v := float64(m) * f
	if v >= money.Scale {
		return money.Micro(math.Round(v/10_000)) * 10_000
	}
	return money.Micro(max(1, math.Round(v/1000))) * 1000
}

// fromSeries generates a scenario from the history of one market. Between two recorded
// times, the true price of each name changes in a random run. Each generated market has a
// fixed deviation from the true price of each name. One change in ten reaches a market one
// run later.
func (l *lab) fromSeries(market int, from, runs, markets int) *scenario {
	w := &scenario{}
	for k := range markets {
		w.markets = append(w.markets, MarketInfo{Name: string(rune('a' + k)), Currency: l.data.Markets[market].Currency})
	}
	w.names = l.data.Names
	w.truth = make([][]money.Micro, runs)
	for r := range runs {
		w.truth[r] = make([]money.Micro, len(w.names))
	}
	for i := range w.names {
		l.fillTruth(w, market, from, i)
	}
	w.fill(l.rand)
	return w
}

// fillTruth sets the true prices of one name.
func (l *lab) fillTruth(w *scenario, market, from, i int) {
	d := l.data
	t, next := from, 0
	begin := d.Times[from]
	for r := range w.truth {
		now := begin.Add(time.Duration(r) * step)
		for t+1 < len(d.Times) && !now.Before(d.Times[t+1]) {
			t, next = t+1, 0
		}
		price := l.quote(t, market, i)
		if t+1 < len(d.Times) {
			span := max(1, int(d.Times[t+1].Sub(d.Times[t])/step))
			if next == 0 {
				next = 1 + l.rand.IntN(span)
			}
			if int(now.Sub(d.Times[t])/step) >= next {
				price = l.quote(t+1, market, i)
			}
		}
		w.truth[r][i] = price
	}
}

func (l *lab) quote(t, market, n int) money.Micro {
	if q := l.data.Quotes[t][market]; q != nil {
		return q[n]
	}
	return 0
}

// fill generates the quotes of all markets from the true prices.
func (w *scenario) fill(r *rand.Rand) {
	levels := []float64{1, 0.82, 1.18, 0.9, 1.35, 0.75, 1.05}
	off := make([][]float64, len(w.markets))
	for k := range off {
		off[k] = make([]float64, len(w.names))
		for i := range off[k] {
			off[k][i] = levels[k%len(levels)] * math.Exp(0.03*r.NormFloat64())
		}
	}
	for run := range w.truth {
		all := make([]Quotes, len(w.markets))
		for k := range all {
			all[k] = make(Quotes, len(w.names))
			for i := range all[k] {
				p := w.truth[run][i]
				if run > 0 && p != w.truth[run-1][i] && r.IntN(10) == 0 {
					p = w.truth[run-1][i] // this market changes in the next run
				}
				all[k][i] = scaled(p, off[k][i])
			}
		}
		w.quotes = append(w.quotes, all)
	}
}

// fall multiplies the prices of a class by a factor. The change starts at the run from and
// is distributed over a number of steps.
func (w *scenario) fall(class pricing.Class, from, steps int, factor float64) {
	for run := from; run < len(w.truth); run++ {
		f := math.Pow(factor, float64(min(run-from+1, steps))/float64(steps))
		for i, n := range w.names {
			if pricing.ClassOf(n) == class {
				w.truth[run][i] = scaled(w.truth[run][i], f)
				for k := range w.quotes[run] {
					w.quotes[run][k][i] = scaled(w.quotes[run][k][i], f)
				}
			}
		}
	}
}
