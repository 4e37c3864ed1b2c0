package refresh_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay/internal/catalog"
	"assay/internal/inventory"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/provider"
	"assay/internal/provider/allowance"
	"assay/internal/refresh"
	"assay/internal/view"
)

// slow returns a provider that takes one name per request, 25 requests in 5 minutes.
func slow(name string, items []string, markets ...string) *fakeProvider {
	s := single(name, items, markets...)
	s.d.Hosts = []provider.Host{{Limit: provider.Limit{Requests: 25, Per: 5 * time.Minute}}}
	return s
}

// limit makes a provider enforce its budget, as the client of a real provider does.
func (w *world) limit(s *fakeProvider) {
	s.admit = func(ctx context.Context, call provider.Call) error {
		r, err := allowance.New(w.store, s.d.Name, s.d.HostAt(s.d.HostOf(call.File))).Take(ctx)
		if err == nil && r.Wait == 0 {
			return nil
		}
		return &provider.Error{Provider: s.d.Name, Kind: r.Kind, RetryAfter: r.Wait, Err: err}
	}
}

// pushAmounts replaces a user's inventory with the given number of pieces of each name.
func (w *world) pushAmounts(user string, amounts map[string]int64) {
	w.tb.Helper()
	p := inventory.Push{AppID: catalog.CS2, ContextID: "2", SnapshotAt: w.clock.Now()}
	for n, amount := range amounts {
		p.Assets = append(p.Assets, inventory.Asset{AssetID: n, Name: n, Amount: amount, Tradable: true, Marketable: true})
	}
	w.pushed(user, p)
}

// requestedNamesOf returns the names that were requested from a provider since the previous
// call of requestedNamesOf, in order.
func requestedNamesOf(s *fakeProvider) []string {
	var out []string
	for _, c := range s.requested() {
		out = append(out, c.Names...)
	}
	return out
}

// priced returns a world in which a bulk provider has priced all names. The first names have
// the highest prices. The background provider has received no request yet.
func priced(t *testing.T, list []string, steam *fakeProvider) *world {
	t.Helper()
	b := bulk("beta", list, "b1")
	b.price = func(_, name string) money.Micro { return units(int64(1_000 - slices.Index(list, name))) }
	w := newWorld(t, b)
	w.push("u", 730, list...)
	w.drain()
	equal(t, "prices", w.count(`SELECT count(*) FROM item WHERE price > 0`), int64(len(list)))
	w.clock.Add(7 * time.Hour)
	w.providers = append(w.providers, steam)
	w.limit(steam)
	w.restart()
	return w
}

// finish completes all live jobs, without background requests.
func (w *world) finish() {
	w.tb.Helper()
	for w.count(`SELECT count(*) FROM refresh_job WHERE state IN ('queued', 'running')`) > 0 {
		for _, worker := range w.engine.Workers() {
			if worker.Kind != refresh.FetchKind("steam", "") {
				_, err := worker.Work(w.tb.Context())
				must(w.tb, err)
			}
		}
	}
}

// runFirst runs a bulk job before any background request.
func (w *world) runFirst(forced bool) refresh.Job {
	w.tb.Helper()
	id := w.begin(forced)
	w.finish()
	w.drain()
	return w.job(id)
}

func TestBackground_JobEndsWithoutWaiting(t *testing.T) {
	list := names("Item", 100)
	steam := slow("steam", list, "s1")
	w := priced(t, list, steam)
	started := w.clock.Now()
	id := w.begin(false)
	w.finish()
	j := w.job(id)
	equal(t, "state", j.State, refresh.Finished)
	equal(t, "updated", j.Counts.Updated, 100)
	equal(t, "the duration of the job", j.FinishedAt.Sub(started), 0)
	equal(t, "calls", len(steam.requested()), 0)
	left, err := view.Deferred(t.Context(), w.store, []int64{id})
	must(t, err)
	equal(t, "deferred", len(left), 1)
	w.drain()
	equal(t, "calls", len(steam.requested()), 25)
	w.checkIdle()
}

func TestBackground_RequestsByValueTimesStaleness(t *testing.T) {
	list := names("Item", 60)
	steam := slow("steam", list, "s1")
	w := priced(t, list, steam)
	w.runFirst(false)
	first := requestedNamesOf(steam)
	equal(t, "calls", len(first), 25)
	if !slices.Equal(first, list[:25]) {
		t.Errorf("the provider got %q, want the most valuable names first", first)
	}
	w.clock.Add(4 * time.Minute)
	w.drain()
	equal(t, "calls within the period", len(steam.requested()), 0)
	for range 3 {
		w.clock.Add(time.Minute)
		w.drain()
	}
	if second := requestedNamesOf(steam); !slices.Equal(second, list[25:50]) {
		t.Errorf("the provider got %q, want the deferred names in order", second)
	}
	equal(t, "requests counted", w.count(`SELECT sum(requests) FROM fetch_unit WHERE provider = 'steam'`), 50)
	equal(t, "names left to request", w.count(`SELECT size FROM fetch_unit WHERE provider = 'steam'`), 10)

	// Twenty more pieces give the cheapest name a higher priority than every requested name.
	// Names without a request still come first.
	w.pushAmounts("v", map[string]int64{list[49]: 20})
	w.clock.Add(7 * time.Hour)
	w.runFirst(false)
	third := requestedNamesOf(steam)
	if want := slices.Concat(list[50:60], list[49:50], list[:14]); !slices.Equal(third, want) {
		t.Errorf("the provider got\n%q, want\n%q", third, want)
	}
	w.checkIdle()
}

