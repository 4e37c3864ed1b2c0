package pricing

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"assay/internal/money"
	"assay/internal/randtest"
)

func TestRound_RefusedResponsesChangeNothingStored(t *testing.T) {
	r := randtest.New(t)
	for range randtest.Count(4, 200) {
		seed := r.Uint64()
		var results [2]Result
		for try := range results {
			f := newSimulation(rand.New(rand.NewPCG(seed, 1)), 4, 400)
			f.run(t, 5)
			results[try] = f.round(t, func(market int, resp *Response) *Response {
				switch {
				case market != 2:
					return resp
				case try == 0:
					return nil // no response
				}
				for i := range resp.Points {
					resp.Points[i].Amount = f.quotes[2][f.r.IntN(len(f.names))]
				}
				return resp
			})
		}
		a, b := results[0].Markets[2], results[1].Markets[2]
		if b.Refusal == nil {
			t.Fatal("shuffled names: got no refusal, want one")
		}
		if b.State.RefusedSince.IsZero() || b.State.Refused != *b.Refusal {
			t.Fatalf("got the state %+v, want the refusal %+v in it", b.State, *b.Refusal)
		}
		b.State.RefusedSince, b.State.Refused = a.State.RefusedSince, a.State.Refused
		if !reflect.DeepEqual(a.State, b.State) || !bytes.Equal(a.History, b.History) {
			t.Fatalf("state after a refused response: got %+v, want %+v", b.State, a.State)
		}
		if !reflect.DeepEqual(results[0].Set, results[1].Set) || !reflect.DeepEqual(results[0].Movers, results[1].Movers) {
			t.Fatalf("set and movers after a refused response: got\n%+v\n%v, want\n%+v\n%v",
				results[1].Set, results[1].Movers, results[0].Set, results[0].Movers)
		}
	}
}

func TestRound_RefusesEachAnomaly(t *testing.T) {
	type change func(f *simulation, q []money.Micro) []money.Micro
	times := func(x float64) change {
		return func(_ *simulation, q []money.Micro) []money.Micro {
			out := make([]money.Micro, len(q))
			for i := range q {
				out[i] = cents(float64(q[i]) / 1e6 * x)
			}
			return out
		}
	}
	shuffle := func(f *simulation, q []money.Micro) []money.Micro {
		out := slices.Clone(q)
		f.r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
		return out
	}
	constant := func(_ *simulation, q []money.Micro) []money.Micro {
		out := make([]money.Micro, len(q))
		for i := range out {
			out[i] = money.Scale
		}
		return out
	}
	half := func(_ *simulation, q []money.Micro) []money.Micro {
		out := slices.Clone(q)
		clear(out[:len(out)*3/5])
		return out
	}
	for _, tt := range []struct {
		name    string
		markets int
		first   bool
		change  change
		want    Anomaly
	}{
		{"less than half of the names", 1, false, half, FewNames},
		{"one value", 1, false, constant, OneValue},
		{"another currency", 1, false, times(7.1), Ratio},
		{"shuffled names", 1, false, shuffle, Dispersion},
		{"another level", 3, false, times(1.7), LevelChange},
		{"first response in another currency", 3, true, times(7.1), FirstLevel},
		{"first response with shuffled names", 3, true, shuffle, FirstDispersion},
		{"first response of the only market, with shuffled names", 1, true, shuffle, Wears},
		{"two first responses in different currencies", 2, true, times(7.1), Contested},
	} {
		f := newSimulation(rand.New(rand.NewPCG(5, 1)), tt.markets, 1500)
		if !tt.first {
			f.run(t, 4)
		}
		res := f.round(t, func(market int, resp *Response) *Response {
			if market == 0 {
				return f.response(tt.change(f, f.quotes[0]))
			}
			return resp
		})
		o := res.Markets[0]
		if o.Refusal == nil || o.Refusal.Anomaly != tt.want {
			t.Errorf("%s: got the refusal %v, want %s", tt.name, o.Refusal, tt.want)
			continue
		}
		if text := o.Refusal.String(); len(text) < 30 {
			t.Errorf("%s: got the text %q, want an explanation of 30 bytes or more", tt.name, text)
		}
		for _, other := range res.Markets[1:] {
			if other.Refusal != nil && tt.want != Contested {
				t.Errorf("%s: market %d: got the refusal %v, want nil", tt.name, other.ID, other.Refusal)
			}
		}
	}
}

func TestRound_RefusesOldResponsesAndSlowDrift(t *testing.T) {
	f := newSimulation(rand.New(rand.NewPCG(6, 1)), 1, 1500)
	old := slices.Clone(f.quotes[0])
	f.run(t, 12)
	res := f.round(t, func(int, *Response) *Response { return f.response(old) })
	if o := res.Markets[0]; o.Refusal == nil || o.Refusal.Anomaly != OlderResponse {
		t.Errorf("response of six days ago: got the refusal %v, want %s", o.Refusal, OlderResponse)
	}
	f = newSimulation(rand.New(rand.NewPCG(6, 1)), 1, 1500)
	f.run(t, 4)
	for run := range 10 {
		for i := range f.quotes[0] {
			f.quotes[0][i] = cents(float64(f.quotes[0][i]) / 1e6 * 1.2)
		}
		o := f.round(t, nil).Markets[0]
		f.now = f.now.Add(12 * time.Hour)
		if o.Refusal != nil {
			if o.Refusal.Anomaly != Drift || run < 3 {
				t.Errorf("drift: got the refusal %v in run %d, want %s in run 3 or later", o.Refusal, run, Drift)
			}
			return
		}
	}
	t.Errorf("drift to 6x: got no refusal, want %s", Drift)
}

