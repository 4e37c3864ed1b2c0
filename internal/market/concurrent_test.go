package market_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"assay/internal/db"
	"assay/internal/fault"
	"assay/internal/inventory"
	"assay/internal/market"
	"assay/internal/randtest"
)

// TestPurchase_SellsEachListingOnce runs many concurrent purchases of fewer listings.
func TestPurchase_SellsEachListingOnce(t *testing.T) {
	w := newFixture(t)
	listings, buyers := randtest.Count(20, 100), randtest.Count(200, 1000)
	var assets []inventory.Asset
	for i := range listings {
		assets = append(assets, asset(string(rune('a'+i/26))+string(rune('a'+i%26)), "x"))
	}
	w.push("u", assets...)
	ids := make([]int64, listings)
	for i := range ids {
		ids[i] = w.mustList("u", assets[i].AssetID, 100).ID
	}
	buyer := func(i int) string { return "buyer" + strconv.Itoa(i%7) }
	for i := range 7 {
		w.fund(buyer(i))
	}
	var sold, lost atomic.Int64
	var wg sync.WaitGroup
	for i := range buyers {
		wg.Go(func() {
			_, err := w.buy(ids[i%listings], buyer(i))
			switch f := fault.Of(err); {
			case err == nil:
				sold.Add(1)
			case f != nil && f.Code == "listing_sold":
				lost.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if sold.Load() != int64(listings) || lost.Load() != int64(buyers-listings) {
		t.Errorf("got %d sales and %d refusals, want %d and %d", sold.Load(), lost.Load(), listings, buyers-listings)
	}
	trades, err := market.Trades(t.Context(), w.s, market.TradeFilter{Before: 1 << 62}, buyers)
	w.must(err)
	distinct := map[int64]bool{}
	for _, d := range trades {
		distinct[d.ListingID] = true
	}
	if len(trades) != listings || len(distinct) != listings {
		t.Errorf("got %d trades of %d listings, want %d of %d", len(trades), len(distinct), listings, listings)
	}
	w.wantBalances(map[string]string{"u": fmt.Sprintf("%d/%d", 95*listings, 95*listings), "house:fee": fmt.Sprintf("%d/0", 5*listings)})
}

// TestMarket_ConcurrentOperationsKeepTheLedgerConsistent runs random syncs, listings,
// purchases, completions, reversals and settlements concurrently. Then it compares the
// trades with the ledger.
func TestMarket_ConcurrentOperationsKeepTheLedgerConsistent(t *testing.T) {
	w := newFixture(t)
	const users, assets = 5, 30
	name := func(i int) string { return "user" + strconv.Itoa(i) }
	all := make([]inventory.Asset, assets)
	for i := range all {
		all[i] = asset(strconv.Itoa(i), "item "+strconv.Itoa(i%3))
	}
	for i := range users {
		w.push(name(i), all...)
		w.fund(name(i))
	}
	r := randtest.New(t)
	var wg sync.WaitGroup
	for range 8 {
		own := rand.New(rand.NewPCG(r.Uint64(), r.Uint64()))
		wg.Go(func() {
			for n := range randtest.Count(60, 500) {
				w.step(own, int64(n), name(own.IntN(users)), all)
			}
		})
	}
	wg.Wait()
	trades, err := market.Trades(t.Context(), w.s, market.TradeFilter{Before: 1 << 62}, 100_000)
	w.must(err)
	balance, held, fees, states := map[string]int64{}, map[string]int64{}, int64(0), map[market.TradeState]int{}
	for _, d := range trades {
		states[d.State]++
		if d.State == market.Reversed {
			continue
		}
		balance[d.Buyer] -= d.Price
		balance[d.Seller] += d.Net
		fees += d.Fee
		if d.State != market.Settled {
			held[d.Seller] += d.Net
		}
	}
	want := map[string]string{"house:fee": fmt.Sprintf("%d/0", fees)}
	for i := range users {
		want[name(i)] = fmt.Sprintf("%d/%d", startBalance+balance[name(i)], held[name(i)])
	}
	w.wantBalances(want)
	t.Logf("trades by state: %v", states)
}

// step runs a random operation. n is the number of earlier operations of the worker. A
// step may fail with a fault, but not with an internal error.
func (w *fixture) step(r *rand.Rand, n int64, user string, all []inventory.Asset) {
	var err error
	listing, trade := 1+r.Int64N(20+2*n), 1+r.Int64N(5+n/2)
	switch r.IntN(9) {
	case 0:
		assets := all[:r.IntN(len(all)+1)]
		_, err = w.inventories.Sync(w.Context(), user, inventory.Push{AppID: app, ContextID: ctx, SnapshotAt: w.clock(), Assets: assets}, inventory.Normal)
	case 1, 2, 3:
		err = w.m.Create(w.Context(), market.Offers{
			UserID: user, AppID: app, ContextID: ctx, Inventory: &inventory.Push{AppID: app, ContextID: ctx, SnapshotAt: w.clock(), Assets: all},
			Offers: []market.Offer{{AssetID: strconv.Itoa(r.IntN(len(all))), Price: 1 + r.Int64N(1_000), Currency: "USD"}},
		}, func(*db.Tx, []market.Created) error { return nil })
	case 4:
		_, err = w.m.Complete(w.Context(), trade)
	case 5:
		_, err = w.m.Reverse(w.Context(), trade)
	case 6:
		w.advance(50 * time.Hour)
		err = w.m.SettleDue(w.Context())
	default:
		_, err = w.buy(listing, user)
	}
	if err != nil && fault.Of(err) == nil {
		w.Errorf("user %s: got %v, want nil or a fault", user, err)
	}
}
