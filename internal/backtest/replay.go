package backtest

import (
	"math"
	"slices"

	"assay/internal/money"
	"assay/internal/pricing"
)

// replayed runs the unchanged history. It measures how far the dispersion J of real responses
// stays below its limit, and it counts the decisions of the guard.
func replayed(l *lab) ([]Measure, error) {
	d := l.data
	sim := NewSim(d.Names, d.Markets, l.opts.Policy)
	margin, worst, refused, late := math.Inf(1), 0.0, 0, 0
	var runs []*Outcome
	for t, qs := range d.Quotes {
		if err := l.ctx.Err(); err != nil {
			return nil, err
		}
		o, err := sim.Run(d.Times[t], qs)
		if err != nil {
			return nil, err
		}
		runs = append(runs, o)
		for _, m := range o.Markets {
			if m.Refusal != nil {
				refused++
			}
			if m.Late {
				late++
			}
			if m.Check.Dispersion > 0 {
				margin, worst = min(margin, float64(m.Check.DispersionLimit)/float64(m.Check.Dispersion)), max(worst, float64(m.Check.Dispersion)/10_000)
			}
		}
	}
	within := hindsight(runs)
	held, released := l.guardDecisions("history", runs)
	return []Measure{
		atLeast("lowest limit of J / J", margin, 2, "x"),
		figure("highest J", worst, "%"),
		atMost("real responses refused", float64(refused), 0, ""),
		figure("runs with a late market", float64(late), ""),
		figure("held, per run", held, "items"),
		figure("released or accepted immediately, per run", released, "items"),
		figure("within 2 % of hindsight", within[0], "%"),
		figure("within 5 % of hindsight", within[1], "%"),
		figure("within 10 % of hindsight", within[2], "%"),
	}, nil
}

// guardDecisions returns the average numbers per run of prices that the guard held, and of
// those that it released or accepted immediately. It also plots both numbers.
func (l *lab) guardDecisions(name string, runs []*Outcome) (held, released float64) {
	lines := []line{{name: "held"}, {name: "released, accepted immediately"}}
	for _, o := range runs {
		var h, r float64
		for _, it := range o.Items {
			switch it.Decision {
			case pricing.HeldBack:
				h++
			case pricing.Released, pricing.TakenAtOnce:
				r++
			}
		}
		held, released = held+h, released+r
		lines[0].values, lines[1].values = append(lines[0].values, h), append(lines[1].values, r)
	}
	l.plots = append(l.plots, chart(name+"-guard", "Held and released items: "+name, "", lines))
	n := float64(max(1, len(runs)))
	return held / n, released / n
}

// hindsight returns the shares of prices within 2, 5 and 10 % of a reference. The reference
// is the median of the estimates of the previous, the current and the next run, so an absurd
// quote in only one of these runs does not affect it.
func hindsight(runs []*Outcome) [3]float64 {
	var n [3]int
	all := 0
	for t := 1; t+1 < len(runs); t++ {
		for i, it := range runs[t].Items {
			three := []money.Micro{runs[t-1].Items[i].Estimated, it.Estimated, runs[t+1].Items[i].Estimated}
			if slices.Sort(three); three[0] == 0 || it.Price == 0 {
				continue
			}
			all++
			for k, limit := range []float64{0.02, 0.05, 0.1} {
				if math.Abs(float64(it.Price)/float64(three[1])-1) <= limit {
					n[k]++
				}
			}
		}
	}
	return [3]float64{percentOf(n[0], all), percentOf(n[1], all), percentOf(n[2], all)}
}
