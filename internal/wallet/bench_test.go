package wallet_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"assay/internal/db"
	"assay/internal/randtest"
	"assay/internal/wallet"
)

// BenchmarkSell measures sales per second between many users from several goroutines.
// ASSAY_TEST_ENGINE restricts it to one database engine.
func BenchmarkSell(b *testing.B) {
	const users = 2_000
	for _, sellers := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("%d goroutines", sellers), func(b *testing.B) {
			bank := newBank(b)
			for i := range users {
				bank.deposit(fmt.Sprintf("u%04d", i), 1_000_000_000)
			}
			r := randtest.New(b)
			pairs := make([][2]int, b.N)
			for i := range pairs {
				buyer := r.IntN(users)
				pairs[i] = [2]int{buyer, (buyer + 1 + r.IntN(users-1)) % users}
			}
			var next atomic.Int64
			var wg sync.WaitGroup
			b.ResetTimer()
			for range sellers {
				wg.Go(func() {
					for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
						_, err := bank.do(func(tx *db.Tx) (*wallet.Posted, error) {
							return bank.Sell(tx, &wallet.Trade{
								ID: i, Buyer: fmt.Sprintf("u%04d", pairs[i-1][0]), Seller: fmt.Sprintf("u%04d", pairs[i-1][1]), Currency: "USD",
								Price: 1_000, Fee: 50, Net: 950, FeeRule: "default", FeeVersion: 1,
							}, wallet.Request{Scope: "POST /api/listings/{id}/purchase platform", Key: fmt.Sprint(i)})
						})
						if err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "sales/s")
		})
	}
}
