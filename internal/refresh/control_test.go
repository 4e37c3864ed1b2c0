package refresh_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay/internal/catalog"
	"assay/internal/fault"
	"assay/internal/money"
	"assay/internal/provider"
	"assay/internal/provider/allowance"
	"assay/internal/randtest"
	"assay/internal/refresh"
)

func code(err error) string {
	if f := fault.Of(err); f != nil {
		return f.Code
	}
	return ""
}

func TestStart_ReturnsTheLiveJob(t *testing.T) {
	w := newWorld(t, bulk("alpha", []string{"A"}, "a1"))
	w.push("u", 730, "A")
	w.forget()
	id := w.begin(false)
	for _, forced := range []bool{false, true} {
		for i := range 5 { // queued, planned, fetched, validated, estimated
			s, err := w.engine.Start(t.Context(), forced, "test")
			must(t, err)
			equal(t, "answer", s, refresh.Started{JobID: id, ForcedIgnored: forced})
			if forced {
				continue
			}
			work := []func(context.Context) (bool, error){
				w.engine.Plan, func(ctx context.Context) (bool, error) { return w.engine.Fetch(ctx, "alpha", "") },
				w.engine.Estimate, w.engine.Estimate, w.engine.Estimate,
			}
			more, err := work[i](t.Context())
			must(t, err)
			equal(t, "work done", more, true)
		}
	}
	w.drain()
	forced := w.begin(true)
	s, err := w.engine.Start(t.Context(), true, "test")
	must(t, err)
	equal(t, "a forced one is not ignored by a forced one", s, refresh.Started{JobID: forced})
	equal(t, "jobs", w.count(`SELECT count(*) FROM refresh_job`), 2)
}

func TestStart_WithoutProviderFails(t *testing.T) {
	w := newWorld(t)
	w.push("u", 730, "A")
	j := w.run(false)
	equal(t, "state", j.State, refresh.Failed)
	if !strings.Contains(j.LastError, "MARKET_PRICE_PROVIDERS") {
		t.Errorf("last error %q", j.LastError)
	}
	equal(t, "entries wait for a provider", w.count(`SELECT count(*) FROM missing_price WHERE job_id = 0`), 1)
}

func TestStart_WithoutItemsFinishes(t *testing.T) {
	w := newWorld(t, bulk("alpha", []string{"A"}, "a1"))
	j := w.run(false)
	equal(t, "state", j.State, refresh.Finished)
	equal(t, "items", j.Counts.Total, 0)
	w.checkIdle()
}

func TestForecast_MatchesTheNextJob(t *testing.T) {
	list, rust := names("Item", 130), names("Rust", 7)
	a, b, c := bulk("alpha", list, "a1", "a2"), batch("beta", 40, list, "b1"), single("gamma", list, "c1")
	paused := batch("delta", 10, list, "d1")
	for _, s := range []*fakeProvider{a, b} {
		s.items[catalog.Rust] = rust
		s.d.Markets[0].AppIDs = append(s.d.Markets[0].AppIDs, catalog.Rust)
	}
	a.d.Files = append(a.d.Files, provider.File{Key: "rust.json", AppID: catalog.Rust, Markets: []string{"a1"}})
	b.d.Hosts = []provider.Host{{Limit: provider.Limit{Requests: 2, Per: time.Minute}}}
	w := newWorld(t, a, b, c, paused)
	must(t, w.engine.PauseProvider(t.Context(), "delta"))
	w.push("u1", 730, list[:100]...)
	w.push("u1", catalog.Rust, rust...)
	w.drain()
	w.clock.Add(3 * time.Hour)
	w.push("u2", 730, list[100:]...)
	w.forget()
	for _, s := range w.providers {
		s.requested()
	}
	for _, forced := range []bool{false, true} {
		before := w.version()
		f, err := w.engine.Forecast(t.Context(), forced)
		must(t, err)
		equal(t, "writes of a forecast", w.version(), before)
		j := w.run(forced)
		equal(t, "due", f.Due, refresh.Due{Due: j.Counts.Updated, TTL: j.Counts.SkippedTTL, NoSales: j.Counts.SkippedNoSales})
		equal(t, "total", f.Due.Due+f.Due.TTL, 137)
		for _, cost := range f.Providers {
			i := slices.IndexFunc(w.providers, func(s *fakeProvider) bool { return s.d.Name == cost.Provider })
			equal(t, "requests of "+cost.Provider, cost.Requests, int64(len(w.providers[i].requested())))
			if cost.Provider == "beta" {
				equal(t, "time at the limit", cost.Time, time.Duration(cost.Requests)*30*time.Second)
			}
		}
	}
	w.checkIdle()
}