func TestBackground_QuoteChangesPriceInNextJob(t *testing.T) {
	list := names("Item", 3)
	steam := slow("steam", list, "s1", "s2")
	steam.price = func(string, string) money.Micro { return units(1_100) }
	w := priced(t, list, steam)
	w.runFirst(false)
	equal(t, "calls", len(steam.requested()), 3)
	before := w.named(list[0])
	equal(t, "price", before.Price, units(1_000))
	snaps, err := view.Snapshots(t.Context(), w.store, before.ID)
	must(t, err)
	equal(t, "snapshots", len(snaps), 3)
	for _, s := range snaps[1:] {
		equal(t, "provider", s.Provider, "steam")
		equal(t, "the ask of the quote", s.Ask, units(1_100))
		equal(t, "reason", s.Reason, pricing.Awaiting)
		equal(t, "the fetch time of the quote", s.FetchedAt, w.clock.Now())
	}
	w.clock.Add(7 * time.Hour)
	w.drain()
	equal(t, "price", w.named(list[0]).Price, units(1_000))
	steam.admit = func(context.Context, provider.Call) error { return steam.broken(provider.KindBreaker) }
	w.run(false)
	after := w.named(list[0])
	equal(t, "price", after.Price, units(1_100))
	equal(t, "markets", after.UsedMarkets, 3)
	w.checkIdle()
}

func TestBackground_OnlyProviderPricesKnownAndMissingItems(t *testing.T) {
	list := names("Item", 30)
	steam := slow("steam", list[:29], "s1", "s2", "s3")
	w := newWorld(t, steam)
	w.limit(steam)
	w.push("u", 730, list[:5]...)
	w.drain()
	w.clock.Add(time.Second)
	w.push("v", 730, list[5:]...)
	w.drain()
	equal(t, "calls", len(steam.requested()), 25)
	w.clock.Add(30 * time.Second)
	w.drain()
	equal(t, "names that were requested and are still queued", w.count(`
		SELECT count(*) FROM missing_price m JOIN item i ON i.id = m.item_id JOIN background_name n ON n.name = i.name
		WHERE n.requested_at > 0 AND n.name <> 'Item 29 | Test (Factory New)'`), 0)
	equal(t, "longest-waiting names that are still queued", w.count(`SELECT count(*) FROM missing_price m JOIN item i ON i.id = m.item_id
		WHERE i.name IN ('Item 0 | Test (Factory New)', 'Item 1 | Test (Factory New)', 'Item 4 | Test (Factory New)')`), 0)
	for range 12 {
		w.clock.Add(time.Minute)
		w.drain()
	}
	equal(t, "calls", len(steam.requested()), 5)
	equal(t, "prices", w.count(`SELECT count(*) FROM item WHERE price > 0`), 29)
	equal(t, "attempts for an unlisted name", w.count(`SELECT attempts FROM missing_price`), 1)
	w.checkIdle()

	steam.price = func(string, string) money.Micro { return units(12) }
	w.clock.Add(7 * time.Hour)
	j := w.runFirst(false)
	equal(t, "items skipped for the budget", j.Counts.SkippedBudget, 29)
	equal(t, "items whose recent request returned no quote", j.Counts.NoQuote, 1)
	equal(t, "items with a different price", w.count(`SELECT count(*) FROM item WHERE price = 12000000`), 0)
	w.clock.Add(time.Hour)
	j = w.runFirst(false)
	equal(t, "updated", j.Counts.Updated, 24) // one of the 25 requested names is unlisted
	equal(t, "items with a different price", w.count(`SELECT count(*) FROM item WHERE price = 12000000`), j.Counts.Updated)
	w.checkIdle()
}

