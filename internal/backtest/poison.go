package backtest

import (
	"math"
	"math/rand/v2"
	"slices"

	"assay/internal/money"
	"assay/internal/pricing"
)

const poisonRuns = 7

// poison changes a market's quotes: run counts from 0, when it begins.
type poison struct {
	name    string
	markets int  // how many are poisoned, in the same way
	first   bool // from their first response on
	apply   change
}

// change alters the quotes of a run.
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

// shuffle exchanges the prices of a share of the names among each other, in every
// run in the same way.
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

// part multiplies a share of the names.
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

// moving makes a world from one time of several markets: in each run 6 % of the
// names change on all markets, and 3 % of the quotes by themselves, so that in a
// week 55 to 60 % change.
func (l *lab) moving(runs int) *world {
	t, markets := l.data.fullest()
	w := &world{names: l.data.Names}
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

// poisoned measures prices that are off by more than 1.5x and published as ok
// while one or three of several markets are poisoned.
func poisoned(l *lab) ([]Measure, error) {
	w := l.moving(warmup + poisonRuns)
	clean, err := l.replay(w, nil)
	if err != nil {
		return nil, err
	}
	per := 1000 / float64(len(w.names))
	out := []Measure{most("good responses refused", float64(refusals(clean)), 0, "")}
	for _, p := range poisons() {
		worst := 0
		first, last := 0, len(w.markets)
		if l.opts.Quick {
			first = l.rand.IntN(last)
			last = first + 1
		}
		for victim := first; victim < last; victim++ {
			n, err := l.poison(w, clean, p, victim)
			if err != nil {
				return nil, err
			}
			worst = max(worst, n)
		}
		out = append(out, most(p.name, float64(worst)*per, 2, "of 1,000"))
	}
	return out, nil
}

// replay runs a world; alter, if not nil, alters the responses of a run.
func (l *lab) replay(w *world, alter func(run int, responses []Quotes)) ([]*Outcome, error) {
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

// poison returns, of the worst run, how many names are off and ok.
func (l *lab) poison(w *world, clean []*Outcome, p poison, victim int) (int, error) {
	seed := l.rand.Uint64()
	outcomes, err := l.replay(w, func(run int, responses []Quotes) {
		if p.first && run < warmup {
			responses[victim] = nil // its first response comes later, and is wrong
		}
		if run < warmup {
			return
		}
		for k := range p.markets {
			m := (victim + k) % len(responses)
			responses[m] = p.apply(responses[m], run-warmup, rand.New(rand.NewPCG(seed, 1)))
		}
	})
	if err != nil {
		return 0, err
	}
	worst := 0
	for run := warmup; run < len(outcomes); run++ {
		worst = max(worst, off(outcomes[run], clean[run], nil))
	}
	return worst, nil
}

// off counts prices that are more than 1.5x away from those without the fault. With
// before, those from before the fault are not counted: a market alone that is
// refused leaves the last good price. Without it only those published as ok count.
func off(o, clean, before *Outcome) int {
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

// lonePoison measures one market alone: what counts is every price, ok or not.
func lonePoison(l *lab) ([]Measure, error) {
	w := l.weekly(l.longest(), 0, warmup+poisonRuns, 1)
	clean, err := l.replay(w, nil)
	if err != nil {
		return nil, err
	}
	out := []Measure{most("good responses refused", float64(refusals(clean)), 0, "")}
	for _, p := range poisons()[1:4] { // those that one market can reveal
		n, err := l.lone(w, clean, p, warmup)
		if err != nil {
			return nil, err
		}
		out = append(out, most(p.name+": prices off", float64(n), 0, "names"))
		if p.name == "shuffle 20 %" {
			continue
		}
		if n, err = l.lone(w, clean, p, 0); err != nil {
			return nil, err
		}
		out = append(out, most(p.name+" as the first response: prices off", float64(n), 0, "names"))
	}
	return out, nil
}

func (l *lab) lone(w *world, clean []*Outcome, p poison, from int) (int, error) {
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
		worst = max(worst, off(outcomes[run], clean[run], before))
	}
	return worst, nil
}