func TestForecast_ConsidersSpentBudget(t *testing.T) {
	list := names("Item", 60)
	s := batch("alpha", 10, list, "a1")
	host := provider.Host{Limit: provider.Limit{Requests: 4, Per: time.Minute}, Quota: provider.Quota{Day: 5}}
	s.d.Hosts = []provider.Host{host}
	w := newWorld(t, s)
	w.push("u", 730, list...)
	forecast := func() refresh.Cost {
		f, err := w.engine.Forecast(t.Context(), false)
		must(t, err)
		return f.Providers[0]
	}
	day := time.Date(epoch.Year(), epoch.Month(), epoch.Day()+1, 0, 0, 0, 0, time.UTC)
	costs := func(requests, deferred, names int64) {
		t.Helper()
		h := refresh.HostCost{Requests: requests, Deferred: deferred, Names: names, Why: refresh.BoundDay, FreeAt: day, Time: 75 * time.Second}
		want := refresh.Cost{Provider: "alpha", Requests: requests, Deferred: deferred, Time: 75 * time.Second, Hosts: []refresh.HostCost{h}}
		if diff := cmp.Diff(want, forecast()); diff != "" {
			t.Error(diff)
		}
	}
	costs(5, 1, 10)
	for range 3 {
		_, err := allowance.New(w.store, "alpha", host).Take(t.Context())
		must(t, err)
	}
	costs(2, 4, 40)
}

func TestForecast_CountsItemsThatCannotBeRequested(t *testing.T) {
	list := names("Item", 60)
	s, rust := batch("alpha", 10, list, "a1"), names("Rust", 5)
	s.d.Markets[0].AppIDs = append(s.d.Markets[0].AppIDs, catalog.Rust)
	host := provider.Host{Limit: provider.Limit{Requests: 4, Per: time.Hour}}
	s.d.Hosts = []provider.Host{host}
	w := newWorld(t, s)
	w.push("u", 730, list...)
	w.push("u", catalog.Rust, rust...)
	check := func(requests, deferred, budget int64) {
		t.Helper()
		f, err := w.engine.Forecast(t.Context(), false)
		must(t, err)
		equal(t, "requests", f.Providers[0].Requests, requests)
		equal(t, "deferred", f.Providers[0].Deferred, deferred)
		equal(t, "due", f.Due.Due, 65)
		equal(t, "without a provider", f.Budget, budget)
	}
	check(4, 3, 25) // the period is longer than a job waits
	hold := func(wait time.Duration) {
		_, err := allowance.New(w.store, "alpha", host).StoreRetryAfter(t.Context(), provider.RetryAfter{Wait: wait})
		must(t, err)
	}
	hold(refresh.Patience)
	check(4, 3, 25) // the job waits this long
	hold(2 * refresh.Patience)
	check(0, 7, 65)
	must(t, w.engine.PauseProvider(t.Context(), "alpha"))
	check(0, 0, 65)
	j := w.run(false)
	equal(t, "skipped", j.Counts.SkippedBudget, 65)
}

func TestForecast_LongTimeDoesNotOverflow(t *testing.T) {
	list := names("Item", 2)
	s := batch("alpha", 1, list, "a1")
	s.d.Hosts = []provider.Host{{Limit: provider.Limit{Requests: 1, Per: 200 * 365 * 24 * time.Hour}}}
	w := newWorld(t, s)
	w.push("u", 730, list[0])
	f, err := w.engine.Forecast(t.Context(), false)
	must(t, err)
	equal(t, "time", f.Providers[0].Time, 200*365*24*time.Hour)
	equal(t, "requests", f.Providers[0].Requests, 1)
}