func TestBackground_NextPlanTakesOverDeferredNames(t *testing.T) {
	list := names("Item", 60)
	steam := slow("steam", list, "s1")
	w := priced(t, list, steam)
	first := w.run(false)
	w.clock.Add(10 * time.Second)
	second := w.run(true)
	equal(t, "names with a rank", w.count(`SELECT count(*) FROM background_name WHERE rank > 0`), 60)
	equal(t, "names that the first job ranked", w.count(`SELECT count(*) FROM background_name WHERE rank > 0 AND job_id = $1`, first.ID), 0)
	for range 6 {
		w.clock.Add(time.Minute)
		w.drain()
	}
	equal(t, "calls", len(steam.requested()), 50)
	equal(t, "requests counted for the first job", w.count(`SELECT requests FROM fetch_unit WHERE provider = 'steam' AND job_id = $1`, first.ID), 25)
	equal(t, "requests counted for the second job", w.count(`SELECT requests FROM fetch_unit WHERE provider = 'steam' AND job_id = $1`, second.ID), 25)
	w.checkIdle()
}

func TestPlan_BatchProviderPlansByPriorityWithinBudget(t *testing.T) {
	list := names("Item", 60)
	s := batch("steam", 10, list, "s1")
	s.d.Hosts = []provider.Host{{Limit: provider.Limit{Requests: 2, Per: time.Hour}}}
	w := priced(t, list, s)
	f, err := w.engine.Forecast(t.Context(), false)
	must(t, err)
	j := w.run(false)
	requested := requestedNamesOf(s)
	slices.Sort(requested)
	want := slices.Sorted(slices.Values(list[:20]))
	if !slices.Equal(requested, want) {
		t.Errorf("the provider got %q, want the most valuable names", requested)
	}
	equal(t, "calls in the forecast", f.Providers[1].Requests, 2)
	equal(t, "deferred calls in the forecast", f.Providers[1].Deferred, 4)
	use, err := view.RequestCounts(t.Context(), w.store, []int64{j.ID})
	must(t, err)
	equal(t, "names left for later", use[1].DeferredNames, 40)
	equal(t, "updated", j.Counts.Updated, 60)
	equal(t, "the last error", j.LastError, "")
	times := map[string]int{}
	for _, n := range requested {
		times[n]++
	}
	for range 5 {
		w.clock.Add(7 * time.Hour)
		w.run(false)
		for _, n := range requestedNamesOf(s) {
			times[n]++
		}
	}
	equal(t, "requested names in six jobs", len(times), 60)
	w.checkIdle()
}

func TestForecast_MarksBackgroundProviders(t *testing.T) {
	list := names("Item", 60)
	w := priced(t, list, slow("steam", list, "s1"))
	f, err := w.engine.Forecast(t.Context(), false)
	must(t, err)
	want := refresh.Cost{
		Provider: "steam", Deferred: 60, Background: true,
		Hosts: []refresh.HostCost{{Deferred: 60, Names: 60, Why: refresh.BoundBackground}},
	}
	if diff := cmp.Diff(want, f.Providers[1]); diff != "" {
		t.Errorf("cost of steam (-want +got):\n%s", diff)
	}
	equal(t, "items skipped for the budget", f.Budget, 0)
}

func TestBackground_CountsRequestsAndQuotesByProvider(t *testing.T) {
	list := names("Item", 30)
	steam := slow("steam", list[5:], "s1", "s2")
	w := priced(t, list, steam)
	j := w.runFirst(false)
	got, err := view.QuoteCounts(t.Context(), w.store, []int64{j.ID})
	must(t, err)
	want := []view.MarketYield{
		{JobID: j.ID, Provider: "beta", Market: "b1", Quotes: 30},
		{JobID: j.ID, Provider: "steam", Market: "s1", Quotes: 20},
		{JobID: j.ID, Provider: "steam", Market: "s2", Quotes: 20},
	}
	if !slices.Equal(got, want) {
		t.Errorf("quotes of each market: got %+v, want %+v", got, want)
	}
	later, err := view.DeferredNames(t.Context(), w.store)
	must(t, err)
	equal(t, "names left for later", later["steam"], 5)
}

func TestBackground_PricedNameIsNoLongerUrgent(t *testing.T) {
	list := names("Item", 60)
	steam := slow("steam", list, "s1")
	b := bulk("beta", list, "b1")
	b.price = func(_, name string) money.Micro { return units(int64(1_000 - slices.Index(list, name))) }
	w := newWorld(t, b, steam)
	steam.admit = func(context.Context, provider.Call) error { return steam.broken(provider.KindBreaker) }
	w.push("u", 730, list...)
	w.drain()
	equal(t, "names without a price", w.count(`SELECT count(*) FROM background_name WHERE missing_since > 0`), 60)
	equal(t, "missing prices", w.count(`SELECT count(*) FROM missing_price`), 0)
	w.clock.Add(7 * time.Hour)
	w.limit(steam)
	w.runFirst(false)
	if requested := requestedNamesOf(steam); !slices.Equal(requested, list[:25]) {
		t.Errorf("the provider got %q, want the most valuable names first", requested)
	}
	w.checkIdle()
}
