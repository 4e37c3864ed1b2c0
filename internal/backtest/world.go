package backtest

import (
	"math"
	"math/rand/v2"
	"time"

	"assay/internal/money"
	"assay/internal/pricing"
)

// step is the time between two runs of a made world.
const step = 12 * time.Hour

// world makes the responses of several markets, run by run, from real prices. The
// quotes of every run are kept, so that a market can be late.
type world struct {
	names   []string
	markets []MarketInfo
	truth   [][]money.Micro // by run and name; 0: not offered
	quotes  [][]Quotes      // by run and market
}

// at returns the time of a run.
func (w *world) at(run int) time.Time { return epoch().Add(time.Duration(run) * step) }

func scaled(m money.Micro, f float64) money.Micro {
	if m == 0 {
		return 0
	}
	// Whole cents from one unit on, as markets quote.
	v := float64(m) * f
	if v >= money.Scale {
		return money.Micro(math.Round(v/10_000)) * 10_000
	}
	return money.Micro(max(1, math.Round(v/1000))) * 1000
}

// weekly makes a world of runs from one market's series: each name goes from one
// price to the next at a random run between them. Each made market has a level and
// a deviation of its own for each name, and follows a change in the same run or,
// one time in ten, in the next.
func (l *lab) weekly(market int, from, runs, markets int) *world {
	w := &world{}
	for k := range markets {
		w.markets = append(w.markets, MarketInfo{Name: string(rune('a' + k)), Currency: l.data.Markets[market].Currency})
	}
	w.names = l.data.Names
	w.truth = make([][]money.Micro, runs)
	for r := range runs {
		w.truth[r] = make([]money.Micro, len(w.names))
	}
	for i := range w.names {
		l.walk(w, market, from, i)
	}
	w.fill(l.rand)
	return w
}

// walk fills one name's true prices.
func (l *lab) walk(w *world, market, from, i int) {
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

// fill makes every market's quotes from the truth.
func (w *world) fill(r *rand.Rand) {
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
					p = w.truth[run-1][i] // it follows in the next run
				}
				all[k][i] = scaled(p, off[k][i])
			}
		}
		w.quotes = append(w.quotes, all)
	}
}

// fall multiplies the true prices of a class from a run on, in so many steps.
func (w *world) fall(class pricing.Class, from, steps int, factor float64) {
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