func TestRetryFailed_RetriesFailedItemsWithinTTL(t *testing.T) {
	list := names("Item", 60)
	s := batch("alpha", 20, list, "a1")
	w := newWorld(t, s)
	w.push("u", 730, list...)
	w.forget()
	s.fail = func(n int, _ provider.Call) error {
		if n == 2 {
			return s.broken(provider.KindTimeout)
		}
		return nil
	}
	first := w.run(false)
	equal(t, "failed", first.Counts.Failed, 20)
	equal(t, "state", first.State, refresh.Finished)
	s.requested()
	started, err := w.engine.RetryFailed(t.Context(), first.ID, "test")
	must(t, err)
	if _, err := w.engine.RetryFailed(t.Context(), started.JobID, "test"); code(err) != "job_running" {
		t.Errorf("retry of a live job: %v", err)
	}
	w.drain()
	j := w.job(started.JobID)
	equal(t, "retry of", j.RetryOf, first.ID)
	equal(t, "items", j.Counts.Total, 20)
	equal(t, "updated", j.Counts.Updated, 20)
	equal(t, "calls", len(s.requested()), 1)
	if _, err := w.engine.RetryFailed(t.Context(), j.ID, "test"); code(err) != "nothing_failed" {
		t.Errorf("retry without a failure: %v", err)
	}
	if _, err := w.engine.RetryFailed(t.Context(), 999, "test"); code(err) != "job_not_found" {
		t.Errorf("retry of no job: %v", err)
	}
	w.checkIdle()
}

func TestRetryFailed_RetriesSkippedItems(t *testing.T) {
	list := names("Item", 20)
	s := bulk("alpha", list, "a1")
	w := newWorld(t, s)
	w.push("u", 730, list...)
	w.run(false)
	w.clock.Add(7 * time.Hour)
	must(t, w.engine.PauseProvider(t.Context(), "alpha"))
	j := w.run(false)
	equal(t, "skipped", j.Counts.SkippedPaused, 20)
	must(t, w.engine.ResumeProvider(t.Context(), "alpha"))
	started, err := w.engine.RetryFailed(t.Context(), j.ID, "test")
	must(t, err)
	w.drain()
	equal(t, "updated by the retry", w.job(started.JobID).Counts.Updated, 20)
	j = w.run(false)
	equal(t, "skipped for their age", j.Counts.SkippedTTL, 20)
	if _, err := w.engine.RetryFailed(t.Context(), j.ID, "test"); code(err) != "nothing_failed" {
		t.Errorf("retry of items that were skipped for their age: %v", err)
	}
}

func TestCancel_KeepsEstimatedItemsAtEachStage(t *testing.T) {
	list := names("Item", 600) // two batches
	price := units(10)
	s := bulk("alpha", list, "a1")
	b := batch("beta", 200, list, "b1")
	for _, s := range []*fakeProvider{s, b} {
		s.price = func(string, string) money.Micro { return price }
	}
	w := newWorld(t, s, b)
	w.push("u", 730, list...)
	w.drain()
	stages := map[refresh.Stage]int{}
	for steps := 0; steps < 200; steps += 2 {
		w.clock.Add(7 * time.Hour)
		price += units(1) / 10
		id := w.begin(false)
		work := w.engine.Workers()
		for i := range steps {
			_, err := work[i%len(work)].Work(t.Context())
			must(t, err)
		}
		j := w.job(id)
		if !j.State.Live() {
			break
		}
		stages[j.Stage]++
		must(t, w.engine.Cancel(t.Context(), id))
		w.checkCounts()
		estimated := w.job(id).Counts.Updated
		w.drain()
		j = w.job(id)
		equal(t, "state", j.State, refresh.Cancelled)
		equal(t, "estimated items", j.Counts.Updated, estimated)
		if j.Stage == refresh.StageDone && j.StartedAt.IsZero() {
			equal(t, "items of a job that had no plan", j.Counts.Total, 0)
		} else {
			equal(t, "cancelled and estimated", j.Counts.Cancelled+estimated, 600)
		}
		equal(t, "items at the new price", w.count(`SELECT count(*) FROM item WHERE `+around("price", price)), estimated)
		if err := w.engine.Cancel(t.Context(), id); code(err) != "job_ended" {
			t.Errorf("cancelled twice: %v", err)
		}
		w.checkIdle()
	}
	for _, stage := range []refresh.Stage{refresh.StagePlan, refresh.StageFetch, refresh.StageEstimate, refresh.StageApply} {
		if stages[stage] == 0 {
			t.Errorf("no job was cancelled in its stage %s: %v", stage, stages)
		}
	}
}

