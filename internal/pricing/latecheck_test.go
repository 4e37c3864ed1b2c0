package pricing

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"assay/internal/money"
	"assay/internal/randtest"
)

func TestRound_LeadingMarketsAreNeverLate(t *testing.T) {
	r := randtest.New(t)
	late := 0
	for range randtest.Count(3, 100) {
		markets := 2 + r.IntN(4)
		f := newSimulation(rand.New(rand.NewPCG(r.Uint64(), 1)), markets, 1200)
		leader := r.IntN(markets)
		past := [][]money.Micro{}
		for run := range 10 {
			past = append(past, slices.Clone(f.quotes[leader]))
			res := f.round(t, func(market int, resp *Response) *Response {
				if market == leader {
					return resp
				}
				q := past[max(0, run-2)]
				own := make([]money.Micro, len(q))
				for i := range q {
					own[i] = cents(float64(q[i]) / 1e6 * f.levels[market] / f.levels[leader])
				}
				return f.response(own)
			})
			for k, o := range res.Markets {
				if k == leader && o.Late {
					t.Fatalf("run %d, %d markets: the leading market is late, want not late", run, markets)
				}
				if o.Late {
					late++
				}
			}
			f.now = f.now.Add(12 * time.Hour)
			f.move(0.3, 0.4)
		}
	}
	if late == 0 {
		t.Error("got no late market, want late followers")
	}
}

// If half of the markets move together, it is unknown whether the others are late. When three
// of six markets multiplied 20 % of their prices by 1.6, an earlier version marked the reliable
// markets as late. Then 100 of 1,000 prices followed the move with the status ok.
func TestRound_RequiresAMajorityToMarkMarketsLate(t *testing.T) {
	for _, markets := range []int{4, 6} {
		f := newSimulation(rand.New(rand.NewPCG(9, 1)), markets, 1000)
		f.run(t, 6)
		for k := range markets / 2 {
			for i := range f.quotes[k] {
				if i%5 == 0 {
					f.quotes[k][i] = cents(float64(f.quotes[k][i]) / 1e6 * 1.6)
				}
			}
		}
		for _, o := range f.round(t, nil).Markets {
			if o.Late {
				t.Errorf("half of %d markets moved: market %d is late, want not late", markets, o.ID)
			}
		}
	}
}
