package refresh_test

import (
	"slices"
	"testing"
	"time"

	"assay/internal/money"
	"assay/internal/provider"
	"assay/internal/refresh"
)

func TestRule3_SyncDoesNotRefreshKnownPrices(t *testing.T) {
	list := names("Item", 30)
	s := bulk("alpha", list, "a1", "a2", "a3")
	w := newWorld(t, s)
	w.push("u1", 730, list...)
	w.drain()
	s.requested()
	w.clock.Add(48 * time.Hour) // the prices are old but still known
	r := w.push("u2", 730, list...)
	equal(t, "queued names", r.QueuedNames, 0)
	equal(t, "priced rows", r.PricedRows, 30)
	w.drain()
	equal(t, "calls", len(s.requested()), 0)
	equal(t, "value", w.valueOf("u2", 3), units(10))
	w.checkIdle()
}

func TestRule3_EachUnknownNameIsQueuedOnce(t *testing.T) {
	s := bulk("alpha", []string{"A", "B"}, "a1")
	w := newWorld(t, s)
	equal(t, "names queued by the first push", w.push("u1", 730, "A", "A", "B").QueuedNames, 2)
	equal(t, "names queued by another user", w.push("u2", 730, "A", "B", "C").QueuedNames, 1)
	equal(t, "names queued by the second push", w.push("u2", 730, "A", "B", "C").QueuedNames, 0)
	equal(t, "entries", w.count(`SELECT count(*) FROM missing_price`), 3)
	w.drain()
	j := w.last(refresh.Missing)
	equal(t, "items", j.Counts.Total, 3)
	equal(t, "priced names", j.Counts.Updated, 2)
	equal(t, "items without a quote", j.Counts.NoQuote, 1)
	equal(t, "entries that remain", w.count(`SELECT count(*) FROM missing_price`), 1)
	equal(t, "value", w.valueOf("u1", 1), units(10))
	w.checkIdle()
}

func TestRule3_PauseDoublesUpToThreeDays(t *testing.T) {
	s := batch("alpha", 10, nil, "a1")
	w := newWorld(t, s)
	w.push("u", 730, "Not on any market")
	w.drain()
	s.requested()
	for _, hours := range []int{1, 2, 4, 8, 16, 32, 64, 72, 72} {
		w.clock.Add(time.Duration(hours)*time.Hour - time.Second)
		w.drain()
		if n := len(s.requested()); n != 0 {
			t.Fatalf("got a request one second before %d hours had passed, want none", hours)
		}
		w.clock.Add(time.Second)
		w.drain()
		if n := len(s.requested()); n != 1 {
			t.Fatalf("got %d requests after %d hours, want 1", n, hours)
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
	equal(t, "the item has no retry time", w.named("A").RetryAt.IsZero(), false)
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
	equal(t, "entries that remain", w.count(`SELECT count(*) FROM missing_price`), 0)
	w.checkIdle()
}

func TestRule3_FreshFileServesMissingPrices(t *testing.T) {
	list := names("Item", 20)
	s := bulk("alpha", append(slices.Clone(list), "New"), "a1", "a2")
	w := newWorld(t, s)
	w.push("u", 730, list...)
	w.clearMissing()
	w.run(false)
	equal(t, "calls of the job", len(s.requested()), 2)

	w.clock.Add(4 * time.Minute)
	w.push("v", 730, "New")
	w.drain()
	equal(t, "calls for a file that is four minutes old", len(s.requested()), 0)
	equal(t, "price", w.named("New").Price, units(10))
	equal(t, "the quote time", w.named("New").QuotesAt, epoch)
	w.checkIdle()

	w.clock.Add(time.Minute)
	w.push("v", 730, "Newer")
	w.drain()
	equal(t, "calls for a file that is five minutes old", len(s.requested()), 2)
	w.checkIdle()
}

func TestRule3_FewMissingPricesReadFewBlobs(t *testing.T) {
	list := names("Item", 4_000)
	w := newWorld(t, bulk("alpha", list, "a1"))
	w.push("u1", 730, list...)
	w.clearMissing()
	w.run(false)
	w.exec(`UPDATE item SET price = 0 WHERE name = $1`, list[7])
	w.exec(`UPDATE inventory SET value = NULL`)
	w.push("u2", 730, list[7])
	w.engine.BlobsRead()
	w.drain()
	equal(t, "price", w.named(list[7]).Price, varied(units(10), list[7]))
	equal(t, "parts of the response that were read", w.engine.BlobsRead(), 1)
}