func TestCancel_MissingJobPostponesItsEntries(t *testing.T) {
	s := batch("alpha", 10, []string{"A"}, "a1")
	w := newWorld(t, s)
	w.push("u", 730, "A")
	_, err := w.engine.Missing(t.Context())
	must(t, err)
	_, err = w.engine.Plan(t.Context())
	must(t, err)
	must(t, w.engine.Cancel(t.Context(), w.last(refresh.Missing).ID))
	w.clock.Add(time.Hour - time.Microsecond)
	w.drain()
	equal(t, "calls", len(s.requested()), 0)
	equal(t, "jobs", w.count(`SELECT count(*) FROM refresh_job`), 1)
	equal(t, "entries", w.count(`SELECT count(*) FROM missing_price WHERE attempts = 0`), 1)
	w.clock.Add(time.Microsecond)
	w.drain()
	equal(t, "price", w.named("A").Price, units(10))
	w.checkIdle()
}

func TestCancel_QueuedMissingJobPostponesDueEntries(t *testing.T) {
	s := batch("alpha", 10, []string{"A"}, "a1")
	w := newWorld(t, s)
	w.push("u", 730, "A")
	_, err := w.engine.Missing(t.Context())
	must(t, err)
	must(t, w.engine.Cancel(t.Context(), w.last(refresh.Missing).ID))
	w.clock.Add(time.Hour - time.Microsecond)
	w.drain()
	equal(t, "jobs", w.count(`SELECT count(*) FROM refresh_job`), 1)
	w.clock.Add(time.Microsecond)
	w.drain()
	equal(t, "price", w.named("A").Price, units(10))
	w.checkIdle()
}

func TestCancel_AbortsRequestInProgress(t *testing.T) {
	s := bulk("alpha", []string{"A"}, "a1")
	calling := make(chan struct{})
	s.before = func(ctx context.Context, _ provider.Call) {
		close(calling)
		<-ctx.Done()
	}
	w := newWorld(t, s)
	w.push("u", 730, "A")
	w.forget()
	id := w.begin(false)
	_, err := w.engine.Plan(t.Context())
	must(t, err)
	var fetched sync.WaitGroup
	fetched.Go(func() {
		_, err := w.engine.Fetch(t.Context(), "alpha", "")
		must(t, err)
	})
	<-calling
	must(t, w.engine.Cancel(t.Context(), id))
	fetched.Wait()
	s.before = nil
	w.drain()
	equal(t, "state", w.job(id).State, refresh.Cancelled)
	equal(t, "request counted", w.count(`SELECT requests + reserved FROM fetch_unit`), 1)
	equal(t, "failures of the provider", w.count(`SELECT count(*) FROM provider_state WHERE last_error <> ''`), 0)
	w.checkIdle()
}

