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
	w.forget()
	j := w.run(false)

	equal(t, "items", j.Counts.Total, 700)
	equal(t, "updated", j.Counts.Updated, 700)
	equal(t, "calls for files", len(a.requested()), 2)
	asked := map[string]int{}
	calls := b.requested()
	equal(t, "calls of 64 names", len(calls), (700+63)/64)
	for _, call := range calls {
		for _, n := range call.Names {
			asked[n]++
		}
	}
	for _, call := range c.requested() {
		equal(t, "names of a single call", len(call.Names), 1)
		asked[call.Names[0]]++
	}
	equal(t, "requested names", len(asked), 700)
	for n, times := range asked {
		if times != 2 {
			t.Fatalf("%q was requested %d times by two providers", n, times)
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
	w.forget()
	j := w.run(false)
	// The file lacks the other five names and is no evidence for them.
	equal(t, "updated", j.Counts.Updated, 5)
	equal(t, "skipped for the budget", j.Counts.SkippedBudget, 5)
	equal(t, "deferred units", w.count(`SELECT count(*) FROM fetch_unit WHERE state = 'deferred' AND provider = 'beta'`), 1)

	a.fail = func(int, provider.Call) error { return a.broken(provider.KindBreaker) }
	j = w.run(true)
	equal(t, "skipped for the outage", j.Counts.SkippedBackoff, 10)
	equal(t, "price stays", w.named(list[0]).Price, units(10))
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
	w.push("u4", 730) // sold all: its ten names are in no inventory now
	w.forget()
	j := w.run(false)
	equal(t, "items in scope", j.Counts.Total, 40)
	if got := w.states(j.ID); len(got) != 40 {
		t.Errorf("the job has %d names", len(got))
	}
	w.checkIdle()

	w.cfg.ScopeAll = true
	w.restart()
	j = w.run(false)
	equal(t, "items in scope all", j.Counts.Total, 50)
	equal(t, "of them skipped", j.Counts.SkippedTTL, 40)
}

// The listed names are in no inventory, as before the next sync.
func TestRule2_BulkPlansNamesInActiveListings(t *testing.T) {
	list := names("Item", 3)
	w := newWorld(t, bulk("alpha", list, "a1"))
	w.push("u", 730, list...)
	w.push("u", 730)
	w.forget()
	for i, state := range []string{"active", "cancelled", "expired"} {
		w.exec(`INSERT INTO listing (seller_key, app_id, context_id, asset_id, item_id, amount, price, currency, state, created_at)
			SELECT 1, 730, '2', name, id, 1, 1, 'USD', $1, 0 FROM item WHERE name = $2`, state, list[i])
	}
	j := w.run(false)
	equal(t, "items", j.Counts.Total, 1)
	equal(t, "state", w.states(j.ID)[list[0]], refresh.ItemUpdated)
}

func TestRule2_NewPricesReachAllRowsOfAllUsers(t *testing.T) {
	for _, changed := range []int{3, 400} { // by the item index, and by a scan of all rows
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
		equal(t, "changed", j.Counts.Changed, int64(changed))
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
	// After the plan an operator accepts another price. The job then replaces it.
	w.begin(false)
	_, err := w.engine.Plan(t.Context())
	must(t, err)
	w.exec(`UPDATE item SET candidate = $1, candidate_at = 1 WHERE name = $2`, int64(units(13)), list[7])
	must(t, w.engine.AcceptItem(t.Context(), w.named(list[7]).Key))
	equal(t, "value meanwhile", w.valueOf("u", 7), units(13))
	w.drain()
	equal(t, "price", w.named(list[7]).Price, varied(units(10), list[7]))
	equal(t, "value", w.valueOf("u", 7), varied(units(10), list[7]))
	w.checkIdle()
}

func TestRule3_SyncDoesNotRefreshKnownPrices(t *testing.T) {
	list := names("Item", 30)
	s := bulk("alpha", list, "a1", "a2", "a3")
	w := newWorld(t, s)
	w.push("u1", 730, list...)
	w.drain()
	s.requested()
	w.clock.Add(48 * time.Hour) // old, and still known
	r := w.push("u2", 730, list...)
	equal(t, "queued", r.QueuedNames, 0)
	equal(t, "priced rows", r.PricedRows, 30)
	w.drain()
	equal(t, "calls", len(s.requested()), 0)
	equal(t, "value", w.valueOf("u2", 3), units(10))
	w.checkIdle()
}

func TestRule3_EachUnknownNameIsQueuedOnce(t *testing.T) {
	s := bulk("alpha", []string{"A", "B"}, "a1")
	w := newWorld(t, s)
	equal(t, "first push", w.push("u1", 730, "A", "A", "B").QueuedNames, 2)
	equal(t, "another user", w.push("u2", 730, "A", "B", "C").QueuedNames, 1)
	equal(t, "again", w.push("u2", 730, "A", "B", "C").QueuedNames, 0)
	equal(t, "entries", w.count(`SELECT count(*) FROM missing_price`), 3)
	w.drain()
	j := w.last(refresh.Missing)
	equal(t, "items", j.Counts.Total, 3)
	equal(t, "priced", j.Counts.Updated, 2)
	equal(t, "without a quote", j.Counts.NoQuote, 1)
	equal(t, "entries left", w.count(`SELECT count(*) FROM missing_price`), 1)
	equal(t, "value", w.valueOf("u1", 1), units(10))
	w.checkIdle()
}

func TestRule3_PauseDoublesUpToThreeDays(t *testing.T) {
	s := batch("alpha", 10, nil, "a1")
	w := newWorld(t, s)
	w.push("u", 730, "Nobody sells this")
	w.drain()
	s.requested()
	for _, hours := range []int{1, 2, 4, 8, 16, 32, 64, 72, 72} {
		w.clock.Add(time.Duration(hours)*time.Hour - time.Second)
		w.drain()
		if n := len(s.requested()); n != 0 {
			t.Fatalf("requested a second before %d hours had passed", hours)
		}
		w.clock.Add(time.Second)
		w.drain()
		if n := len(s.requested()); n != 1 {
			t.Fatalf("requested %d times after %d hours", n, hours)
		}
	}
	w.checkIdle()
}

func TestRule3_UnsentRequestIsDueAfterTheFirstPause(t *testing.T) {
	s := batch("alpha", 10, []string{"A"}, "a1")
	s.fail = func(int, provider.Call) error { return s.broken(provider.KindConnect) }
	w := newWorld(t, s)
	w.push("u", 730, "A")
	for range 4 {
		w.drain()
		equal(t, "calls", len(s.requested()), 1)
		w.clock.Add(time.Hour)
	}
	s.fail = nil
	w.drain()
	equal(t, "price", w.named("A").Price, units(10))
	w.checkIdle()
}

func TestRule3_TTLAndNoSalesPauseDoNotApplyToTheQueue(t *testing.T) {
	s := batch("alpha", 10, []string{"A"}, "a1")
	s.price = func(string, string) money.Micro { return 0 }
	s.edit = func(q *provider.Quote) bool {
		q.Sales, q.SalesWindow = 0, 30*24*time.Hour
		return true
	}
	w := newWorld(t, s)
	w.push("u", 730, "A")
	w.drain()
	equal(t, "item is in a pause", w.named("A").RetryAt.IsZero(), false)
	s.requested()
	w.clock.Add(time.Hour)
	w.drain()
	equal(t, "calls", len(s.requested()), 1)
}

func TestRule3_BulkJobRemovesPricedNamesFromTheQueue(t *testing.T) {
	s := batch("alpha", 10, nil, "a1")
	w := newWorld(t, s)
	w.push("u", 730, "A")
	w.drain()
	equal(t, "entries", w.count(`SELECT count(*) FROM missing_price`), 1)
	s.items[730] = []string{"A"}
	w.clock.Add(time.Minute)
	w.run(false)
	equal(t, "entries left", w.count(`SELECT count(*) FROM missing_price`), 0)
	w.checkIdle()
}

func TestRule3_FreshFileServesMissingPrices(t *testing.T) {
	list := names("Item", 20)
	s := bulk("alpha", append(slices.Clone(list), "New"), "a1", "a2")
	w := newWorld(t, s)
	w.push("u", 730, list...)
	w.forget()
	w.run(false)
	equal(t, "calls of the job", len(s.requested()), 2)

	w.clock.Add(4 * time.Minute)
	w.push("v", 730, "New")
	w.drain()
	equal(t, "calls for a file of four minutes", len(s.requested()), 0)
	equal(t, "price", w.named("New").Price, units(10))
	equal(t, "as of", w.named("New").QuotesAt, epoch)
	w.checkIdle()

	w.clock.Add(time.Minute)
	w.push("v", 730, "Newer")
	w.drain()
	equal(t, "calls for a file of five minutes", len(s.requested()), 2)
	w.checkIdle()
}

func TestRule3_FewMissingPricesReadFewBlobs(t *testing.T) {
	list := names("Item", 4_000)
	w := newWorld(t, bulk("alpha", list, "a1"))
	w.push("u1", 730, list...)
	w.forget()
	w.run(false)
	w.exec(`UPDATE item SET price = 0 WHERE name = $1`, list[7])
	w.exec(`UPDATE inventory SET value = NULL`)
	w.push("u2", 730, list[7])
	w.engine.BlobsRead()
	w.drain()
	equal(t, "price", w.named(list[7]).Price, varied(units(10), list[7]))
	equal(t, "parts that were read", w.engine.BlobsRead(), 1)
}

func TestRule5_SkipsItemsWithinTTLWithTolerance(t *testing.T) {
	list := names("Item", 5)
	s := bulk("alpha", list, "a1", "a2", "a3")
	w := newWorld(t, s)
	w.push("u", 730, list...)
	w.drain()
	limit := 6 * time.Hour * 95 / 100
	w.clock.Add(limit - time.Microsecond)
	j := w.run(false)
	equal(t, "skipped just within", j.Counts.SkippedTTL, 5)
	equal(t, "state", j.State, refresh.Finished)
	w.clock.Add(time.Microsecond)
	j = w.run(false)
	equal(t, "updated just beyond", j.Counts.Updated, 5)
	w.checkIdle()
}

func TestRule5_ForceIgnoresOnlyTTLAndPause(t *testing.T) {
	list := names("Item", 4)
	s := bulk("alpha", list, "a1", "a2", "a3")
	w := newWorld(t, s)
	w.push("u", 730, list...)
	w.drain()
	equal(t, "updated", w.run(true).Counts.Updated, 4)
	equal(t, "skipped", w.run(false).Counts.SkippedTTL, 4)
	s.fail = func(int, provider.Call) error { return s.broken(provider.KindBreaker) }
	equal(t, "skipped by the breaker, forced", w.run(true).Counts.SkippedBackoff, 4)
}

func TestRule5_TheTTLCountsFromTheJobsCreation(t *testing.T) {
	s := bulk("alpha", []string{"A"}, "a1", "a2", "a3")
	w := newWorld(t, s)
	w.push("u", 730, "A")
	w.drain()
	w.clock.Add(5 * time.Hour)
	id := w.begin(false)
	w.clock.Add(5 * time.Hour) // the process was busy
	w.drain()
	equal(t, "skipped", w.job(id).Counts.SkippedTTL, 1)
}

// quiet sets the number of sales within a window on every quote.
func quiet(sales int64, window time.Duration) func(*provider.Quote) bool {
	return func(q *provider.Quote) bool {
		q.Sales, q.SalesWindow = sales, window
		return true
	}
}

func TestRule5_ItemsWithoutSalesWaitTheirPause(t *testing.T) {
	const month = 30 * 24 * time.Hour
	s := bulk("alpha", []string{"A"}, "a1", "a2", "a3")
	s.edit = quiet(0, month)
	w := newWorld(t, s)
	w.push("u", 730, "A")
	w.drain()
	equal(t, "quiet since", w.named("A").NoSalesSince, epoch)
	w.clock.Add(72*time.Hour - time.Microsecond)
	equal(t, "skipped within the pause", w.run(false).Counts.SkippedNoSales, 1)
	equal(t, "forced", w.run(true).Counts.Updated, 1)
	equal(t, "the first quiet day stays", w.named("A").NoSalesSince, epoch)
	w.clock.Add(72 * time.Hour)
	equal(t, "updated after it", w.run(false).Counts.Updated, 1)
	s.edit = quiet(1, month)
	w.clock.Add(72 * time.Hour)
	w.run(false)
	equal(t, "a sale ends it", w.named("A").NoSalesSince.IsZero() && w.named("A").RetryAt.IsZero(), true)
}

func TestRule5_UnknownSalesAndShortWindowsAreNoPause(t *testing.T) {
	for name, edit := range map[string]func(*provider.Quote) bool{
		"unknown": quiet(provider.Unknown, 0),
		"a week":  quiet(0, 7*24*time.Hour),
	} {
		s := bulk("alpha", []string{"A"}, "a1", "a2", "a3")
		s.edit = edit
		w := newWorld(t, s)
		w.push("u", 730, "A")
		w.drain()
		if !w.named("A").RetryAt.IsZero() {
			t.Errorf("%s: taken for no sales", name)
		}
	}
}

func TestRule5_UnknownPricesAreNeverSkipped(t *testing.T) {
	s := bulk("alpha", []string{"A"}, "a1")
	s.price = func(string, string) money.Micro { return 0 }
	s.edit = quiet(0, 30*24*time.Hour)
	w := newWorld(t, s)
	w.push("u", 730, "A")
	w.drain()
	for range 3 {
		equal(t, "requested again immediately", w.run(false).Counts.NoQuote, 1)
	}
}

func TestRule5_ItemWithoutResponseFailsAndKeepsItsTimes(t *testing.T) {
	s := bulk("alpha", []string{"A"}, "a1", "a2", "a3")
	w := newWorld(t, s)
	w.push("u", 730, "A")
	w.drain()
	before := w.named("A")
	w.clock.Add(7 * time.Hour)
	s.fail = func(int, provider.Call) error { return s.broken(provider.KindServer) }
	j := w.run(false)
	equal(t, "state", j.State, refresh.Failed)
	equal(t, "failed", j.Counts.Failed, 1)
	after := w.named("A")
	equal(t, "failures", after.Failures, 1)
	after.Failures = 0
	equal(t, "item", *after, *before)
	items, err := view.JobItems(t.Context(), w.store, j.ID, refresh.ItemFailed, -1, 0, 10)
	must(t, err)
	equal(t, "error", items[0].Error, "alpha: server: as the script says")
	equal(t, "last error", j.LastError, "alpha: server: as the script says")

	s.fail = nil
	j = w.run(false) // due immediately, because its times are unchanged
	equal(t, "updated", j.Counts.Updated, 1)
	equal(t, "failures", w.named("A").Failures, 0)
	w.checkIdle()
}

func TestRule5_FutureTimesSkipNothing(t *testing.T) {
	s := bulk("alpha", []string{"A"}, "a1", "a2", "a3")
	s.edit = quiet(0, 30*24*time.Hour)
	w := newWorld(t, s)
	w.push("u", 730, "A")
	w.drain()
	w.clock.Add(-400 * 24 * time.Hour)
	j := w.run(false)
	equal(t, "updated by a clock set back", j.Counts.Updated, 1)
	w.clock.Add(800 * 24 * time.Hour)
	j = w.run(false)
	equal(t, "updated by a clock set forward", j.Counts.Updated, 1)
}

func TestErrors_NameTheProviderOnce(t *testing.T) {
	for name, failure := range map[string]error{
		"of the provider":  &provider.Error{Provider: "alpha", Kind: provider.KindProtocol, Detail: "broken"},
		"wrapped":          fmt.Errorf("alpha: %w", &provider.Error{Provider: "alpha", Kind: provider.KindProtocol, Detail: "broken"}),
		"of somebody else": errors.New("broken"),
		"with the name":    errors.New("alpha: broken"),
	} {
		t.Run(name, func(t *testing.T) {
			a := bulk("alpha", []string{"A"}, "a1")
			a.fail = func(int, provider.Call) error { return failure }
			w := newWorld(t, a)
			w.push("u", 730, "A")
			w.drain()
			equal(t, "last error", w.last(refresh.Missing).LastError, "alpha: protocol: broken")
		})
	}
}
