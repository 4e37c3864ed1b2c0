package refresh_test

import (
	"testing"
	"time"

	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/provider"
	"assay/internal/refresh"
	"assay/internal/view"
)

// times are the price and the times of an item. A job without evidence must not change them.
type times struct {
	price                               money.Micro
	checked, estimated, quotes, updated time.Time
	retry, noSales                      time.Time
}

func timesOf(i *view.StoredItem) times {
	return times{i.Price, i.CheckedAt, i.EstimatedAt, i.QuotesAt, i.UpdatedAt, i.RetryAt, i.NoSalesSince}
}

// One of two providers is down. The file of the other provider has only two of many items.
func TestRule5_OnlyItemsWithEvidenceAreUpdated(t *testing.T) {
	list := names("Item", 1_200)
	down, live := bulk("alpha", list, "a1", "a2", "a3"), bulk("beta", list[:2], "b1", "b2")
	w := newWorld(t, down, live)
	w.push("u", 730, list...)
	w.drain()
	known, other := timesOf(w.named(list[0])), timesOf(w.named(list[7]))
	for _, after := range []time.Duration{time.Hour, 30 * time.Hour} { // the old quotes are first usable and then stale
		w.clock.Add(after)
		down.fail = func(int, provider.Call) error { return down.broken(provider.KindConnect) }
		j := w.run(true)
		equal(t, "state", j.State, refresh.Finished)
		equal(t, "updated", j.Counts.Updated, 2)
		equal(t, "failed", j.Counts.Failed, 1_198)
		w.checkOutcome("one provider is down", j, refresh.JobPartial,
			"failed 1198 0.9983", "alpha/a1 failed 1", "alpha/a2 failed 1", "alpha/a3 failed 1")
		if now := timesOf(w.named(list[7])); now != other {
			t.Errorf("an item without evidence changed from %+v to %+v, want no change", other, now)
		}
		if now := timesOf(w.named(list[0])); !now.checked.Equal(w.clock.Now()) || !now.quotes.Equal(w.clock.Now()) || now.checked.Equal(known.checked) {
			t.Errorf("item with evidence: got the times %+v, want the times of this run", now)
		}
		items, err := view.JobItems(t.Context(), w.store, j.ID, refresh.ItemFailed, -1, 0, 1)
		must(t, err)
		equal(t, "error", items[0].Error, "alpha: no connection: scripted failure")
		w.checkIdle()
	}
	f, err := view.ReadFreshness(t.Context(), w.store, false, w.clock.Now())
	must(t, err)
	equal(t, "fresh items", f.Fresh, 2)
	equal(t, "stale items", f.Stale, 1_198)

	// Items without evidence are due immediately.
	equal(t, "failed items", w.run(false).Counts.Failed, 1_198)
	down.fail = nil
	j := w.run(false)
	equal(t, "items updated after the provider recovered", j.Counts.Updated, 1_198)
	equal(t, "items skipped within the TTL", j.Counts.SkippedTTL, 2)
	w.checkIdle()
}

func TestRule5_ReasonsWithoutEvidence(t *testing.T) {
	list := names("Item", 10)
	for _, c := range []struct {
		name   string
		damage func(w *world, s *fakeProvider)
		counts refresh.Counts
	}{
		{"failure", func(_ *world, s *fakeProvider) {
			s.fail = func(int, provider.Call) error { return s.broken(provider.KindServer) }
		}, refresh.Counts{Failed: 8}},
		{"budget", func(_ *world, s *fakeProvider) {
			s.fail = func(int, provider.Call) error { return s.broken(provider.KindBudget) }
		}, refresh.Counts{SkippedBudget: 8}},
		{"circuit breaker", func(_ *world, s *fakeProvider) {
			s.fail = func(int, provider.Call) error { return s.broken(provider.KindBreaker) }
		}, refresh.Counts{SkippedBackoff: 8}},
		{"retry-after", func(_ *world, s *fakeProvider) {
			s.fail = func(int, provider.Call) error { return s.wait(time.Hour) }
		}, refresh.Counts{SkippedBackoff: 8}},
		{"pause", func(w *world, _ *fakeProvider) { must(t, w.engine.PauseProvider(t.Context(), "alpha")) }, refresh.Counts{SkippedPaused: 8}},
		{"a response without the item", func(_ *world, s *fakeProvider) {
			s.edit = func(q *provider.Quote) bool { return q.Name == list[2] || q.Name == list[3] }
		}, refresh.Counts{Updated: 0, NoQuote: 6}},
	} {
		for _, shape := range []provider.Shape{provider.Bulk, provider.Batch} {
			s, live := bulk("alpha", list, "a1"), bulk("beta", list[:2], "b1")
			if shape == provider.Batch {
				s = batch("alpha", 5, list, "a1")
			}
			w := newWorld(t, s, live)
			w.push("u", 730, list...)
			w.drain()
			before := timesOf(w.named(list[9]))
			w.clock.Add(7 * time.Hour)
			c.damage(w, s)
			j := w.run(false)
			got, want := j.Counts, c.counts
			if c.name == "a response without the item" {
				want.Updated, want.NoQuote = 4, 6
				if shape == provider.Bulk { // quarantined: less than half of the earlier file
					want = refresh.Counts{Updated: 2, Failed: 8}
				}
			} else {
				want.Updated = 2
			}
			want.Total, want.Changed = 10, got.Changed
			if got != want {
				t.Errorf("%s, %s: got counts %+v, want %+v", c.name, shape, got, want)
			}
			if now := timesOf(w.named(list[9])); got.NoQuote == 0 && now != before {
				t.Errorf("%s, %s: the times changed from %+v to %+v, want no change", c.name, shape, before, now)
			}
			w.checkIdle()
			w.stop()
		}
	}
}