func TestStop_ReleasesRequestAndKeepsResponse(t *testing.T) {
	list := names("Item", 20)
	s := batch("alpha", 10, list, "a1")
	w := newWorld(t, s)
	w.push("u", 730, list...)
	w.forget()
	id := w.begin(false)
	_, err := w.engine.Plan(t.Context())
	must(t, err)
	for _, hangs := range []bool{true, false} {
		ctx, stop := context.WithCancel(t.Context())
		s.before = func(ctx context.Context, _ provider.Call) {
			stop()
			if hangs {
				<-ctx.Done()
			}
		}
		if !hangs {
			s.before = nil
			s.edit = func(*provider.Quote) bool { stop(); return true } // while it is read
		}
		more, err := w.engine.Fetch(ctx, "alpha", "")
		must(t, err)
		equal(t, "more", more, false)
		want := int64(0)
		if !hangs {
			want = 1
		}
		equal(t, "units done", w.count(`SELECT count(*) FROM fetch_unit WHERE state = 'done'`), want)
		equal(t, "claimed units", w.count(`SELECT count(*) FROM fetch_unit WHERE state = 'running'`), 0)
	}
	s.edit, s.before = nil, nil
	w.restart()
	w.drain()
	equal(t, "updated", w.job(id).Counts.Updated, 20)
	w.checkIdle()
}

func TestPause_JobsContinueWithoutTheProvider(t *testing.T) {
	list := names("Item", 20)
	a, b := bulk("alpha", list, "a1"), batch("beta", 5, list, "b1")
	w := newWorld(t, a, b)
	w.push("u", 730, list...)
	w.forget()
	if err := w.engine.PauseProvider(t.Context(), "unknown"); code(err) != "provider_not_found" {
		t.Errorf("pause of no provider: %v", err)
	}
	must(t, w.engine.PauseProvider(t.Context(), "beta"))
	j := w.run(false)
	equal(t, "updated", j.Counts.Updated, 20)
	equal(t, "calls of the paused provider", len(b.requested()), 0)
	must(t, w.engine.ResumeProvider(t.Context(), "beta"))
	w.run(true)
	equal(t, "calls of the resumed provider", len(b.requested()), 4)

	// The clock changes during a job with a unit that must be retried.
	w.begin(true)
	_, err := w.engine.Plan(t.Context())
	must(t, err)
	b.fail = func(int, provider.Call) error {
		must(t, w.engine.PauseProvider(t.Context(), "beta"))
		return b.wait(time.Second)
	}
	w.drain()
	w.clock.Add(time.Minute)
	w.drain()
	equal(t, "calls after the pause", len(b.requested()), 1)
	j = w.last(refresh.Bulk)
	equal(t, "state", j.State, refresh.Finished)
	equal(t, "updated", j.Counts.Updated, 20)
	w.checkIdle()
}

func TestPause_OnlyProviderSkipsItemsAsPaused(t *testing.T) {
	s := bulk("alpha", []string{"A"}, "a1")
	w := newWorld(t, s)
	w.push("u", 730, "A")
	must(t, w.engine.PauseProvider(t.Context(), "alpha"))
	w.drain()
	equal(t, "entries", w.count(`SELECT count(*) FROM missing_price WHERE job_id = 0 AND attempts = 0`), 1)
	equal(t, "skipped", w.run(false).Counts.SkippedPaused, 1)
	must(t, w.engine.ResumeProvider(t.Context(), "alpha"))
	w.clock.Add(time.Hour)
	w.drain()
	equal(t, "price", w.named("A").Price, units(10))
	w.checkIdle()
}

func TestRemovedProvider_DelaysNoJobAndDropsItsQuotes(t *testing.T) {
	list := names("Item", 30)
	for _, done := range []bool{false, true} { // with or without its response
		a, gone := bulk("alpha", list, "a1", "a2", "a3"), bulk("beta", list, "b1", "b2", "b3")
		gone.price = func(string, string) money.Micro { return units(12) }
		w := newWorld(t, a, gone)
		w.push("u", 730, list...)
		w.forget()
		id := w.begin(false)
		_, err := w.engine.Plan(t.Context())
		must(t, err)
		for range 2 { // the third stays open
			_, err := w.engine.Fetch(t.Context(), "beta", "")
			must(t, err)
		}
		if done {
			_, err := w.engine.Fetch(t.Context(), "beta", "")
			must(t, err)
		}
		w.providers = w.providers[:1]
		w.restart()
		w.drain()
		j := w.job(id)
		equal(t, "state", j.State, refresh.Finished)
		equal(t, "updated", j.Counts.Updated, 30)
		equal(t, "price", w.named(list[0]).Price, units(10))
		if !done && j.LastError != "beta: no longer configured" {
			t.Errorf("last error %q", j.LastError)
		}
		w.checkIdle()
		w.stop()
	}
}

