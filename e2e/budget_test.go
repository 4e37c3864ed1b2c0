package e2e

import (
	"encoding/json"
	"errors"
	"net/http"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"assay/internal/db"
	"assay/internal/pgtest"
	"assay/internal/provider"
	"assay/internal/provider/allowance"
	"assay/internal/provider/providertest"
	"assay/internal/provider/sim"
	"assay/internal/randtest"
)

// processes is the number of processes that share a budget.
const processes = 3

// stores opens the database n times, like n processes. On SQLite there is only one process.
func (on engine) stores(t *testing.T, n int) []*db.DB {
	t.Helper()
	o := db.Options{Path: filepath.Join(t.TempDir(), "assay.db")}
	if on == onPostgres {
		o = db.Options{URL: pgtest.Shared(t).NewDatabase(t)}
	}
	all := make([]*db.DB, n)
	for i := range all {
		if i > 0 && on == onSQLite {
			all[i] = all[0]
			continue
		}
		s, err := db.Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		all[i] = s
	}
	return all
}

// clients returns one client of the host for each maximum wait. Each client acts as a separate process.
func (on engine) clients(t *testing.T, server *providertest.Server, h provider.Host, patience ...time.Duration) []*provider.Client {
	t.Helper()
	var all []*provider.Client
	for i, s := range on.stores(t, len(patience)) {
		c := provider.NewClient(provider.Options{
			Provider: "s", AllowHosts: []string{server.Host()}, Limit: h.Limit, Allowance: allowance.New(s, "s", h), Total: patience[i],
		})
		t.Cleanup(c.Close)
		all = append(all, c)
	}
	return all
}

func sendRequest(t *testing.T, c *provider.Client, url string) error {
	t.Helper()
	return c.Do(t.Context(), provider.Request{URL: url}, func(*provider.Response) error { return nil })
}

// TestBudget_ReportedQuotaAppliesToAllInstances uses three processes with a limit of a hundred
// requests. The provider reports to one of them that five requests are left.
func TestBudget_ReportedQuotaAppliesToAllInstances(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, on engine) {
		t.Parallel()
		var reported atomic.Bool
		server := providertest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if !reported.Swap(true) {
				w.Header().Set("X-RateLimit-Limit", "100")
				w.Header().Set("X-RateLimit-Remaining", "5")
				w.Header().Set("X-RateLimit-Reset", "7200")
			}
		}))
		host := provider.Host{Limit: provider.Limit{Requests: 100, Per: time.Hour}}
		all := on.clients(t, server, host, time.Minute, time.Minute, time.Minute)
		if err := sendRequest(t, all[0], server.URL()); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for _, c := range all {
			for range 4 {
				wg.Go(func() {
					if err := sendRequest(t, c, server.URL()); err != nil && provider.KindOf(err) != provider.KindBudget {
						t.Error(err)
					}
				})
			}
		}
		wg.Wait()
		if n := len(server.Hits()); n != 1+5 {
			t.Errorf("got %d requests, want 6: one whose response reports five left, and five more", n)
		}
	})
}

// TestBudget_LimitIsSharedByAllClients checks the server's log of requests. Clients without a
// shared limit would send three times as many requests within a period.
func TestBudget_LimitIsSharedByAllClients(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, on engine) {
		t.Parallel()
		server := providertest.NewServer(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		limit := provider.Limit{Requests: 6, Per: 3 * time.Second}
		var wg sync.WaitGroup
		for _, c := range on.clients(t, server, provider.Host{Limit: limit}, time.Minute, time.Minute, time.Minute) {
			for range 6 {
				wg.Go(func() {
					if err := sendRequest(t, c, server.URL()); err != nil {
						t.Error(err)
					}
				})
			}
		}
		wg.Wait()
		hits := server.Hits()
		if len(hits) != 18 {
			t.Errorf("got %d requests, want 18", len(hits))
		}
		for i := limit.Requests; i < len(hits); i++ {
			if span := hits[i].Time.Sub(hits[i-limit.Requests].Time); span < soonest(limit) {
				t.Errorf("got %d requests within %v, want at most %d in %v", limit.Requests+1, span, limit.Requests, limit.Per)
			}
		}
	})
}

// TestBudget_RetryAfterAppliesToAllClients sends one client a retry-after that is longer than
// its maximum wait. The other clients send requests immediately afterwards.
func TestBudget_RetryAfterAppliesToAllClients(t *testing.T) {
	t.Parallel()
	const order = 3 * time.Second
	for name, host := range map[string]provider.Host{
		"without a limit": {}, "with a limit": {Limit: provider.Limit{Requests: 100, Per: time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, on engine) {
				t.Parallel()
				server := providertest.NewServer(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
				server.Next(providertest.Status(http.StatusTooManyRequests, "Retry-After", "3"))
				clients := on.clients(t, server, host, order, time.Minute, time.Minute)
				if e, ok := errors.AsType[*provider.Error](sendRequest(t, clients[0], server.URL())); !ok || e.Kind != provider.KindRateLimited {
					t.Fatalf("got error %v, want kind rate limited", e)
				}
				var wg sync.WaitGroup
				for _, c := range clients[1:] {
					wg.Go(func() {
						if err := sendRequest(t, c, server.URL()); err != nil {
							t.Error(err)
						}
					})
				}
				wg.Wait()
				hits := server.Hits()
				if len(hits) != 3 {
					t.Errorf("got %d requests, want 3", len(hits))
				}
				for _, h := range hits[1:] {
					if early := order - h.Time.Sub(hits[0].Time); early > 10*time.Millisecond {
						t.Errorf("got a request %v before the end of the demanded wait, want none", early)
					}
				}
			})
		})
	}
}

// soonest returns the minimum time in which one request more than the limit may arrive. It is
// shorter than the period of the limit, because requests arrive late on a busy machine.
func soonest(l provider.Limit) time.Duration {
	if randtest.Long() {
		return l.Per * 9 / 10
	}
	return l.Per / 4
}

// reportedBudget is the budget of the simulator in provider-debug.
type reportedBudget struct {
	Used, Left int64
	Quotas     []struct {
		Period            string
		Limit, Used, Left int64
	}
}

func (s *server) budgetOf(provider string) reportedBudget {
	s.t.Helper()
	var debug struct {
		Providers []struct {
			Provider string
			Budget   reportedBudget
		}
	}
	s.get("/api/market-prices/provider-debug", &debug)
	for _, d := range debug.Providers {
		if d.Provider == provider {
			return d.Budget
		}
	}
	s.t.Fatalf("provider-debug lacks the provider %s", provider)
	return reportedBudget{}
}

// TestBudget_AllInstancesShareOneBudget runs three processes (one on SQLite) with a limit, and
// a quota that is used up in the second run.
func TestBudget_AllInstancesShareOneBudget(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, on engine) {
		t.Parallel()
		const (
			units, size = 18, 10
			quota       = 25
		)
		limit := provider.Limit{Requests: 6, Per: 3 * time.Second}
		markets, url := simulator(t, sim.Options{Names: 300, Frozen: true})
		env := []string{
			"MARKET_PRICE_PROVIDERS=sim", "SIM_BASE_URL=" + url, "SIM_SHAPE=batch", "SIM_BATCH_SIZE=10", "SIM_LIMIT=6/3s", "SIM_QUOTA=25/month",
		}
		first := on.newServer(t, env...)
		all := []*server{first}
		for on == onPostgres && len(all) < processes {
			all = append(all, newServerOn(t, first.database, env...))
		}
		for _, s := range all {
			s.start()
		}
		var items []asset
		for i, name := range markets.Names()[:units*size] {
			items = append(items, asset{AssetID: strconv.Itoa(i), MarketHashName: name})
		}
		first.push("u", 730, items)
		first.awaitPriced()
		if n := served(markets); n != units {
			t.Errorf("got %d requests for the missing prices, want %d", n, units)
		}
		id := first.refresh()
		first.awaitEnd()
		checkJob(t, first, id, units*size)
		var j job
		first.get("/api/market-prices/jobs/"+id, &j)
		if left := int64(quota - units); j.UpdatedItems != left*size || j.SkippedItems.Budget != (units-left)*size || j.Usage.RequestCount != left {
			t.Errorf("job: got %+v, want the names of %d requests updated", j, left)
		}
		hits := markets.Recent()
		if len(hits) != quota {
			t.Errorf("got %d requests, want %d", len(hits), quota)
		}
		for i := limit.Requests; i < len(hits); i++ {
			if span := hits[i].Time.Sub(hits[i-limit.Requests].Time); span < soonest(limit) {
				t.Errorf("got %d requests within %v, want at most %d in %v", limit.Requests+1, span, limit.Requests, limit.Per)
			}
		}
		all[0].kill()
		all[0].start()
		for _, s := range all {
			b := s.budgetOf(sim.Name)
			if len(b.Quotas) != 1 || b.Quotas[0].Used != quota || b.Quotas[0].Left != 0 || b.Quotas[0].Period != "month" {
				t.Errorf("got budget %+v, want a used-up monthly quota", b)
			}
		}
		var dry struct {
			Providers []struct{ Requests, Deferred int64 }
		}
		_, body, err := all[len(all)-1].call(http.MethodPost, "/api/market-prices/refresh?dryRun=1&force=1", nil)
		if err != nil || json.Unmarshal(body, &dry) != nil || len(dry.Providers) != 1 || dry.Providers[0].Requests != 0 || dry.Providers[0].Deferred != units {
			t.Errorf("dry run: got %s, %v, want no request and all requests deferred", body, err)
		}
	})
}
