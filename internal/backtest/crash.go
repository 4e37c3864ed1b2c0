package backtest

import (
	"fmt"
	"math"

	"assay/internal/money"
	"assay/internal/pricing"
)

const (
	warmup    = 16 // number of runs before the fault or the crash: eight days
	crashRuns = 8  // number of runs after the crash
)

// crashes measures prices after a fall of class ★ by 41 %, while some markets are one day
// late.
func crashes(l *lab) ([]Measure, error) {
	var out []Measure
	late := 0
	for _, c := range []struct {
		markets, late, steps int
		limit                float64
	}{{5, 2, 1, 99}, {5, 3, 1, 99}, {2, 1, 7, 99}, {4, 1, 7, 99}, {1, 0, 1, 98}} {
		first, worst, wrong, err := l.crash(c.markets, c.late, c.steps)
		if err != nil {
			return nil, err
		}
		late += wrong
		name := fmt.Sprintf("★ within 10 %%, %d of %d late", c.late, c.markets)
		if c.steps > 1 {
			name += fmt.Sprintf(", %d steps", c.steps)
		}
		out = append(out, atLeast(name, first, c.limit, "%"))
		if c.steps > 1 {
			out = append(out, figure(name+", worst run of the fall", worst, "%"))
		}
	}
	return append(out, atMost("live markets reported as late", float64(late), 0, "runs"),
		figure("stored responses of eight days, per name and market", l.bytes, "bytes")), nil
}

// crash simulates one fall. It returns the share of class ★ within 10 % of the truth, after
// the first and after the worst run of the fall. The result wrong is the number of runs in
// which a live market was reported as late.
func (l *lab) crash(markets, late, steps int) (first, worst float64, wrong int, err error) {
	w := l.fromSeries(l.longest(), 0, warmup+crashRuns, markets)
	w.fall(pricing.Star, warmup, steps, 0.59)
	sim := NewSim(w.names, w.markets, l.opts.Policy)
	worst = 100
	var scale float64
	var runs []*Outcome
	shares := []line{{name: "within 2 %"}, {name: "within 5 %"}, {name: "within 10 %"}}
	for run := range w.truth {
		if err := l.ctx.Err(); err != nil {
			return 0, 0, 0, err
		}
		responses := make([]Quotes, markets)
		for k := range responses {
			responses[k] = w.quotes[run][k]
			if k < late {
				responses[k] = w.quotes[max(0, run-2)][k]
			}
		}
		o, err := sim.Run(w.at(run), responses)
		if err != nil {
			return 0, 0, 0, err
		}
		runs = append(runs, o)
		for k, m := range o.Markets {
			if m.Late && k >= late {
				wrong++
			}
		}
		switch {
		case run == warmup-1:
			scale = w.scale(run, o)
		case run >= warmup && run < warmup+steps:
			share := w.within(run, o, scale, 1.1)
			if worst = min(worst, share); run == warmup {
				first = share
			}
		}
		for k, f := range []float64{1.02, 1.05, 1.1} {
			if run >= warmup {
				shares[k].values = append(shares[k].values, w.within(run, o, scale, f))
			}
		}
	}
	if name := fmt.Sprintf("crash-%d-of-%d", late, markets); l.opts.Plots {
		l.guardDecisions(name, runs)
		l.plots = append(l.plots, chart(name+"-within", "★ within 2, 5 and 10 % of the truth since the crash: "+name, "%", shares), w.plot(name, runs[warmup], scale))
	}
	l.bytes = sim.historyBytes()
	return first, worst, wrong, nil
}

// scale returns the median of price/truth, which is the level of the prices.
func (w *scenario) scale(run int, o *Outcome) float64 {
	var v []float64
	for i, it := range o.Items {
		if it.Price > 0 && w.truth[run][i] > 0 {
			v = append(v, math.Log(float64(it.Price)/float64(w.truth[run][i])))
		}
	}
	return math.Exp(percentile(v, 0.5))
}

// within returns the share of class ★ with a price within a factor of the truth.
func (w *scenario) within(run int, o *Outcome, scale, factor float64) float64 {
	n, all := 0, 0
	for i, it := range o.Items {
		if pricing.ClassOf(w.names[i]) != pricing.Star || it.Price == 0 || w.truth[run][i] == 0 {
			continue
		}
		all++
		if math.Abs(math.Log(float64(it.Price)/(float64(w.truth[run][i])*scale))) <= math.Log(factor) {
			n++
		}
	}
	return percentOf(n, all)
}

// plot draws the prices of class ★ against the truth after the first run of the crash.
func (w *scenario) plot(name string, o *Outcome, scale float64) Plot {
	var xs, ys []float64
	for i, it := range o.Items {
		if truth := w.truth[warmup][i]; pricing.ClassOf(w.names[i]) == pricing.Star && it.Price > 0 && truth > 0 {
			xs, ys = append(xs, float64(truth)*scale/money.Scale), append(ys, float64(it.Price)/money.Scale)
		}
	}
	return scatter(name+"-truth", "Price against truth after the first run: "+name, xs, ys)
}

// longest returns the market with the most responses.
func (l *lab) longest() int {
	best, most := 0, -1
	for k := range l.data.Markets {
		n := 0
		for _, qs := range l.data.Quotes {
			if qs[k] != nil {
				n++
			}
		}
		if n > most {
			best, most = k, n
		}
	}
	return best
}
