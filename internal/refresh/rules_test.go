package refresh_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"assay/internal/money"
	"assay/internal/provider"
	"assay/internal/refresh"
	"assay/internal/view"
)

func TestRule1_EachNameIsRequestedOncePerMarket(t *testing.T) {
	list := names("Item", 700)
	a := bulk("alpha", list, "a1", "a2")
	b := batch("beta", 64, list, "b1", "b2", "b3")
	c := single("gamma", list, "c1")
	w := newWorld(t, a, b, c)
	// Two users own all names, one of them twice. Names are counted, not rows.
	w.push("u1", 730, list...)
	w.push("u2", 730, append(slices.Clone(list), list...)...)
	w.clearMissing()
	j := w.run(false)

	equal(t, "items", j.Counts.Total, 700)
	equal(t, "updated", j.Counts.Updated, 700)
	equal(t, "calls for files", len(a.requested()), 2)
	requested := map[string]int{}
	calls := b.requested()
	equal(t, "calls of 64 names", len(calls), (700+63)/64)
	for _, call := range calls {
		for _, n := range call.Names {
			requested[n]++
		}
	}
	for _, call := range c.requested() {
		equal(t, "names of a single call", len(call.Names), 1)
		requested[call.Names[0]]++
	}
	equal(t, "requested names", len(requested), 700)
	for n, times := range requested {
		if times != 2 {
			t.Fatalf("%q was requested %d times, want once from each of 2 providers", n, times)
		}
	}
	equal(t, "snapshots", w.count(`SELECT count(*) FROM market_snapshot`), 700*6)
	equal(t, "average", w.named(list[0]).Average, units(10))
	w.checkIdle()
}

func TestRule1_StoresAverageAndQuoteOfEachMarket(t *testing.T) {
	asks := map[string]money.Micro{"m1": units(10), "m2": units(11), "m3": units(15)}
	s := bulk("alpha", []string{"A"}, "m1", "m2", "m3")
	s.price = func(market, _ string) money.Micro { return asks[market] }
	w := newWorld(t, s)
	w.push("u", 730, "A")
	w.drain()
	i := w.named("A")
	equal(t, "average", i.Average, units(12))
	equal(t, "median", i.Median, units(11))
	equal(t, "consensus", i.Consensus, units(11))
	equal(t, "price", i.Price, units(11))
	equal(t, "value", w.valueOf("u", 0), units(11))
	snaps, err := view.Snapshots(t.Context(), w.store, i.ID)
	must(t, err)
	equal(t, "snapshots", len(snaps), 3)
	for _, s := range snaps {
		equal(t, s.Market, s.Ask, asks[s.Market])
	}
}

func TestRule1_SpentBudgetSkipsItems(t *testing.T) {
	list := names("Item", 10)
	a, b := bulk("alpha", list[:5], "a1"), batch("beta", 100, list, "b1")
	b.fail = func(int, provider.Call) error { return b.broken(provider.KindBudget) }
	w := newWorld(t, a, b)
	w.push("u", 730, list...)
	w.clearMissing()
	j := w.run(false)
	// The file lacks the other five names, so it is no evidence for them.
	equal(t, "updated", j.Counts.Updated, 5)
	equal(t, "items skipped for the budget", j.Counts.SkippedBudget, 5)
	equal(t, "deferred units", w.count(`SELECT count(*) FROM fetch_unit WHERE state = 'deferred' AND provider = 'beta'`), 1)

	a.fail = func(int, provider.Call) error { return a.broken(provider.KindBreaker) }
	j = w.run(true)
	equal(t, "items skipped for the outage", j.Counts.SkippedBackoff, 10)
	equal(t, "the unchanged price", w.named(list[0]).Price, units(10))
	w.checkIdle()
}