func TestRound_AcceptsAResponseAfterAnOperatorDid(t *testing.T) {
	f := newSimulation(rand.New(rand.NewPCG(7, 1)), 1, 600)
	f.run(t, 3)
	for i := range f.quotes[0] {
		f.quotes[0][i] *= 3
	}
	if o := f.round(t, nil).Markets[0]; o.Refusal == nil {
		t.Fatal("prices times 3: got no refusal, want one")
	}
	f.markets[0].State.AcceptedAt = f.now
	f.now = f.now.Add(time.Hour)
	o := f.round(t, nil).Markets[0]
	if o.Refusal != nil || !o.State.RefusedSince.IsZero() || !o.State.AcceptedAt.IsZero() {
		t.Fatalf("accepted response: got the refusal %v and the state %+v, want nil and zero times", o.Refusal, o.State)
	}
	// The operator accepted the change, so later responses with similar prices are good.
	for run := range 20 {
		f.now = f.now.Add(12 * time.Hour)
		f.move(0.06, 0.15)
		if o := f.round(t, nil).Markets[0]; o.Refusal != nil {
			t.Fatalf("run %d after the accepted response: got the refusal %v, want nil", run+1, o.Refusal)
		}
	}
}

func TestRound_LearnsTheLevelOfAnAcceptedResponse(t *testing.T) {
	f := newSimulation(rand.New(rand.NewPCG(7, 2)), 3, 600)
	f.run(t, 3)
	for i := range f.quotes[0] {
		f.quotes[0][i] *= 3
	}
	if o := f.round(t, nil).Markets[0]; o.Refusal == nil {
		t.Fatal("prices times 3: got no refusal, want one")
	}
	f.markets[0].State.AcceptedAt = f.now
	for run := range 10 {
		f.now = f.now.Add(time.Hour)
		res := f.round(t, func(market int, resp *Response) *Response {
			if run == 0 && market != 0 {
				return nil // without other responses, the round cannot learn the level
			}
			return resp
		})
		for _, o := range res.Markets {
			if o.Refusal != nil {
				t.Fatalf("run %d, market %d: got the refusal %v, want nil", run, o.ID, o.Refusal)
			}
		}
	}
	if !f.markets[0].State.Levelled {
		t.Error("accepted market: got Levelled false, want true")
	}
}

// All knives of the only market suddenly cost a hundred times as much. The whole class moves,
// so a comparison of each name with its class would not find the jump.
func TestRound_RefusesAJumpOfOneClass(t *testing.T) {
	f := newSimulation(rand.New(rand.NewPCG(9, 3)), 1, 2000)
	f.run(t, 4)
	res := f.round(t, func(_ int, resp *Response) *Response {
		for i := range resp.Points {
			if resp.Points[i].Traits.Class == Star {
				resp.Points[i].Amount *= 100
			}
		}
		return resp
	})
	if r := res.Markets[0].Refusal; r == nil || r.Anomaly != Ratio {
		t.Errorf("got the refusal %v, want %s", r, Ratio)
	}
}

// An acceptance applies only to the response that the operator saw. It must not apply to a
// later refusal, even if its time is still stored.
func TestRound_DoesNotApplyAnAcceptanceToLaterRefusals(t *testing.T) {
	f := newSimulation(rand.New(rand.NewPCG(7, 3)), 1, 600)
	f.run(t, 3)
	times := func(n, d money.Micro) {
		for i := range f.quotes[0] {
			f.quotes[0][i] = f.quotes[0][i] * n / d
		}
	}
	times(3, 1)
	if f.round(t, nil).Markets[0].Refusal == nil {
		t.Fatal("prices times 3: got no refusal, want one")
	}
	accepted := f.now
	f.markets[0].State.AcceptedAt = accepted
	f.now = f.now.Add(time.Hour)
	if o := f.round(t, nil).Markets[0]; o.Refusal != nil {
		t.Fatalf("accepted response: got the refusal %v, want nil", o.Refusal)
	}
	f.markets[0].State.AcceptedAt = accepted // the time that is stored with the market
	times(1, 3)
	for run := range 3 {
		f.now = f.now.Add(time.Hour)
		if o := f.round(t, nil).Markets[0]; o.Refusal == nil {
			t.Fatalf("run %d: got no refusal of a later response, want one", run)
		}
	}
}

func TestRefusal_TextSeparatesThousands(t *testing.T) {
	for names, want := range map[int]string{
		999: "median of 999 names", 1065: "median of 1,065 names", 28_800: "median of 28,800 names", 1_000_000: "median of 1,000,000 names",
	} {
		refused := Refusal{Anomaly: Ratio, Names: names, Value: 100 * money.Scale, Low: money.Scale / 2, High: 2 * money.Scale}
		if text := refused.String(); !strings.Contains(text, want) {
			t.Errorf("got %q, want it to contain %q", text, want)
		}
	}
}
