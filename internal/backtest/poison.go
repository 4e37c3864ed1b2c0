package backtest

import (
	"math"
	"math/rand/v2"
	"slices"

	"assay/internal/money"
	"assay/internal/pricing"
)

const poisonRuns = 7 // number of runs with the fault

// poison is a fault in the quotes of one or several markets.
type poison struct {
	name    string
	markets int  // number of markets with this fault
	first   bool // whether the market's first response already has the fault
	apply   change
}

// change returns the faulty quotes of a run. Runs count from 0 since the fault started.
type change func(q Quotes, run int, r *rand.Rand) Quotes

func poisons() []poison {
	times := func(f float64) change {
		return func(q Quotes, _ int, _ *rand.Rand) Quotes { return q.times(f) }
	}
	drift := func(f float64) change {
		return func(q Quotes, run int, _ *rand.Rand) Quotes { return q.times(math.Pow(f, float64(run+1))) }
	}
	const cny = 7.1
	return []poison{
		{"shuffle 10 %", 1, false, shuffle(0.1)},
		{"shuffle 20 %", 1, false, shuffle(0.2)},
		{"shuffle 100 %", 1, false, shuffle(1)},
		{"constant", 1, false, constant},
		{"CNY as USD first", 1, true, times(cny)},
		{"CNY as USD later", 1, false, times(cny)},
		{"x1.95", 1, false, times(1.95)},
		{"drift 1.3", 1, false, drift(1.3)},
		{"drift 1.9", 1, false, drift(1.9)},
		{"collusion of 3, x1.95", 3, false, times(1.95)},
		{"collusion of 3, 20 % of names x3", 3, false, part(0.2, 3)},
		{"collusion of 3, shuffle 10 %", 3, false, shuffle(0.1)},
	}
}

func (q Quotes) times(f float64) Quotes {
	out := make(Quotes, len(q))
	for i, m := range q {
		out[i] = scaled(m, f)
	}
	return out
}

// shuffle permutes the prices of a share of the names. The permutation is the same in each
// run.
func shuffle(share float64) change {
	return func(q Quotes, _ int, r *rand.Rand) Quotes {
		var at []int
		for i, m := range q {
			if m > 0 && r.Float64() < share {
				at = append(at, i)
			}
		}
		out := slices.Clone(q)
		for i, j := range r.Perm(len(at)) {
			out[at[i]] = q[at[j]]
		}
		return out
	}
}

func constant(q Quotes, _ int, _ *rand.Rand) Quotes {
	out := make(Quotes, len(q))
	for i, m := range q {
		if m > 0 {
			out[i] = 5 * money.Scale
		}
	}
	return out
}

// part multiplies the prices of a share of the names.
func part(share, f float64) change {
	return func(q Quotes, _ int, r *rand.Rand) Quotes {
		out := slices.Clone(q)
		for i, m := range q {
			if r.Float64() < share {
				out[i] = scaled(m, f)
			}
		}
		return out
	}
}

// fromSnapshot generates a scenario from the quotes of all markets at one time. In each
// run, 6 % of the names change on all markets, and 3 % of the quotes change independently.
// As a result, 55 to 60 % of the quotes change in a week.
func (l *lab) fromSnapshot(runs int) *scenario {
	t, markets := l.data.fullest()
	w := &scenario{names: l.data.Names}
	var now []Quotes
	for _, m := range markets {
		w.markets = append(w.markets, l.data.Markets[m])
		now = append(now, slices.Clone(l.data.Quotes[t][m]))
	}
	for range runs {
		next := make([]Quotes, len(now))
		for k := range now {
			next[k] = slices.Clone(now[k])
		}
		for i := range w.names {
			common := 1.0
			if l.rand.Float64() < 0.06 {
				common = math.Exp(0.08 * l.rand.NormFloat64())
			}
			for k := range next {
				f := common
				if l.rand.Float64() < 0.03 {
					f *= math.Exp(0.05 * l.rand.NormFloat64())
				}
				if f != 1 {
					next[k][i] = scaled(next[k][i], f)
				}
			}
		}
		w.quotes = append(w.quotes, next)
		now = next
	}
	return w
}

// poisoned counts the prices that are wrong by a factor above 1.5 and have status ok, while
// one or three of several markets are poisoned.
func poisoned(l *lab) ([]Measure, error) {
	w := l.fromSnapshot(warmup + poisonRuns)
	clean, err := l.replay(w, nil)
	if err != nil {
		return nil, err
	}
	per := 1000 / float64(len(w.names))
	out := []Measure{atMost("good responses refused", float64(refusals(clean)), 0, "")}
	for _, p := range poisons() {
		worst := 0
		first, last := 0, len(w.markets)
		if l.opts.Quick {
			first = l.rand.IntN(last)
			last = first + 1
		}
		for target := first; target < last; target++ {
			n, err := l.poison(w, clean, p, target)
			if err != nil {
				return nil, err
			}
			worst = max(worst, n)
		}
		out = append(out, atMost(p.name, float64(worst)*per, 2, "of 1,000"))
	}
	return out, nil
}

