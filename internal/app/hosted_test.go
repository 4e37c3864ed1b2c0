package app

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"

	"assay/internal/catalog"
	"assay/internal/config"
	"assay/internal/db"
	"assay/internal/provider"
	"assay/internal/provider/allowance"
	"assay/internal/provider/providertest"
)

// The clients for prices and for inventories share the budget of Steam's host. When Steam
// refuses a request of one client, the other one also waits.
func TestSteamClient_SharesTheBudgetOfSteamPrices(t *testing.T) {
	var refuses atomic.Bool
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if refuses.Load() {
			w.WriteHeader(http.StatusTooManyRequests)
		}
		_, _ = w.Write([]byte(`{"success":true}`))
	}))
	t.Cleanup(srv.Close)
	for _, c := range []struct {
		name    string
		refused bool
		want    provider.Kind // error of the next request
	}{
		{"limit", false, provider.KindBudget},
		{"refusal", true, provider.KindRateLimited},
	} {
		t.Run(c.name, func(t *testing.T) {
			so, set := openSteam(t, "STEAM_LIMIT=2/5m", "STEAM_BASE_URL="+srv.URL)
			inventories, base := SteamClient(so, nil)
			t.Cleanup(inventories.Close)
			prices := func() error {
				_, err := set.List[0].Fetch(t.Context(), provider.Call{AppID: catalog.CS2, Names: []string{"A"}}, providertest.Discard{})
				return err
			}
			others := func() error {
				return inventories.Do(t.Context(), provider.Request{URL: base + "/inventory/1/730/2"}, func(*provider.Response) error { return nil })
			}

			refuses.Store(false)
			if err := prices(); err != nil {
				t.Fatal(err)
			}
			refuses.Store(c.refused)
			if err := others(); (err != nil) != c.refused {
				t.Fatal(err)
			}
			refuses.Store(false)
			if err := prices(); provider.KindOf(err) != c.want {
				t.Errorf("request for prices: got error %v, want kind %v", err, c.want)
			}
			if err := others(); provider.KindOf(err) != c.want {
				t.Errorf("other request: got error %v, want kind %v", err, c.want)
			}
		})
	}
}

// TestRule4_PricesLeaveInventoriesTheirShareOfSteam requests prices until the budget refuses
// a request. Requests for inventories must still succeed.
func TestRule4_PricesLeaveInventoriesTheirShareOfSteam(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"success":true}`)) }))
	t.Cleanup(srv.Close)
	for name, budget := range map[string]string{"limit": "STEAM_LIMIT=5/1h", "quota": "STEAM_QUOTA=5/day,50/month"} {
		t.Run(name, func(t *testing.T) {
			so, set := openSteam(t, budget, "STEAM_BASE_URL="+srv.URL, "STEAM_INVENTORY_PACE=1ms")
			inventories, base := inventoryClient(so)
			t.Cleanup(inventories.Close)
			sent := 0
			var err error
			for ; err == nil; sent++ {
				_, err = set.List[0].Fetch(t.Context(), provider.Call{AppID: catalog.CS2, Names: []string{"A"}}, providertest.Discard{})
			}
			if sent--; sent != 3 || provider.KindOf(err) != provider.KindBudget {
				t.Fatalf("got %d requests for prices, then %v; want 3, then a budget error", sent, err)
			}
			for range 2 {
				request := provider.Request{URL: base + "/inventory/1/730/2"}
				if err := inventories.Do(t.Context(), request, func(*provider.Response) error { return nil }); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// openSteam opens the price provider steam on a new database.
func openSteam(t *testing.T, environ ...string) (ProviderOptions, *ProviderSet) {
	t.Helper()
	dir := t.TempDir()
	s, err := db.Open(t.Context(), db.Options{Path: filepath.Join(dir, "assay.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	cfg, err := config.Load(config.Options{
		Providers: Providers(), Environ: append([]string{"DATA_DIR=" + dir, "MARKET_PRICE_PROVIDERS=steam"}, environ...),
	})
	if err != nil {
		t.Fatal(err)
	}
	so := ProviderOptions{Config: cfg, Allowance: func(p string, host provider.Host) provider.Allowance { return allowance.New(s, p, host) }}
	set, err := OpenProviders(t.Context(), so)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = set.Close() })
	return so, set
}
