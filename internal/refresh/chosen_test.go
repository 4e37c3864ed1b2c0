package refresh_test

import (
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/provider"
	"assay/internal/refresh"
	"assay/internal/view"
)

// The calls for the first 20 names time out, and those for the next 20 get an error page.
func TestRetryFailed_RetriesOneCause(t *testing.T) {
	list := names("Item", 60)
	s := batch("alpha", 20, list, "a1")
	w := newWorld(t, s)
	w.push("u", 730, list...)
	w.clearMissing()
	s.fail = func(n int, _ provider.Call) error {
		switch n {
		case 1:
			return s.broken(provider.KindTimeout)
		case 2:
			return s.broken(provider.KindServer)
		}
		return nil
	}
	first := w.run(false)
	equal(t, "failed", first.Counts.Failed, 40)
	causes, others, err := view.Causes(t.Context(), w.store, []int64{first.ID}, 0, 10)
	must(t, err)
	if len(causes) != 2 || others != 0 || causes[0].Count != 20 || causes[1].Count != 20 {
		t.Fatalf("got causes %+v and %d others, want two with 20 items each", causes, others)
	}
	if _, err := w.engine.RetryFailed(t.Context(), first.ID, "another error", "test"); code(err) != "nothing_failed" {
		t.Errorf("retry of an unknown cause: got error %v, want nothing_failed", err)
	}
	started, err := w.engine.RetryFailed(t.Context(), first.ID, causes[1].Cause, "test")
	must(t, err)
	w.drain()
	j := w.job(started.JobID)
	equal(t, "items", j.Counts.Total, 20)
	equal(t, "updated", j.Counts.Updated, 20)
	failed, err := view.JobItems(t.Context(), w.store, first.ID, refresh.ItemFailed, -1, 0, 100)
	must(t, err)
	for _, i := range failed {
		if priced := w.named(i.Key.Name).Price > 0; priced != (i.Error == causes[1].Cause) {
			t.Errorf("%s failed with %q: got priced %t, want a price only for items with the retried cause", i.Key.Name, i.Error, priced)
		}
	}
	w.checkIdle()
}

func TestRefreshItems_RefreshesChosenItemsWithinTTL(t *testing.T) {
	list := names("Item", 30)
	s, byName := bulk("alpha", list, "a1"), batch("beta", 10, list, "b1")
	w := newWorld(t, s, byName)
	w.push("u", 730, list...)
	w.run(false)
	s.requested()
	byName.requested()
	key := func(n int) catalog.Key { return catalog.Key{AppID: 730, Name: list[n]} }
	if _, err := w.engine.RefreshItems(t.Context(), nil, "test"); code(err) != "invalid_body" {
		t.Errorf("no items: got error %v, want invalid_body", err)
	}
	if _, err := w.engine.RefreshItems(t.Context(), []catalog.Key{key(0), {AppID: 730, Name: "unknown"}}, "test"); code(err) != "item_not_found" {
		t.Errorf("unknown item: got error %v, want item_not_found", err)
	}
	if _, err := w.engine.RefreshItems(t.Context(), make([]catalog.Key, refresh.MaxChosen+1), "test"); code(err) != "too_many_items" {
		t.Errorf("too many items: got error %v, want too_many_items", err)
	}
	w.clock.Add(time.Minute)
	started, err := w.engine.RefreshItems(t.Context(), []catalog.Key{key(3), key(7), key(3)}, "test")
	must(t, err)
	again, err := w.engine.RefreshItems(t.Context(), []catalog.Key{key(1)}, "test")
	must(t, err)
	if !started.Started || again.Started || again.JobID != started.JobID {
		t.Errorf("got %+v and %+v, want one job", started, again)
	}
	w.drain()
	j := w.job(started.JobID)
	equal(t, "kind", j.Kind, refresh.Chosen)
	equal(t, "items", j.Counts.Total, 2)
	equal(t, "updated", j.Counts.Updated, 2)
	equal(t, "requests for a file fetched a minute ago", len(s.requested()), 0)
	equal(t, "requests by name", len(byName.requested()), 1)
	for n, want := range map[int]time.Time{3: w.clock.Now(), 4: w.clock.Now().Add(-time.Minute)} {
		if got := w.named(list[n]).EstimatedAt; got.Sub(want).Abs() > time.Second {
			t.Errorf("estimate of %s: got %v, want %v", list[n], got, want)
		}
	}
	w.checkIdle()
}

