package pricing

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"
)

// Half of the markets rise slowly together. Which half tells the truth cannot be
// known, so no price is ok by then.
func TestRound_MarketsOfWhichHalfMovedAwayAreSuspect(t *testing.T) {
	for _, markets := range []int{2, 4, 6} {
		f := newFair(rand.New(rand.NewPCG(9, 2)), markets, 1000)
		f.run(t, 6)
		var last Result
		for range 6 {
			for k := range markets / 2 {
				for i := range f.quotes[k] {
					f.quotes[k][i] = cents(float64(f.quotes[k][i]) / 1e6 * 1.1)
				}
			}
			last = f.round(t, nil)
		}
		for _, m := range last.Set.Markets {
			if !f.now.Before(m.WideUntil) {
				t.Errorf("of %d markets half moved away: the items of market %d are not suspect", markets, m.ID)
			}
		}
	}
}

// contradicting returns a change of some markets' responses: every name costs 3.5 times as much
// or a part of that, the same on all of them.
func contradicting(f *fair, is func(market int) bool) func(int, *Response) *Response {
	return func(market int, resp *Response) *Response {
		if !is(market) {
			return resp
		}
		q := slices.Clone(f.quotes[market])
		for i := range q {
			x := 3.5
			if i/5%2 == 0 { // by skin: its wears agree
				x = 1 / x
			}
			q[i] = cents(float64(q[i]) / 1e6 * x)
		}
		return f.response(q)
	}
}

// Of first responses two halves contradict each other. Which half tells the truth
// cannot be known.
func TestRound_FirstResponsesOfTwoEqualCampsAreContested(t *testing.T) {
	for _, markets := range []int{2, 4, 6} {
		f := newFair(rand.New(rand.NewPCG(9, 4)), markets, 1000)
		res := f.round(t, contradicting(f, func(market int) bool { return market%2 == 0 }))
		for k, o := range res.Markets {
			if o.Refusal == nil || o.Refusal.Anomaly != Contradicted || (o.Refusal.Rival-o.ID)%2 == 0 {
				t.Errorf("%d markets: market %d: %+v", markets, o.ID, o.Refusal)
			}
			if k == 0 {
				f.markets[k].State.AcceptedAt = f.now
			}
		}
		// An operator's acceptance of one is that of its camp, and as long as the others
		// contradict it, no price is ok.
		for range 3 {
			f.now = f.now.Add(12 * time.Hour)
			res = f.round(t, contradicting(f, func(market int) bool { return market%2 == 0 }))
		}
		for k, o := range res.Markets {
			if k%2 == 0 && o.Refusal != nil {
				t.Errorf("%d markets: market %d agrees with the accepted one: %v", markets, o.ID, o.Refusal)
			}
			if k%2 == 1 && o.Refusal == nil {
				t.Errorf("%d markets: market %d contradicts the accepted one", markets, o.ID)
			}
			if markets > 2 && k%2 == 0 && !f.now.Before(res.Set.Market(o.ID).WideUntil) {
				t.Errorf("%d markets: the items of market %d are not suspect", markets, o.ID)
			}
		}
	}
}

// Who accepts both sides of a contradiction has not said which is right: between them
// there is no price.
func TestRound_AcceptingBothCampsAcceptsNone(t *testing.T) {
	for _, markets := range []int{2, 4, 6} {
		f := newFair(rand.New(rand.NewPCG(9, 6)), markets, 1000)
		quotes := contradicting(f, func(market int) bool { return market%2 == 0 })
		f.round(t, quotes)
		for k := range f.markets {
			f.markets[k].State.AcceptedAt = f.now
		}
		f.now = f.now.Add(time.Hour)
		for _, o := range f.round(t, quotes).Markets {
			if o.Refusal == nil || o.Refusal.Anomaly != Contradicted {
				t.Errorf("%d markets: market %d: %+v", markets, o.ID, o.Refusal)
			}
		}
		f.markets[0].State.AcceptedAt = f.now
		f.now = f.now.Add(time.Hour)
		f.round(t, quotes)
		f.now = f.now.Add(12 * time.Hour)
		for k, o := range f.round(t, quotes).Markets {
			if good := o.Refusal == nil; good != (k%2 == 0) {
				t.Errorf("%d markets: market %d after one was accepted: %+v", markets, o.ID, o.Refusal)
			}
		}
	}
}