// replay runs a scenario. If alter is not nil, it can change the responses of a run.
func (l *lab) replay(w *scenario, alter func(run int, responses []Quotes)) ([]*Outcome, error) {
	sim := NewSim(w.names, w.markets, l.opts.Policy)
	var out []*Outcome
	for run := range w.quotes {
		if err := l.ctx.Err(); err != nil {
			return nil, err
		}
		responses := slices.Clone(w.quotes[run])
		if alter != nil {
			alter(run, responses)
		}
		o, err := sim.Run(w.at(run), responses)
		if err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, nil
}

// refusals counts refused responses.
func refusals(runs []*Outcome) int {
	n := 0
	for _, o := range runs {
		for _, m := range o.Markets {
			if m.Refusal != nil {
				n++
			}
		}
	}
	return n
}

// poison runs a scenario with a fault in p.markets markets, beginning with the market target.
// It returns the number of wrong prices with status ok in the worst run.
func (l *lab) poison(w *scenario, clean []*Outcome, p poison, target int) (int, error) {
	seed := l.rand.Uint64()
	outcomes, err := l.replay(w, func(run int, responses []Quotes) {
		if p.first && run < warmup {
			responses[target] = nil // the first response of this market is faulty
		}
		if run < warmup {
			return
		}
		for k := range p.markets {
			m := (target + k) % len(responses)
			responses[m] = p.apply(responses[m], run-warmup, rand.New(rand.NewPCG(seed, 1)))
		}
	})
	if err != nil {
		return 0, err
	}
	worst := 0
	for run := warmup; run < len(outcomes); run++ {
		worst = max(worst, countWrong(outcomes[run], clean[run], nil))
	}
	return worst, nil
}

// countWrong counts the prices that differ from those without the fault by a factor above
// 1.5. If before is nil, it counts only prices with status ok. Otherwise it skips prices that
// have not changed since before the fault. They are correct, because the only market's
// response was refused.
func countWrong(o, clean, before *Outcome) int {
	n := 0
	for i, it := range o.Items {
		if it.Price == 0 || clean.Items[i].Price == 0 || (before == nil && it.Status != pricing.OK) {
			continue
		}
		if before != nil && it.Price == before.Items[i].Price {
			continue
		}
		if logRatio(it.Price, clean.Items[i].Price) > math.Log(1.5) {
			n++
		}
	}
	return n
}

// poisonedAlone poisons the only market. It counts wrong prices with any status.
func poisonedAlone(l *lab) ([]Measure, error) {
	w := l.fromSeries(l.longest(), 0, warmup+poisonRuns, 1)
	clean, err := l.replay(w, nil)
	if err != nil {
		return nil, err
	}
	out := []Measure{atMost("good responses refused", float64(refusals(clean)), 0, "")}
	for _, p := range poisons()[1:4] { // faults that are detectable without other markets
		n, err := l.poisonAlone(w, clean, p, warmup)
		if err != nil {
			return nil, err
		}
		out = append(out, atMost(p.name+": wrong prices", float64(n), 0, "names"))
		if p.name == "shuffle 20 %" {
			continue
		}
		if n, err = l.poisonAlone(w, clean, p, 0); err != nil {
			return nil, err
		}
		out = append(out, atMost(p.name+" as the first response: wrong prices", float64(n), 0, "names"))
	}
	return out, nil
}

// poisonAlone applies a fault to the only market from a run on. It returns the number of
// wrong prices in the worst run.
func (l *lab) poisonAlone(w *scenario, clean []*Outcome, p poison, from int) (int, error) {
	seed := l.rand.Uint64()
	short := *w
	if from == 0 {
		short.quotes = w.quotes[:3]
	}
	outcomes, err := l.replay(&short, func(run int, responses []Quotes) {
		if run >= from {
			responses[0] = p.apply(responses[0], run-from, rand.New(rand.NewPCG(seed, 1)))
		}
	})
	if err != nil {
		return 0, err
	}
	worst := 0
	for run := from; run < len(outcomes); run++ {
		before := &Outcome{Items: make([]Item, len(w.names))}
		if from > 0 {
			before = outcomes[from-1]
		}
		worst = max(worst, countWrong(outcomes[run], clean[run], before))
	}
	return worst, nil
}