// The second market has never listed the item, so it is no evidence.
func TestRule5_DelistedItemIsEvidence(t *testing.T) {
	list := names("Item", 30)
	a, b := bulk("alpha", list, "a1"), bulk("beta", list[1:], "b1")
	w := newWorld(t, a, b)
	w.push("u", 730, list...)
	w.drain()
	w.clock.Add(7 * time.Hour)
	a.edit = func(q *provider.Quote) bool { return q.Name != list[0] && q.Name != list[1] }
	j := w.run(false)
	equal(t, "updated", j.Counts.Updated, 29) // one of them has a quote only from the other market
	equal(t, "items without a quote", j.Counts.NoQuote, 1)
	equal(t, "price", w.named(list[0]).Price, units(10))
	equal(t, "the check time", w.named(list[0]).CheckedAt, epoch)
	equal(t, "items skipped by their TTL", w.run(false).Counts.SkippedTTL, 30)

	w.clock.Add(7 * time.Hour)
	a.fail = func(int, provider.Call) error { return a.broken(provider.KindConnect) }
	j = w.run(false)
	equal(t, "the state of the item", w.states(j.ID)[list[0]], refresh.ItemFailed)
	equal(t, "updated", j.Counts.Updated, 29)
	w.checkIdle()
}

// The test covers a file that states its own time, a price from older quotes, and a price
// from an earlier response.
func TestRule5_TimesFollowTheQuotes(t *testing.T) {
	s := bulk("alpha", []string{"A", "B"}, "a1")
	stated := epoch.Add(-3 * 24 * time.Hour)
	s.stated = func(provider.Call) time.Time { return stated }
	w := newWorld(t, s)
	w.push("u", 730, "A")
	w.drain()
	equal(t, "the check time", w.named("A").CheckedAt, stated.Add(time.Hour))
	equal(t, "the quote time", w.named("A").QuotesAt, epoch)
	f, err := view.ReadFreshness(t.Context(), w.store, false, w.clock.Now())
	must(t, err)
	equal(t, "stale items", f.Stale, 1)

	stated = time.Time{}
	w.clock.Add(6 * time.Hour)
	fetched := w.clock.Now()
	w.run(true)
	equal(t, "the check time", w.named("A").CheckedAt, fetched)
	w.clock.Add(4 * time.Minute)
	w.push("v", 730, "B")
	w.drain()
	equal(t, "the check time", w.named("B").CheckedAt, fetched)
	equal(t, "the quote time", w.named("B").QuotesAt, fetched)

	// The second market was quoted an hour later and now fails. The first market no longer
	// has the item.
	b := bulk("beta", []string{"A", "B"}, "b1")
	b.price = func(string, string) money.Micro { return units(11) }
	w.providers = append(w.providers, b)
	w.restart()
	w.clock.Add(time.Hour)
	s.fail = func(int, provider.Call) error { return s.broken(provider.KindConnect) }
	w.run(true)
	equal(t, "the check time", w.named("A").CheckedAt, w.clock.Now())
	s.fail = nil
	b.edit = func(q *provider.Quote) bool { return q.Name == "B" }
	w.clock.Add(time.Hour)
	s.fail = func(int, provider.Call) error { return s.broken(provider.KindConnect) }
	w.run(true)
	equal(t, "the price from the remaining quote", w.named("A").Price, units(10))
	equal(t, "the check time", w.named("A").CheckedAt, fetched)
	snaps, err := view.Snapshots(t.Context(), w.store, w.named("A").ID)
	must(t, err)
	equal(t, "the reason of the delisted quote", snaps[1].Reason, pricing.NotOffered)
	w.checkIdle()
}

