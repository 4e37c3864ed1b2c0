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
	asked := func(h provider.Host) *fakeProvider {
		s := batch("asked", 10, list, "a")
		s.d.Hosts = []provider.Host{h}
		return s
	}
	both := []string{"b.json", "c.json"}
	for name, c := range map[string]struct {
		provider *fakeProvider
		before   func(a provider.Allowance) error // on the first host
		want     refresh.HostCost
	}{
		"files, nothing spent": {lists(provider.Host{Quota: quota}), nil, refresh.HostCost{Requests: 3}},
		"files, a quota nearly spent": {
			lists(provider.Host{Quota: quota}), spend(2),
			refresh.HostCost{Requests: 1, Deferred: 2, Files: both, Why: refresh.BoundDay, FreeAt: tomorrow},
		},
		"files, a reported quota of one": {
			lists(provider.Host{Quota: quota}), tell(1, time.Hour),
			refresh.HostCost{Requests: 1, Deferred: 2, Files: both, Why: refresh.BoundReported, FreeAt: epoch.Add(time.Hour)},
		},
		"files, a retry-after": {
			lists(provider.Host{}), func(a provider.Allowance) error {
				_, err := a.StoreRetryAfter(context.Background(), provider.RetryAfter{Wait: 2 * refresh.Patience})
				return err
			},
			refresh.HostCost{Deferred: 3, Files: []string{"a.json", "b.json", "c.json"}, Why: refresh.BoundHold, FreeAt: epoch.Add(2 * refresh.Patience)},
		},
		"names, a limit": {
			asked(provider.Host{Limit: slow}), spend(2),
			refresh.HostCost{Requests: 2, Deferred: 4, Names: 40, Why: refresh.BoundLimit, FreeAt: epoch.Add(slow.Stretch()), Time: time.Hour},
		},
		"names, a reported quota of one": {
			asked(provider.Host{Limit: slow}), tell(1, 2*time.Hour),
			refresh.HostCost{Requests: 1, Deferred: 5, Names: 50, Why: refresh.BoundReported, FreeAt: epoch.Add(2 * time.Hour), Time: 15 * time.Minute},
		},
		"names, a spent quota": {
			asked(provider.Host{Quota: quota}), spend(3),
			refresh.HostCost{Deferred: 6, Names: 60, Why: refresh.BoundDay, FreeAt: tomorrow},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := c.provider
			w := newWorld(t, bulk("other", list, "o"), s)
			w.limit(s)
			w.push("u", catalog.CS2, list...)
			w.forget() // of one job only
			host := s.d.Hosts[0]
			if c.before != nil {
				must(t, c.before(allowance.New(w.store, s.d.Name, host)))
			}
			f, err := w.engine.Forecast(t.Context(), false)
			must(t, err)
			cost := f.Providers[slices.IndexFunc(f.Providers, func(c refresh.Cost) bool { return c.Provider == s.d.Name })]
			c.want.Host = host.Key
			if diff := cmp.Diff(c.want, cost.Hosts[0]); diff != "" {
				t.Error(diff)
			}
			j := w.run(false)
			sent := map[string]int64{}
			for _, call := range s.requested() {
				sent[s.d.HostOf(call.File)]++
			}
			for _, h := range cost.Hosts {
				equal(t, "requests to "+h.Host, sent[h.Host], h.Requests)
			}
			use, err := view.Use(t.Context(), w.store, []int64{j.ID})
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
				t.Errorf("deferred %q, forecast %q", files, c.want.Files)
			}
			for _, u := range use {
				if u.Provider == s.d.Name {
					equal(t, "names left for later", u.Later, c.want.Names)
				}
			}
			equal(t, "updated", fmt.Sprint(j.Counts.Updated, j.Counts.Failed), "60 0")
		})
	}
}

// spend uses up a part of a host's budget.
func spend(n int) func(provider.Allowance) error {
	return func(a provider.Allowance) error {
		for range n {
			if r, err := a.Take(context.Background()); err != nil || r.Wait > 0 {
				return fmt.Errorf("refused: %+v, %w", r, err)
			}
		}
		return nil
	}
}

// tell stores a reported quota of a host.
func tell(left int64, reset time.Duration) func(provider.Allowance) error {
	return func(a provider.Allowance) error {
		return a.StoreReported(context.Background(), provider.Rate{Limit: 100, Left: left, Reset: reset})
	}
}
