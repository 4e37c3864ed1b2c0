package pricing

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"assay/internal/money"
)

// tenMarkets returns the quotes of many items on ten markets each.
func tenMarkets() [][]Quote {
	r := rand.New(rand.NewPCG(1, 2))
	items := make([][]Quote, 1000)
	for i := range items {
		items[i] = asks(make([]money.Micro, 10)...)
		for k := range items[i] {
			q := &items[i][k]
			q.Source, q.Market = "source", "market-"+strconv.Itoa(k)
			q.Ask = around(r, 1e6, 0.25)
			q.MarketTime = noon.Add(-time.Hour)
			if r.IntN(30) == 0 {
				q.Ask *= 100
			}
		}
	}
	return items
}

func TestEstimate_AllocatesNothingOnceWarm(t *testing.T) {
	items, estimator, last := tenMarkets(), New(usd()), Last{Price: 1e6, UpdatedAt: noon}
	var e Estimate
	estimator.Estimate(noon, items[0], last, &e)
	i := 0
	// The collector may empty the pool once in a while.
	if n := testing.AllocsPerRun(1000, func() { estimator.Estimate(noon, items[i%len(items)], last, &e); i++ }); n >= 1 {
		t.Errorf("%v allocations per item", n)
	}
}

func BenchmarkEstimate10Quotes(b *testing.B) {
	items, estimator, last := tenMarkets(), New(usd()), Last{Price: 1e6, UpdatedAt: noon}
	var e Estimate
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		estimator.Estimate(noon, items[i%len(items)], last, &e)
		i++
	}
}

func BenchmarkLn(b *testing.B) {
	for b.Loop() {
		_ = ln(1_438_168_000)
	}
}