func TestRule2_BulkPlansEachInventoryNameOnce(t *testing.T) {
	list := names("Item", 50)
	s := bulk("alpha", list, "a1", "a2", "a3")
	w := newWorld(t, s)
	for _, u := range []string{"u1", "u2", "u3"} {
		w.push(u, 730, list[:40]...)
	}
	w.push("u4", 730, list[40:]...)
	w.push("u4", 730) // u4 sold everything, so ten names are in no inventory now
	w.clearMissing()
	j := w.run(false)
	equal(t, "items in scope", j.Counts.Total, 40)
	if got := w.states(j.ID); len(got) != 40 {
		t.Errorf("got %d names in the job, want 40", len(got))
	}
	w.checkIdle()

	w.cfg.ScopeAll = true
	w.restart()
	j = w.run(false)
	equal(t, "items in scope all", j.Counts.Total, 50)
	equal(t, "items skipped by their TTL", j.Counts.SkippedTTL, 40)
}

// The listed names are in no inventory, as before the next sync.
func TestRule2_BulkPlansNamesInActiveListings(t *testing.T) {
	list := names("Item", 3)
	w := newWorld(t, bulk("alpha", list, "a1"))
	w.push("u", 730, list...)
	w.push("u", 730)
	w.clearMissing()
	for i, state := range []string{"active", "cancelled", "expired"} {
		w.exec(`INSERT INTO listing (seller_key, app_id, context_id, asset_id, item_id, amount, price, currency, state, created_at)
			SELECT 1, 730, '2', name, id, 1, 1, 'USD', $1, 0 FROM item WHERE name = $2`, state, list[i])
	}
	j := w.run(false)
	equal(t, "items", j.Counts.Total, 1)
	equal(t, "state", w.states(j.ID)[list[0]], refresh.ItemUpdated)
}

func TestRule2_NewPricesReachAllRowsOfAllUsers(t *testing.T) {
	for _, changed := range []int{3, 400} { // apply uses the item index, then a scan of all rows
		list := names("Item", 400)
		s := bulk("alpha", list, "a1", "a2", "a3")
		price := units(10)
		s.price = func(_, name string) money.Micro {
			if slices.Index(list, name) < changed {
				return price
			}
			return units(10)
		}
		w := newWorld(t, s)
		for _, u := range []string{"u1", "u2", "u3"} {
			w.push(u, 730, list...)
		}
		w.drain()
		w.clock.Add(7 * time.Hour)
		price = units(12)
		j := w.run(false)
		equal(t, "changed items", j.Counts.Changed, int64(changed))
		equal(t, "rows at the new price", w.count(`SELECT count(*) FROM inventory WHERE `+around("value", units(12))), int64(3*changed))
		w.checkIdle()
	}
}

func TestRule2_PriceOfAnotherJobReachesItsRows(t *testing.T) {
	list := names("Item", 200)
	s := bulk("alpha", list, "a1", "a2", "a3")
	w := newWorld(t, s)
	w.push("u", 730, list...)
	w.drain()
	w.clock.Add(7 * time.Hour)
	// After the plan, an operator accepts a different price. The job then replaces it.
	w.begin(false)
	_, err := w.engine.Plan(t.Context())
	must(t, err)
	w.exec(`UPDATE item SET candidate = $1, candidate_at = 1 WHERE name = $2`, int64(units(13)), list[7])
	must(t, w.engine.AcceptItem(t.Context(), w.named(list[7]).Key))
	equal(t, "the value during the job", w.valueOf("u", 7), units(13))
	w.drain()
	equal(t, "price", w.named(list[7]).Price, varied(units(10), list[7]))
	equal(t, "value", w.valueOf("u", 7), varied(units(10), list[7]))
	w.checkIdle()
}

func TestErrors_NameTheProviderOnce(t *testing.T) {
	for name, failure := range map[string]error{
		"provider error":         &provider.Error{Provider: "alpha", Kind: provider.KindProtocol, Detail: "broken"},
		"wrapped provider error": fmt.Errorf("alpha: %w", &provider.Error{Provider: "alpha", Kind: provider.KindProtocol, Detail: "broken"}),
		"plain error":            errors.New("broken"),
		"plain error with name":  errors.New("alpha: broken"),
	} {
		t.Run(name, func(t *testing.T) {
			a := bulk("alpha", []string{"A"}, "a1")
			a.fail = func(int, provider.Call) error { return failure }
			w := newWorld(t, a)
			w.push("u", 730, "A")
			w.drain()
			equal(t, "the last error", w.last(refresh.Missing).LastError, "alpha: unexpected response: broken")
		})
	}
}
