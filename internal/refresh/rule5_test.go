package refresh_test

import (
	"testing"
	"time"

	"assay/internal/money"
	"assay/internal/provider"
	"assay/internal/refresh"
	"assay/internal/view"
)

func TestRule5_SkipsItemsWithinTTLWithTolerance(t *testing.T) {
	list := names("Item", 5)
	s := bulk("alpha", list, "a1", "a2", "a3")
	w := newWorld(t, s)
	w.push("u", 730, list...)
	w.drain()
	limit := 6 * time.Hour * 95 / 100
	w.clock.Add(limit - time.Microsecond)
	j := w.run(false)
	equal(t, "items skipped just within the TTL", j.Counts.SkippedTTL, 5)
	equal(t, "state", j.State, refresh.Finished)
	w.clock.Add(time.Microsecond)
	j = w.run(false)
	equal(t, "items updated just beyond the TTL", j.Counts.Updated, 5)
	w.checkIdle()
}

func TestRule5_ForceIgnoresOnlyTTLAndPause(t *testing.T) {
	list := names("Item", 4)
	s := bulk("alpha", list, "a1", "a2", "a3")
	w := newWorld(t, s)
	w.push("u", 730, list...)
	w.drain()
	equal(t, "updated", w.run(true).Counts.Updated, 4)
	equal(t, "items skipped by their TTL", w.run(false).Counts.SkippedTTL, 4)
	s.fail = func(int, provider.Call) error { return s.broken(provider.KindBreaker) }
	equal(t, "items skipped by the breaker in a forced refresh", w.run(true).Counts.SkippedBackoff, 4)
}

func TestRule5_TheTTLCountsFromTheJobsCreation(t *testing.T) {
	s := bulk("alpha", []string{"A"}, "a1", "a2", "a3")
	w := newWorld(t, s)
	w.push("u", 730, "A")
	w.drain()
	w.clock.Add(5 * time.Hour)
	id := w.begin(false)
	w.clock.Add(5 * time.Hour) // the job is planned 5 hours after its start
	w.drain()
	equal(t, "items skipped by their TTL", w.job(id).Counts.SkippedTTL, 1)
}

// quiet returns an edit that sets the number of sales and their window on every quote.
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
	equal(t, "the time since which no sale is known", w.named("A").NoSalesSince, epoch)
	w.clock.Add(72*time.Hour - time.Microsecond)
	equal(t, "items skipped within the pause", w.run(false).Counts.SkippedNoSales, 1)
	equal(t, "items updated by a forced refresh", w.run(true).Counts.Updated, 1)
	equal(t, "the first day without sales", w.named("A").NoSalesSince, epoch)
	w.clock.Add(72 * time.Hour)
	equal(t, "items updated after the pause", w.run(false).Counts.Updated, 1)
	s.edit = quiet(1, month)
	w.clock.Add(72 * time.Hour)
	w.run(false)
	equal(t, "whether the item has no pause", w.named("A").NoSalesSince.IsZero() && w.named("A").RetryAt.IsZero(), true)
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
			t.Errorf("%s: got a retry time, want none", name)
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
		equal(t, "items requested again immediately", w.run(false).Counts.NoQuote, 1)
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
	equal(t, "result of the item", *after, *before)
	items, err := view.JobItems(t.Context(), w.store, j.ID, refresh.ItemFailed, -1, 0, 10)
	must(t, err)
	equal(t, "error", items[0].Error, "alpha: server error: scripted failure")
	equal(t, "the last error", j.LastError, "alpha: server error: scripted failure")

	s.fail = nil
	j = w.run(false) // the item is due immediately, because its times are unchanged
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
	equal(t, "items updated after the clock was set back", j.Counts.Updated, 1)
	w.clock.Add(800 * 24 * time.Hour)
	j = w.run(false)
	equal(t, "items updated after the clock was set forward", j.Counts.Updated, 1)
}
