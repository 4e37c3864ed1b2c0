package backtest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"assay/internal/pricing"
)

// Up to half of the markets change their prices in the same way. The first such responses
// look normal. The limits are measured values from docs/contribute/pricing.md. Before pricing
// checked each item and the number of refused markets, 628 of 1,000 wrong prices had status ok.
func TestCase_PricesOfColludingMarketsAreSuspect(t *testing.T) {
	type attack struct{ markets, colluding, limit int }
	for name, c := range map[string]struct {
		attacks []attack
		factor  func(run int, name float64) float64 // name is a random number from 0 to 1 for each name
	}{
		"diverging": {[]attack{{6, 3, 0}, {5, 2, 1}, {4, 2, 0}, {2, 1, 3}}, func(run int, name float64) float64 {
			x := math.Pow(4, math.Min(1, float64(run)/10))
			if name < 0.5 {
				return 1 / x
			}
			return x
		}},
		"triple": {[]attack{{6, 3, 0}, {5, 2, 1}, {4, 2, 0}, {2, 1, 10}}, func(run int, name float64) float64 {
			if name < 0.05*float64(run) {
				return 3
			}
			return 1
		}},
		"rise": {[]attack{{6, 3, 3}, {5, 2, 0}, {4, 2, 0}, {2, 1, 1}}, func(run int, _ float64) float64 { return math.Pow(1.1, float64(run)) }},
	} {
		for _, a := range c.attacks {
			t.Run(fmt.Sprint(name, " by ", a.colluding, " of ", a.markets), func(t *testing.T) {
				if worst := wrongPrices(t, a.markets, a.colluding, c.factor); worst > a.limit {
					t.Errorf("got %d wrong prices with status ok, want at most %d", worst, a.limit)
				}
			})
		}
	}
}

// wrongPrices multiplies the quotes of the colluding markets by a factor for each run and
// name. It returns the number of wrong prices with status ok in the worst run.
func wrongPrices(t *testing.T, markets, colluding int, factor func(run int, name float64) float64) (worst int) {
	t.Helper()
	d := realData(t, "csgo_6market_2020-05_usd.csv.gz", func(column string) (string, string) { return "2020-05-15", column }, 1)
	l := &lab{ctx: t.Context(), data: d, rand: rand.New(rand.NewPCG(3, 4)), opts: Options{Policy: pricing.Policy{Currency: "USD"}}}
	w := l.fromSnapshot(warmup + 12)
	w.markets = w.markets[:markets]
	for run := range w.quotes {
		w.quotes[run] = w.quotes[run][:markets]
	}
	clean, err := l.replay(w, nil)
	if err != nil {
		t.Fatal(err)
	}
	names := make([]float64, len(w.names))
	for i := range names {
		names[i] = l.rand.Float64()
	}
	outcomes, err := l.replay(w, func(run int, responses []Quotes) {
		if run < warmup {
			return
		}
		for k := markets - colluding; k < markets; k++ {
			q := append(Quotes(nil), responses[k]...)
			for i := range q {
				q[i] = scaled(q[i], factor(run-warmup+1, names[i]))
			}
			responses[k] = q
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for run := range outcomes {
		worst = max(worst, countWrong(outcomes[run], clean[run], nil))
	}
	return worst
}