// The response lacks a market that it should contain.
func TestRule5_MissingMarketIsNoEvidence(t *testing.T) {
	for _, s := range []*fakeProvider{bulk("alpha", []string{"A"}, "a1"), batch("alpha", 10, []string{"A"}, "a1")} {
		other := bulk("beta", []string{"B"}, "b1")
		w := newWorld(t, s, other)
		w.push("u", 730, "A", "B")
		w.drain()
		before := timesOf(w.named("A"))
		s.silent = []string{"a1"}
		s.edit = func(*provider.Quote) bool { return false }
		w.clock.Add(7 * time.Hour)
		j := w.run(false)
		equal(t, "the state of A", w.states(j.ID)["A"], refresh.ItemFailed)
		equal(t, "the state of B", w.states(j.ID)["B"], refresh.ItemUpdated)
		if now := timesOf(w.named("A")); now != before {
			t.Errorf("the item changed from %+v to %+v, want no change", before, now)
		}
		w.checkIdle()
		w.stop()
	}
}

// An error in a row, such as a duplicate JSON member, affects all markets.
func TestRule5_RowRejectedForAllMarketsIsNoEvidence(t *testing.T) {
	list := names("Item", 10)
	s := bulk("alpha", list, "a1", "a2")
	w := newWorld(t, s)
	w.push("u", 730, list...)
	w.drain()
	before := timesOf(w.named(list[2]))
	w.clock.Add(7 * time.Hour)
	s.edit = func(q *provider.Quote) bool { return q.Name != list[2] }
	s.refused = []string{list[2]}
	j := w.run(true)
	equal(t, "counts", j.Counts, refresh.Counts{Total: 10, Updated: 9, Failed: 1})
	if now := timesOf(w.named(list[2])); now != before {
		t.Errorf("an item with a rejected row changed from %+v to %+v, want no change", before, now)
	}
}

// An invalid row for an item does not show that the market has delisted the item.
func TestRule5_RejectedRowIsNoEvidence(t *testing.T) {
	list := names("Item", 10)
	for shape, s := range map[string]*fakeProvider{"file": bulk("alpha", list, "a1"), "names": batch("alpha", 20, list, "a1")} {
		t.Run(shape, func(t *testing.T) {
			other := bulk("beta", list[:1], "b1")
			w := newWorld(t, s, other)
			w.push("u", 730, list...)
			w.drain()
			before := timesOf(w.named(list[2]))
			w.clock.Add(7 * time.Hour)
			s.edit = func(q *provider.Quote) bool {
				if q.Name == list[0] || q.Name == list[2] {
					q.Ask = -1
				}
				return true
			}
			s.extra = []provider.Quote{{Market: "a1", Name: list[3], Currency: "USD", Ask: units(99), Listings: provider.Unknown, Sales: provider.Unknown}}
			j := w.run(true)
			equal(t, "counts", j.Counts, refresh.Counts{Total: 10, Updated: 8, Failed: 2})
			equal(t, "outcome", j.Outcome, refresh.JobPartial)
			if now := timesOf(w.named(list[2])); now != before {
				t.Errorf("an item with a rejected row changed from %+v to %+v, want no change", before, now)
			}
			for _, name := range []string{list[0], list[2], list[3]} {
				equal(t, "quotes of "+name+" marked as absent", w.count(`SELECT count(*) FROM market_snapshot s JOIN item i ON i.id = s.item_id
					WHERE i.name = $1 AND s.reason = $2`, name, pricing.NotOffered), 0)
			}
			items, err := view.JobItems(t.Context(), w.store, j.ID, refresh.ItemFailed, -1, 0, 1)
			must(t, err)
			equal(t, "error", items[0].Error, "alpha: unexpected response: the row of this item was rejected: a1")
			s.edit, s.extra = nil, nil
			j = w.run(false)
			equal(t, "items updated after their rows are valid again", j.Counts.Updated, 2)
			equal(t, "items skipped within the TTL", j.Counts.SkippedTTL, 8)
			w.checkIdle()
		})
	}
}
