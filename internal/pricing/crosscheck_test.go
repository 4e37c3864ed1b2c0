package pricing

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"
)

// The prices of half of the markets rise slowly together. It is unknown which half is
// correct, so all items must be suspect.
func TestRound_ItemsAreSuspectIfHalfOfTheMarketsMove(t *testing.T) {
	for _, markets := range []int{2, 4, 6} {
		f := newSimulation(rand.New(rand.NewPCG(9, 2)), markets, 1000)
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
			if !f.now.Before(m.MarketMovedUntil) {
				t.Errorf("half of %d markets moved: got MarketMovedUntil %v for market %d, want later than now", markets, m.MarketMovedUntil, m.ID)
			}
		}
	}
}

// contradicting returns a function that changes the responses of the selected markets. It
// multiplies the prices of half of the skins by 3.5 and divides the other prices by 3.5.
func contradicting(f *simulation, is func(market int) bool) func(int, *Response) *Response {
	return func(market int, resp *Response) *Response {
		if !is(market) {
			return resp
		}
		q := slices.Clone(f.quotes[market])
		for i := range q {
			x := 3.5
			if i/5%2 == 0 { // all five wears of a skin get the same factor
				x = 1 / x
			}
			q[i] = cents(float64(q[i]) / 1e6 * x)
		}
		return f.response(q)
	}
}

// Half of the first responses contradict the other half. It is unknown which half is
// correct.
func TestRound_FirstResponsesOfEqualCampsAreContested(t *testing.T) {
	for _, markets := range []int{2, 4, 6} {
		f := newSimulation(rand.New(rand.NewPCG(9, 4)), markets, 1000)
		res := f.round(t, contradicting(f, func(market int) bool { return market%2 == 0 }))
		for k, o := range res.Markets {
			if o.Refusal == nil || o.Refusal.Anomaly != Contested || (o.Refusal.Rival-o.ID)%2 == 0 {
				t.Errorf("%d markets, market %d: got the refusal %+v, want %s by a market of the other half", markets, o.ID, o.Refusal, Contested)
			}
			if k == 0 {
				f.markets[k].State.AcceptedAt = f.now
			}
		}
		// Accepting one market accepts its camp. While the other camp contradicts it, no
		// price is ok.
		for range 3 {
			f.now = f.now.Add(12 * time.Hour)
			res = f.round(t, contradicting(f, func(market int) bool { return market%2 == 0 }))
		}
		for k, o := range res.Markets {
			if k%2 == 0 && o.Refusal != nil {
				t.Errorf("%d markets, accepted camp, market %d: got the refusal %v, want nil", markets, o.ID, o.Refusal)
			}
			if k%2 == 1 && o.Refusal == nil {
				t.Errorf("%d markets, other camp, market %d: got no refusal, want one", markets, o.ID)
			}
			if markets > 2 && k%2 == 0 && !f.now.Before(res.Set.Market(o.ID).MarketMovedUntil) {
				t.Errorf("%d markets, market %d: got MarketMovedUntil in the past, want later than now", markets, o.ID)
			}
		}
	}
}

// If an operator accepts two responses that contradict each other, it is still unknown
// which one is correct. Both acceptances must have no effect.
func TestRound_AcceptingBothCampsHasNoEffect(t *testing.T) {
	for _, markets := range []int{2, 4, 6} {
		f := newSimulation(rand.New(rand.NewPCG(9, 6)), markets, 1000)
		quotes := contradicting(f, func(market int) bool { return market%2 == 0 })
		f.round(t, quotes)
		for k := range f.markets {
			f.markets[k].State.AcceptedAt = f.now
		}
		f.now = f.now.Add(time.Hour)
		for _, o := range f.round(t, quotes).Markets {
			if o.Refusal == nil || o.Refusal.Anomaly != Contested {
				t.Errorf("%d markets, both accepted, market %d: got the refusal %+v, want %s", markets, o.ID, o.Refusal, Contested)
			}
		}
		f.markets[0].State.AcceptedAt = f.now
		f.now = f.now.Add(time.Hour)
		f.round(t, quotes)
		f.now = f.now.Add(12 * time.Hour)
		for k, o := range f.round(t, quotes).Markets {
			if good := o.Refusal == nil; good != (k%2 == 0) {
				t.Errorf("%d markets, one accepted, market %d: got the refusal %+v, want good: %v", markets, o.ID, o.Refusal, k%2 == 0)
			}
		}
	}
}

// New markets agree with each other and contradict the known markets. The known markets may
// have been wrong from the beginning, so their items must be suspect.
func TestRound_ItemsAreSuspectIfNewMarketsContradictKnownOnes(t *testing.T) {
	for _, tt := range []struct{ known, joining int }{{1, 2}, {2, 2}, {2, 4}, {3, 3}} {
		f := newSimulation(rand.New(rand.NewPCG(9, 5)), tt.known+tt.joining, 1000)
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
				if k < tt.known && run < 2 && !f.now.Before(res.Set.Market(o.ID).MarketMovedUntil) {
					t.Errorf("%+v, run %d, market %d: got MarketMovedUntil in the past, want later than now", tt, run, o.ID)
				}
				if contested := k >= tt.known && tt.known == tt.joining; contested != (o.Refusal != nil && o.Refusal.Anomaly == Contested) {
					t.Errorf("%+v, run %d, market %d: got the refusal %v, want contested: %v", tt, run, o.ID, o.Refusal, contested)
				}
			}
			f.now = f.now.Add(12 * time.Hour)
		}
	}
	f := newSimulation(rand.New(rand.NewPCG(9, 5)), 5, 1000)
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
				t.Errorf("market %d against three known ones: got no refusal, want one", o.ID)
			}
			if f.now.Before(o.State.MarketMovedUntil) {
				t.Errorf("run %d, two new markets against three known ones: got suspect items, want none", run)
			}
		}
		f.now = f.now.Add(12 * time.Hour)
	}
}

// For some names, half of the quotes move over several runs and the others stand still.
func TestRound_ItemsAreSuspectIfTheirQuotesMoveApart(t *testing.T) {
	for _, tt := range []struct{ markets, moving, back int }{{2, 1, 0}, {4, 2, 0}, {5, 3, 0}, {5, 2, 0}, {6, 1, 0}, {2, 1, 1}} {
		f := newSimulation(rand.New(rand.NewPCG(9, 6)), tt.markets, 1000)
		const left = 30
		times := func(x float64) {
			for k := range tt.moving {
				for i := range left {
					f.quotes[k][i] = cents(float64(f.quotes[k][i]) / 1e6 * x)
				}
			}
		}
		if tt.back > 0 { // the price is absurd at first and returns to the price of the other market
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
			res.Movers.Annotate(uint64(i), quotes)
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
			t.Errorf("%+v: got %d of %d moved names and %d other names suspect, want suspect: %v", tt, suspect, left, others, want)
		}
	}
}
