package pricing

import (
	"math/rand/v2"
	"testing"
	"time"

	"assay/internal/money"
)

func TestRound_NewMarketsDoNotMoveTheLevelsOfTheOthers(t *testing.T) {
	f := newSimulation(rand.New(rand.NewPCG(3, 1)), 5, 800)
	f.levels[4] = 3
	for i := range f.quotes[4] {
		f.quotes[4][i] *= 2
	}
	silent := func(market int, resp *Response) *Response {
		if market == 4 {
			return nil
		}
		return resp
	}
	var before Result
	for range 4 {
		before = f.round(t, silent)
		f.now = f.now.Add(12 * time.Hour)
	}
	after := f.round(t, nil)
	if o := after.Markets[4]; o.Refusal != nil || !o.State.Levelled {
		t.Fatalf("new market: got the refusal %v and levelled %v, want nil and true", o.Refusal, o.State.Levelled)
	}
	for id := int64(1); id <= 4; id++ {
		a, b := before.Set.Market(id).Level, after.Set.Market(id).Level
		if abs(a-b) > logOne/50 {
			t.Errorf("market %d: got the level %d, want about %d", id, b, a)
		}
	}
}

func TestRound_FailedMarketsDoNotMoveTheLevelsOfTheOthers(t *testing.T) {
	for left := 1; left <= 4; left++ {
		f := newSimulation(rand.New(rand.NewPCG(4, 1)), 5, 800)
		for i := range f.quotes[0] { // the level of this market depends on the price
			if f.quotes[0][i] > 3*money.Scale {
				f.quotes[0][i] = cents(float64(f.quotes[0][i]) / 1e6 * 1.4)
			}
		}
		before := f.round(t, nil)
		f.now = f.now.Add(25 * time.Hour) // the last responses of failed markets are too old
		after := f.round(t, func(market int, resp *Response) *Response {
			if market >= left {
				return nil
			}
			return resp
		})
		for id := int64(1); id <= int64(left); id++ {
			a, b := before.Set.Market(id), after.Set.Market(id)
			for band := range a.Bands {
				if abs(a.Bands[band]-b.Bands[band]) > logOne/33 {
					t.Errorf("%d of 5 markets left: level of market %d in band %d: got %d, want about %d", left, id, band, b.Bands[band], a.Bands[band])
				}
			}
		}
	}
}

func TestRound_ChecksQuotesByName(t *testing.T) {
	f := newSimulation(rand.New(rand.NewPCG(8, 1)), 4, 600)
	f.run(t, 4)
	res := f.round(t, func(market int, resp *Response) *Response {
		if market == 3 {
			resp.Partial = true
			resp.Points = resp.Points[:150]
		}
		return resp
	})
	if o := res.Markets[3]; o.Refusal != nil || o.Check.Names != 150 || o.Check.Dispersion < 0 {
		t.Fatalf("150 of 600 names: got the refusal %v and %+v, want nil and 150 checked names", o.Refusal, o.Check)
	}
	f.now = f.now.Add(time.Hour)
	res = f.round(t, func(market int, resp *Response) *Response {
		if market == 3 {
			resp.Partial = true
			resp.Points = resp.Points[:150]
			for i := range resp.Points {
				resp.Points[i].Amount *= 7
			}
		}
		return resp
	})
	if o := res.Markets[3]; o.Refusal == nil || o.Refusal.Anomaly != Ratio {
		t.Fatalf("150 names in another currency: got the refusal %v, want %s", o.Refusal, Ratio)
	}
}

// The stored level must stay at the level of the market for any interval of responses. With
// a drift of 0.5 % per run, all markets would be refused after some weeks.
func TestRound_StoredLevelsDoNotDrift(t *testing.T) {
	for _, every := range []time.Duration{time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour} {
		f := newSimulation(rand.New(rand.NewPCG(8, 1)), 3, 400)
		for run := range 100 {
			for k, o := range f.round(t, nil).Markets {
				if o.Refusal != nil {
					t.Fatalf("interval %s, run %d, market %d: got the refusal %s, want nil", every, run, k, o.Refusal)
				}
				if far := abs(o.State.Level - Ln(o.Check.Level) + Ln(money.Scale)); run > 0 && far > log1_5/8 {
					t.Fatalf("interval %s, run %d, market %d: got the stored level %s, want about %s", every, run, k, Exp(o.State.Level), o.Check.Level)
				}
			}
			f.now = f.now.Add(every)
			f.move(0.02, 0.05)
		}
	}
}

// Two markets share names with each other, and a third market shares no names with them.
// The round must still learn the levels of the first two.
func TestRound_LearnsLevelsDespiteAMarketWithoutSharedNames(t *testing.T) {
	f := newSimulation(rand.New(rand.NewPCG(9, 7)), 3, 1000)
	var res Result
	for range 2 {
		res = f.round(t, func(market int, resp *Response) *Response {
			switch market {
			case 1:
				for i := range resp.Points {
					resp.Points[i].Amount = resp.Points[i].Amount * 3 / 2
				}
			case 2:
				resp.Points = resp.Points[:300]
				for i := range resp.Points {
					resp.Points[i].Key += 1 << 40
				}
			}
			return resp
		})
		f.now = f.now.Add(12 * time.Hour)
	}
	var apart []Log
	for i := range f.quotes[0] {
		if was, is := f.quotes[0][i], f.quotes[1][i]; was > 0 && is > 0 {
			apart = append(apart, Ln(is*3/2)-Ln(was))
		}
	}
	a, b := res.Set.Market(res.Markets[0].ID), res.Set.Market(res.Markets[1].ID)
	if want := middleOf(apart); !a.Known || !b.Known || abs(b.Level-a.Level-want) > logOne/50 {
		t.Errorf("got the levels %v and %v, want a difference of %v", a.Level, b.Level, want)
	}
	if c := res.Set.Market(res.Markets[2].ID); c.Known {
		t.Errorf("market without shared names: got the level %v, want none", c.Level)
	}
}

// Each response moves the learned levels a little. Prices must not follow such moves.
func TestRound_KeepsLevelsThatMovedByLessThanAStep(t *testing.T) {
	for _, c := range []struct {
		factor float64
		follow bool
	}{{1.004, false}, {0.996, false}, {1.03, true}, {0.97, true}} {
		f := newSimulation(rand.New(rand.NewPCG(5, 1)), 5, 2000)
		for i := range f.quotes[4] {
			f.quotes[4][i] *= 2 // so that a small factor changes each quote
		}
		before := f.run(t, 3)
		for i := range f.quotes[4] {
			f.quotes[4][i] = money.Micro(float64(f.quotes[4][i]) * c.factor)
		}
		after := f.round(t, nil)
		for id := int64(1); id <= 5; id++ {
			a, b := before.Set.Market(id), after.Set.Market(id)
			moved := a.Level != b.Level
			if want := c.follow && id == 5; moved != want {
				t.Errorf("quotes of market 5 times %v: the level of market %d moved: got %v (from %v to %v), want %v", c.factor, id, moved, a.Level, b.Level, want)
			}
		}
	}
}
