// Package backtest measures a pricing policy on a history of quotes. It runs the production
// code of internal/pricing with a virtual clock and simulates faulty markets, such as
// markets that are late, shuffled or in another currency. It compares the results with
// limits. The same data and seed give the same results.
//
// The package does not compute prices, so its measurements may be floating-point numbers.
package backtest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"assay/internal/money"
	"assay/internal/pricing"
)

// Options configures Run.
type Options struct {
	Policy pricing.Policy
	Seed   uint64
	Names  int  // approximate number of names; 0 means all
	Quick  bool // whether to poison a single market instead of each one
	Plots  bool // whether to draw plots
	// Progress is called before each experiment with the experiment's name, the number of
	// completed experiments and the number of all experiments. It may be nil.
	Progress func(name string, done, all int)
}

// Measure is a measured value and its limits.
type Measure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Low   float64 `json:"low,omitempty"`  // lowest allowed value
	High  float64 `json:"high,omitempty"` // highest allowed value
	Unit  string  `json:"unit,omitempty"` // such as %, names or x
	Bound string  `json:"bound"`          // <=, >=, within, or empty for no limit
}

// OK reports whether the value is within its limits.
func (m Measure) OK() bool {
	switch m.Bound {
	case "<=":
		return m.Value <= m.High
	case ">=":
		return m.Value >= m.Low
	case "within":
		return m.Value >= m.Low && m.Value <= m.High
	default:
		return true
	}
}

func atMost(name string, value, high float64, unit string) Measure {
	return Measure{Name: name, Value: value, High: high, Unit: unit, Bound: "<="}
}

func atLeast(name string, value, low float64, unit string) Measure {
	return Measure{Name: name, Value: value, Low: low, Unit: unit, Bound: ">="}
}

func inRange(name string, value, low, high float64, unit string) Measure {
	return Measure{Name: name, Value: value, Low: low, High: high, Unit: unit, Bound: "within"}
}

func figure(name string, value float64, unit string) Measure {
	return Measure{Name: name, Value: value, Unit: unit}
}

// Result is the outcome of one experiment.
type Result struct {
	Experiment string    `json:"experiment"`
	Measures   []Measure `json:"measures,omitempty"`
	Skipped    string    `json:"skipped,omitempty"` // reason why the experiment was skipped
	Plots      []Plot    `json:"-"`
}

// OK reports whether every measure is within its limits.
func (r *Result) OK() bool {
	return !slices.ContainsFunc(r.Measures, func(m Measure) bool { return !m.OK() })
}

// check marks the result as skipped if a measure has no value, because no name or run
// qualified for it.
func (r *Result) check() {
	for _, m := range r.Measures {
		if math.IsNaN(m.Value) || math.IsInf(m.Value, 0) {
			r.Skipped, r.Measures = "too few names or runs for "+m.Name, nil
			return
		}
	}
}

// experiment is one experiment of Run.
type experiment struct {
	name  string
	needs func(*Data) string // returns why the data is insufficient, or ""
	run   func(*lab) ([]Measure, error)
}

// lab is the input of one experiment. Each experiment has its own random generator, so its
// results do not depend on other experiments.
type lab struct {
	ctx   context.Context //nolint:containedctx // lab exists only during one call of Run
	data  *Data
	opts  Options
	rand  *rand.Rand
	plots []Plot
	bytes float64 // result of Sim.historyBytes
}

// Run performs all experiments. It skips those that need more data.
func Run(ctx context.Context, d *Data, o Options) ([]Result, error) {
	d = d.sample(o.Names)
	all := experiments()
	var out []Result
	for i, e := range all {
		if o.Progress != nil {
			o.Progress(e.name, i, len(all))
		}
		res := Result{Experiment: e.name, Skipped: e.needs(d)}
		if res.Skipped == "" {
			l := &lab{ctx: ctx, data: d, opts: o, rand: rand.New(rand.NewPCG(o.Seed, uint64(i)))}
			var err error
			if res.Measures, err = e.run(l); err != nil {
				return out, fmt.Errorf("%s: %w", e.name, err)
			}
			res.check()
			if o.Plots {
				res.Plots = l.plots
			}
		}
		out = append(out, res)
	}
	return out, nil
}

func experiments() []experiment {
	return []experiment{
		{"leave one market out", markets(3), leaveOneOut},
		{"a market drops out", markets(3), dropOut},
		{"two quotes more than 2x apart", markets(5), twoQuotes},
		{"ok against unseen quotes", markets(5), unseen},
		{"one quote x10, x100, x0.1", markets(5), oneWrong},
		{"clean data", markets(3), clean},
		{"unchanged history", several, replayed},
		{"poison, several markets", markets(5), poisoned},
		{"crash", longSeries, crashes},
		{"poison, one market", longSeries, poisonedAlone},
	}
}

// markets returns a requirement that at least fewest markets have quotes at one time.
func markets(fewest int) func(*Data) string {
	return func(d *Data) string {
		if _, at := d.fullest(); len(at) < fewest {
			return fmt.Sprintf("needs %d markets at one time, has %d", fewest, len(at))
		}
		return ""
	}
}

func several(d *Data) string {
	if n := len(d.Times); n < 3 {
		return fmt.Sprintf("needs 3 times, has %d", n)
	}
	return ""
}

func longSeries(d *Data) string {
	t, n := len(d.Times), len(d.Names)
	if t < 3 || d.Times[t-1].Sub(d.Times[0]) < 14*24*time.Hour || n < 1000 {
		return fmt.Sprintf("needs 3 times over 14 days and 1,000 names, has %d and %d", t, n)
	}
	return ""
}

// fullest returns the index of the time with responses of the most markets, and the indices of
// these markets. If there are several such times, it returns the last one.
func (d *Data) fullest() (t int, markets []int) {
	for i, qs := range d.Quotes {
		var m []int
		for k, q := range qs {
			if q != nil {
				m = append(m, k)
			}
		}
		if len(m) >= len(markets) {
			t, markets = i, m
		}
	}
	return t, markets
}

func logRatio(a, b money.Micro) float64 { return math.Abs(math.Log(float64(a) / float64(b))) }

func percentile(v []float64, p float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	v = slices.Sorted(slices.Values(v))
	return v[min(len(v)-1, int(p*float64(len(v))))]
}

func percentOf(n, of int) float64 { return 100 * float64(n) / float64(max(1, of)) }

func epoch() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }
