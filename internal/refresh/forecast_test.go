package refresh_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay/internal/catalog"
	"assay/internal/provider"
	"assay/internal/provider/allowance"
	"assay/internal/refresh"
	"assay/internal/view"
)

// The test compares the forecast of each host with the requests that the next job sends and
// defers.
func TestForecast_MatchesTheNextJobByHost(t *testing.T) {
	list := names("Item", 60)
	tomorrow := time.Date(epoch.Year(), epoch.Month(), epoch.Day()+1, 0, 0, 0, 0, time.UTC)
	quota, slow := provider.Quota{Day: 3}, provider.Limit{Requests: 4, Per: time.Hour}
	lists := func(big provider.Host) *fakeProvider { // three files on one host, one on another
		s := bulk("lists", list, "a", "b", "c", "d")
		big.Key = "big"
		s.d.Hosts = []provider.Host{big, {Key: "small"}}
		for i := range s.d.Files {
			s.d.Files[i].Host = s.d.Hosts[min(i/3, 1)].Key
		}
		return s
	}
	requested := func(h provider.Host) *fakeProvider {
		s := batch("requested", 10, list, "a")
		s.d.Hosts = []provider.Host{h}
		return s
	}
	both := []string{"b.json", "c.json"}
	for name, c := range map[string]struct {
		provider *fakeProvider
		before   func(a provider.Allowance) error // prepares the allowance of the first host
		want     refresh.HostCost
	}{
		"files, nothing spent": {lists(provider.Host{Quota: quota}), nil, refresh.HostCost{Requests: 3}},
		"files, a quota nearly spent": {
			lists(provider.Host{Quota: quota}), spend(2),
			refresh.HostCost{Requests: 1, Deferred: 2, Files: both, Why: refresh.BoundDay, FreeAt: tomorrow},
		},
		"files, a reported quota of one": {
			lists(provider.Host{Quota: quota}), report(1, time.Hour),
			refresh.HostCost{Requests: 1, Deferred: 2, Files: both, Why: refresh.BoundReported, FreeAt: epoch.Add(time.Hour)},
		},
		"files, a retry-after": {
			lists(provider.Host{}), func(a provider.Allowance) error {
				_, err := a.StoreRetryAfter(context.Background(), provider.RetryAfter{Wait: 2 * refresh.Patience})
				return err
			},
			refresh.HostCost{Deferred: 3, Files: []string{"a.json", "b.json", "c.json"}, Why: refresh.BoundRetryAfter, FreeAt: epoch.Add(2 * refresh.Patience)},
		},
		"names, a limit": {
			requested(provider.Host{Limit: slow}), spend(2),
			refresh.HostCost{Requests: 2, Deferred: 4, Names: 40, Why: refresh.BoundLimit, FreeAt: epoch.Add(slow.Stretch()), Time: time.Hour},
		},
		"names, a reported quota of one": {
			requested(provider.Host{Limit: slow}), report(1, 2*time.Hour),
			refresh.HostCost{Requests: 1, Deferred: 5, Names: 50, Why: refresh.BoundReported, FreeAt: epoch.Add(2 * time.Hour), Time: 15 * time.Minute},
		},
		"names, a spent quota": {
			requested(provider.Host{Quota: quota}), spend(3),
			refresh.HostCost{Deferred: 6, Names: 60, Why: refresh.BoundDay, FreeAt: tomorrow},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := c.provider
			w := newWorld(t, bulk("other", list, "o"), s)
			w.limit(s)
			w.push("u", catalog.CS2, list...)
			w.clearMissing() // only the bulk job sends requests
			host := s.d.Hosts[0]
			if c.before != nil {
				must(t, c.before(allowance.New(w.store, s.d.Name, host)))
			}
			f, err := w.engine.Forecast(t.Context(), false)
			must(t, err)
			cost := f.Providers[slices.IndexFunc(f.Providers, func(c refresh.Cost) bool { return c.Provider == s.d.Name })]
			c.want.Host = host.Key
			if diff := cmp.Diff(c.want, cost.Hosts[0]); diff != "" {
				t.Errorf("cost of the host (-want +got):\n%s", diff)
			}
			j := w.run(false)
			sent := map[string]int64{}
			for _, call := range s.requested() {
				sent[s.d.HostOf(call.File)]++
			}
			for _, h := range cost.Hosts {
				equal(t, "requests to "+h.Host, sent[h.Host], h.Requests)
			}
			use, err := view.RequestCounts(t.Context(), w.store, []int64{j.ID})
			must(t, err)
			var files []string
			deferred, err := view.Deferred(t.Context(), w.store, []int64{j.ID})
			must(t, err)
			for _, d := range deferred {
				if d.File != "" {
					files = append(files, d.File)
				}
			}
			slices.Sort(files)
			if !slices.Equal(files, c.want.Files) {
				t.Errorf("got the deferred files %q, want %q as in the forecast", files, c.want.Files)
			}
			for _, u := range use {
				if u.Provider == s.d.Name {
					equal(t, "names left for later", u.DeferredNames, c.want.Names)
				}
			}
			equal(t, "updated", fmt.Sprint(j.Counts.Updated, j.Counts.Failed), "60 0")
		})
	}
}