func TestRemovedProvider_WithoutAnyProviderTheJobEnds(t *testing.T) {
	w := newWorld(t, batch("alpha", 10, []string{"A"}, "a1"))
	w.push("u", 730, "A")
	w.forget()
	id := w.begin(false)
	_, err := w.engine.Plan(t.Context())
	must(t, err)
	w.providers = nil
	w.restart()
	w.drain()
	equal(t, "state", w.job(id).State, refresh.Failed)
	equal(t, "failed", w.job(id).Counts.Failed, 1)
	w.checkIdle()
}

func TestNames_AreRequestedInFewestCalls(t *testing.T) {
	for _, c := range []struct{ names, size, calls int }{{1, 1, 1}, {1, 7, 1}, {7, 7, 1}, {8, 7, 2}, {1300, 100, 13}, {1301, 100, 14}} {
		list := names("Item", c.names)
		b := batch("alpha", c.size, list, "a1")
		w := newWorld(t, b)
		w.push("u", 730, list...)
		w.forget()
		j := w.run(false)
		calls := b.requested()
		equal(t, "calls", len(calls), c.calls)
		for _, call := range calls {
			if len(call.Names) > c.size {
				t.Errorf("a call of %d names, of %d at most", len(call.Names), c.size)
			}
		}
		equal(t, "updated", j.Counts.Updated, int64(c.names))
		equal(t, "requests counted", w.count(`SELECT sum(requests) FROM fetch_unit`), int64(c.calls))
		w.stop()
	}
}

func TestGames_AreRequestedSeparately(t *testing.T) {
	a := bulk("alpha", []string{"Same name"}, "a1")
	b := batch("beta", 10, []string{"Same name"}, "b1")
	a.items[catalog.Rust], b.items[catalog.Rust] = []string{"Same name"}, []string{"Same name"}
	a.d.Markets[0].AppIDs = []int32{catalog.CS2, catalog.Rust}
	a.d.Files = append(a.d.Files, provider.File{Key: "rust.json", AppID: catalog.Rust, Markets: []string{"a1"}})
	b.d.Markets[0].AppIDs = []int32{catalog.Rust, catalog.CS2}
	calls := 0
	b.edit = func(q *provider.Quote) bool {
		if calls++; calls == 2 { // the call for the second game, Rust
			q.Ask = units(20)
		}
		return true
	}
	w := newWorld(t, a, b)
	w.push("u", catalog.CS2, "Same name")
	w.push("u", catalog.Rust, "Same name")
	w.push("u", catalog.Dota, "Same name")
	w.drain()
	equal(t, "price in CS2", w.named("Same name").Price, units(10))
	equal(t, "price in Rust", w.item(catalog.Key{AppID: catalog.Rust, Name: "Same name"}).Price, units(15))
	equal(t, "price in Dota, without quotes", w.item(catalog.Key{AppID: catalog.Dota, Name: "Same name"}).Price, 0)
	for i, call := range b.requested() {
		equal(t, "requested game", call.AppID, []int32{catalog.CS2, catalog.Rust}[i])
	}
	j := w.last(refresh.Missing)
	equal(t, "of a game without quotes", j.Counts.Failed, 1)
	w.checkIdle()

	// A file of a game in which nothing is due is not asked for.
	w.clock.Add(7 * time.Hour)
	w.push("u", catalog.Rust)
	a.requested()
	w.run(false)
	equal(t, "files", len(a.requested()), 1)
}