// What is known may have been wrong from the beginning. New markets that agree with
// each other show it.
func TestRound_NewMarketsThatContradictTheKnownOnesMakeThemSuspect(t *testing.T) {
	for _, tt := range []struct{ known, joining int }{{1, 2}, {2, 2}, {2, 4}, {3, 3}} {
		f := newFair(rand.New(rand.NewPCG(9, 5)), tt.known+tt.joining, 1000)
		wrong := contradicting(f, func(market int) bool { return market < tt.known })
		joined := false
		change := func(market int, resp *Response) *Response {
			if market >= tt.known && !joined {
				return nil
			}
			return wrong(market, resp)
		}
		for range 4 {
			f.round(t, change)
			f.now = f.now.Add(12 * time.Hour)
		}
		joined = true
		for run := range 4 {
			res := f.round(t, change)
			for k, o := range res.Markets {
				if k < tt.known && run < 2 && !f.now.Before(res.Set.Market(o.ID).WideUntil) {
					t.Errorf("%v: run %d: the items of market %d are not suspect", tt, run, o.ID)
				}
				if contested := k >= tt.known && tt.known == tt.joining; contested != (o.Refusal != nil && o.Refusal.Anomaly == Contradicted) {
					t.Errorf("%v: run %d: market %d: %v", tt, run, o.ID, o.Refusal)
				}
			}
			f.now = f.now.Add(12 * time.Hour)
		}
	}
	f := newFair(rand.New(rand.NewPCG(9, 5)), 5, 1000)
	wrong := contradicting(f, func(market int) bool { return market > 2 })
	for run := range 5 {
		res := f.round(t, func(market int, resp *Response) *Response {
			if market > 2 && run < 3 {
				return nil
			}
			return wrong(market, resp)
		})
		for k, o := range res.Markets {
			if k > 2 && run >= 3 && o.Refusal == nil {
				t.Errorf("market %d contradicts three known ones and is not refused", o.ID)
			}
			if f.now.Before(o.State.WideUntil) {
				t.Errorf("run %d: two new markets make the items of three known ones suspect", run)
			}
		}
		f.now = f.now.Add(12 * time.Hour)
	}
}

// Of some names half of the quotes move away over some runs, and the others stand still.
func TestRound_NamesThatHalfOfTheirQuotesLeftAreSuspect(t *testing.T) {
	for _, tt := range []struct{ markets, moving, back int }{{2, 1, 0}, {4, 2, 0}, {5, 3, 0}, {5, 2, 0}, {6, 1, 0}, {2, 1, 1}} {
		f := newFair(rand.New(rand.NewPCG(9, 6)), tt.markets, 1000)
		const left = 30
		times := func(x float64) {
			for k := range tt.moving {
				for i := range left {
					f.quotes[k][i] = cents(float64(f.quotes[k][i]) / 1e6 * x)
				}
			}
		}
		if tt.back > 0 { // an absurd price, which then returns to the other market's
			times(2)
		}
		f.run(t, 6)
		var res Result
		for range 4 {
			if tt.back > 0 {
				times(1 / math.Pow(2, 0.25))
			} else {
				times(1.1)
			}
			res = f.round(t, nil)
			f.now = f.now.Add(12 * time.Hour)
		}
		want := tt.back == 0 && 2*tt.moving >= tt.markets
		p, suspect, others := NewPricer(usd(), res.Set), 0, 0
		for i := range f.names {
			var quotes []Quote
			for k := range f.markets {
				quotes = append(quotes, Quote{Provider: "s", Market: strconv.Itoa(k), ID: f.markets[k].ID, Currency: "USD", Ask: f.quotes[k][i], Sales: -1, FetchedAt: f.now})
			}
			res.Movers.Note(uint64(i), quotes)
			var e Priced
			p.Price(f.now, ClassOf(f.names[i]), quotes, State{}, References{}, &e)
			switch {
			case f.now.After(e.State.SuspectUntil):
			case i < left:
				suspect++
			default:
				others++
			}
		}
		if want != (suspect > left/2) || !want && suspect > left/6 || others > 20 {
			t.Errorf("%+v: %d of %d names and %d others are suspect", tt, suspect, left, others)
		}
	}
}