func TestAcceptItems_AcceptsHeldPricesOnly(t *testing.T) {
	list := names("Item", 3)
	w := newWorld(t, bulk("alpha", list, "a1"))
	w.push("u", 730, list...)
	w.run(false)
	w.exec(`UPDATE item SET candidate = 77 WHERE name <> $1`, list[0])
	keys := []catalog.Key{{AppID: 730, Name: list[0]}, {AppID: 730, Name: list[1]}}
	accepted, err := w.engine.AcceptItems(t.Context(), keys)
	must(t, err)
	equal(t, "accepted", accepted, 1)
	equal(t, "accepted price", int64(w.named(list[1]).Price), 77)
	equal(t, "held price that was not chosen", int64(w.named(list[2]).Candidate), 77)
	if _, err := w.engine.AcceptItems(t.Context(), append(keys[:1], catalog.Key{AppID: 730, Name: "unknown"})); code(err) != "item_not_found" {
		t.Errorf("unknown item: got error %v, want item_not_found", err)
	}
}

func TestProbeProvider_CountsQuotesAndStoresNothing(t *testing.T) {
	list := names("Item", 5)
	s := bulk("alpha", list, "a1")
	w := newWorld(t, s)
	got, err := w.engine.ProbeProvider(t.Context(), "alpha", "")
	must(t, err)
	equal(t, "quotes", got.Quotes["a1"], 5)
	equal(t, "units", w.count(`SELECT count(*) FROM fetch_unit`), 0)
	if _, err := w.engine.ProbeProvider(t.Context(), "alpha", "unknown"); code(err) != "invalid_parameters" {
		t.Errorf("unknown file: got error %v, want invalid_parameters", err)
	}
	if _, err := w.engine.ProbeProvider(t.Context(), "unknown", ""); code(err) != "provider_not_found" {
		t.Errorf("unknown provider: got error %v, want provider_not_found", err)
	}
	s.fail = func(int, provider.Call) error { return s.broken(provider.KindTimeout) }
	if _, err := w.engine.ProbeProvider(t.Context(), "alpha", ""); provider.KindOf(err) != provider.KindTimeout {
		t.Errorf("failure: got error %v, want a timeout", err)
	}
}

func TestSamplePrices_StoresOneRowPerHalfHour(t *testing.T) {
	list := names("Item", 4)
	w := newWorld(t, bulk("alpha", list, "a1"))
	w.push("u", 730, append(list, "without a price")...)
	w.run(false)
	w.clock.Add(10 * time.Minute)
	must(t, w.engine.SamplePrices(t.Context()))
	must(t, w.engine.SamplePrices(t.Context()))
	equal(t, "rows", w.count(`SELECT count(*) FROM price_sample`), 1)
	equal(t, "fresh", w.count(`SELECT fresh FROM price_sample`), 4)
	equal(t, "unknown", w.count(`SELECT unknown FROM price_sample`), 1)
	equal(t, "budget left", w.count(`SELECT budget_left FROM price_sample`), -1)
	equal(t, "age of quotes in minutes", w.count(`SELECT quote_age / 60000000 FROM price_sample`), 10)
	w.clock.Add(36 * 24 * time.Hour)
	must(t, w.engine.Retain(t.Context()))
	equal(t, "rows after 36 days", w.count(`SELECT count(*) FROM price_sample`), 0)
}