// spend returns a function that takes n requests from a host's budget.
func spend(n int) func(provider.Allowance) error {
	return func(a provider.Allowance) error {
		for range n {
			if r, err := a.Take(context.Background()); err != nil || r.Wait > 0 {
				return fmt.Errorf("got the reservation %+v, want the request allowed: %w", r, err)
			}
		}
		return nil
	}
}

// report returns a function that stores a reported quota of a host.
func report(left int64, reset time.Duration) func(provider.Allowance) error {
	return func(a provider.Allowance) error {
		return a.StoreReported(context.Background(), provider.Rate{Limit: 100, Left: left, Reset: reset})
	}
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
	w.clearMissing()
	for _, s := range w.providers {
		s.requested()
	}
	for _, forced := range []bool{false, true} {
		before := w.version()
		f, err := w.engine.Forecast(t.Context(), forced)
		must(t, err)
		equal(t, "writes of a forecast", w.version(), before)
		j := w.run(forced)
		equal(t, "due items", f.Due, refresh.Due{Due: j.Counts.Updated, TTL: j.Counts.SkippedTTL, NoSales: j.Counts.SkippedNoSales})
		equal(t, "the total of the forecast", f.Due.Due+f.Due.TTL, 137)
		for _, cost := range f.Providers {
			i := slices.IndexFunc(w.providers, func(s *fakeProvider) bool { return s.d.Name == cost.Provider })
			equal(t, "requests of "+cost.Provider, cost.Requests, int64(len(w.providers[i].requested())))
			if cost.Provider == "beta" {
				equal(t, "forecast time at the limit", cost.Time, time.Duration(cost.Requests)*30*time.Second)
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
			t.Errorf("forecast (-want +got):\n%s", diff)
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
		equal(t, "due items of the forecast", f.Due.Due, 65)
		equal(t, "items skipped for the budget", f.Budget, budget)
	}
	check(4, 3, 25) // a job waits less than the period of the limit
	hold := func(wait time.Duration) {
		_, err := allowance.New(w.store, "alpha", host).StoreRetryAfter(t.Context(), provider.RetryAfter{Wait: wait})
		must(t, err)
	}
	hold(refresh.Patience)
	check(4, 3, 25) // a job waits exactly this long
	hold(2 * refresh.Patience)
	check(0, 7, 65)
	must(t, w.engine.PauseProvider(t.Context(), "alpha"))
	check(0, 0, 65)
	j := w.run(false)
	equal(t, "items skipped for the budget", j.Counts.SkippedBudget, 65)
}

func TestForecast_LongTimeDoesNotOverflow(t *testing.T) {
	list := names("Item", 2)
	s := batch("alpha", 1, list, "a1")
	s.d.Hosts = []provider.Host{{Limit: provider.Limit{Requests: 1, Per: 200 * 365 * 24 * time.Hour}}}
	w := newWorld(t, s)
	w.push("u", 730, list[0])
	f, err := w.engine.Forecast(t.Context(), false)
	must(t, err)
	equal(t, "the forecast time", f.Providers[0].Time, 200*365*24*time.Hour)
	equal(t, "requests", f.Providers[0].Requests, 1)
}
