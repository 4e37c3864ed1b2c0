package pricing

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"assay/internal/money"
)

// tenMarkets returns the quotes of 1,000 items on ten markets.
func tenMarkets() [][]Quote {
	r := rand.New(rand.NewPCG(1, 2))
	items := make([][]Quote, 1000)
	for i := range items {
		items[i] = asks(make([]money.Micro, 10)...)
		for k := range items[i] {
			q := &items[i][k]
			q.Provider, q.Market = "provider", "market-"+strconv.Itoa(k)
			q.Ask = around(r, 1e6, 0.25)
			q.MarketTime = noon.Add(-time.Hour)
			if r.IntN(30) == 0 {
				q.Ask *= 100
			}
		}
	}
	return items
}

func BenchmarkLn(b *testing.B) {
	for b.Loop() {
		_ = Ln(1_438_168_000)
	}
}