func TestRetryAfter_UnitIsRetriedAtTheStatedTime(t *testing.T) {
	s := bulk("alpha", []string{"A"}, "a1")
	w := newWorld(t, s)
	w.push("u", 730, "A")
	w.forget()
	waits := 3
	s.fail = func(int, provider.Call) error {
		if waits--; waits >= 0 {
			return s.wait(time.Minute)
		}
		return nil
	}
	id := w.begin(false)
	for i := range 4 {
		w.drain()
		equal(t, "calls", len(s.requested()), 1)
		if i == 1 {
			w.restart()
		}
		w.clock.Add(time.Minute - time.Microsecond)
		w.drain()
		equal(t, "calls too early", len(s.requested()), 0)
		w.clock.Add(time.Microsecond)
	}
	equal(t, "updated", w.job(id).Counts.Updated, 1)
	equal(t, "requests counted", w.count(`SELECT requests FROM fetch_unit`), 4)
	w.checkIdle()
}

func TestRetryAfter_LongOrRepeatedWaitDefersTheUnit(t *testing.T) {
	for _, wait := range []time.Duration{0, refresh.Patience + 1, time.Minute} {
		s := bulk("alpha", []string{"A"}, "a1")
		w := newWorld(t, s)
		w.push("u", 730, "A")
		w.forget()
		s.fail = func(int, provider.Call) error { return s.wait(wait) }
		id := w.begin(false)
		for range 12 {
			w.drain()
			w.clock.Add(time.Minute)
		}
		equal(t, "skipped", w.job(id).Counts.SkippedBackoff, 1)
		want := 1
		if wait == time.Minute {
			want = 10
		}
		equal(t, "calls", len(s.requested()), want)
		w.stop()
	}
}

func TestClock_ChangeLosesAndStopsNothing(t *testing.T) {
	r := randtest.New(t)
	list := names("Item", 60)
	jumps := []time.Duration{time.Hour, -time.Hour, 30 * time.Minute, -30 * time.Minute, 400 * 24 * time.Hour, -400 * 24 * time.Hour}
	for range randtest.Count(15, 1000) {
		a, b := bulk("alpha", list, "a1", "a2"), batch("beta", 20, list, "b1")
		price := units(10)
		for _, s := range []*fakeProvider{a, b} {
			s.price = func(string, string) money.Micro { return price }
		}
		w := newWorld(t, a, b)
		w.push("u", 730, list...)
		w.push("v", 730, "Unknown to all")
		w.drain()
		price = units(12)
		b.fail = func(int, provider.Call) error {
			if r.IntN(3) == 0 {
				return b.wait(time.Minute)
			}
			return nil
		}
		id := w.begin(true)
		jump := jumps[r.IntN(len(jumps))]
		at := r.IntN(8)
		for step := 0; ; step++ {
			if step == at {
				w.clock.Add(jump)
			}
			more, err := w.step()
			must(t, err)
			w.checkCounts()
			if !w.job(id).State.Live() {
				break
			}
			if !more {
				w.clock.Add(time.Minute) // a wait passes; two at most by a clock set back
			}
			if step > 300 {
				t.Fatalf("stuck after a clock change of %v at step %d: %+v", jump, at, w.job(id))
			}
		}
		b.fail = nil
		w.drain()
		w.clock.Add(2 * time.Minute)
		w.drain()
		j := w.job(id)
		equal(t, "state", j.State, refresh.Finished)
		equal(t, "items", j.Counts.Total, 61)
		equal(t, "failed", j.Counts.Failed, 0)
		w.checkIdle()
		if j.Counts.Updated < 60 { // some of its responses are now 400 days old
			equal(t, "jump", jump, 400*24*time.Hour)
			w.run(true)
		}
		equal(t, "value", w.valueOf("u", 5), units(12))
		// The queue is not stuck: a pause ends after at most 72 hours.
		before := w.count(`SELECT attempts FROM missing_price`)
		w.clock.Add(refresh.MaxMissingRetry + time.Microsecond)
		w.drain()
		if after := w.count(`SELECT attempts FROM missing_price`); after <= before {
			t.Errorf("the queue is stuck after a clock change of %v", jump)
		}
		w.stop()
	}
}
