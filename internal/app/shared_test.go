package app

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"assay/internal/catalog"
	"assay/internal/config"
	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/provider"
	"assay/internal/provider/allowance"
	"assay/internal/provider/cs2cap/cs2captest"
	"assay/internal/provider/csfloat/csfloattest"
	"assay/internal/provider/marketcsgo/marketcsgotest"
	"assay/internal/provider/pricempire/pricempiretest"
	"assay/internal/provider/providertest"
	"assay/internal/provider/sim"
	"assay/internal/provider/skinport/skinporttest"
	"assay/internal/provider/steam/steamtest"
	"assay/internal/provider/waxpeer/waxpeertest"
)

// discardSink discards all quotes.
type discardSink struct{}

func (discardSink) Restart()                    {}
func (discardSink) Quote(*provider.Quote) error { return nil }
func (discardSink) Reject(_, _, _ string)       {}

// TestBudget_IsSharedByTwoInstances opens two instances on one database. Both send requests
// to all providers in parallel. Each provider's server must receive exactly the requests
// within its limit, and all other calls must be deferred.
func TestBudget_IsSharedByTwoInstances(t *testing.T) {
	const allowed, each = 3, 4
	simulator, err := sim.NewHandler(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	fakes := map[string]http.Handler{
		"skinport": &skinporttest.Server{}, "marketcsgo": &marketcsgotest.Server{}, "waxpeer": &waxpeertest.Server{},
		"csfloat": &csfloattest.Server{}, "cs2cap": &cs2captest.Server{}, "pricempire": &pricempiretest.Server{},
		"steam": &steamtest.Server{}, "sim": simulator,
		"pricelist": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("[]")) }),
	}
	environ := []string{"MARKET_PRICE_PROVIDERS=" + strings.Join(Providers(), ","), "STEAM_INVENTORY_SHARE=0"}
	servers := map[string]*providertest.Server{}
	for _, name := range Providers() {
		if fakes[name] == nil {
			t.Fatalf("got no fake server of provider %s, want one", name)
		}
		s := providertest.NewServer(t, fakes[name])
		servers[name] = s
		if name == "pricelist" {
			path := filepath.Join(t.TempDir(), "lists.json")
			lists := fmt.Sprintf(`{"lists":[{"key":"l","location":%q,"format":"jsonArray","appId":730,"currency":"USD","name":"n",
				"markets":[{"key":"l","ask":"p"}],"limit":{"requests":%d,"per":"1h"}}]}`, s.URL()+"/l.json", allowed)
			if err := os.WriteFile(path, []byte(lists), 0o600); err != nil {
				t.Fatal(err)
			}
			environ = append(environ, "PRICELIST_CONFIG="+path)
			continue
		}
		prefix := strings.ToUpper(name)
		environ = append(environ, prefix+"_BASE_URL="+s.URL(), fmt.Sprintf("%s_LIMIT=%d/1h", prefix, allowed))
		if name != "sim" {
			environ = append(environ, prefix+"_API_KEY=00000000-0000-4000-8000-000000000000")
		}
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	deferred := map[string]int{}
	database := dbtest.On(t, dbtest.PostgreSQL)
	for range 2 {
		for _, src := range instance(t, database, environ) {
			call := cheapest(src)
			for range each {
				wg.Go(func() {
					c := call
					c.Meter = &provider.Meter{}
					_, err := src.Fetch(t.Context(), c, discardSink{})
					if e, ok := errors.AsType[*provider.Error](err); ok && e.Status == 0 && e.Deferred() {
						mu.Lock()
						defer mu.Unlock()
						deferred[src.Describe().Name]++
					}
				})
			}
		}
	}
	wg.Wait()
	for name, s := range servers {
		if hits := len(s.Hits()); hits != allowed || deferred[name] < 2*each-allowed {
			t.Errorf("%s: got %d requests and %d deferred calls, want %d and at least %d", name, hits, deferred[name], allowed, 2*each-allowed)
		}
	}
}

// instance opens the database and the providers of one instance.
func instance(t *testing.T, database dbtest.Database, environ []string) []provider.Provider {
	t.Helper()
	c, err := config.Load(config.Options{Environ: append(environ, "DATA_DIR="+t.TempDir()), Providers: Providers()})
	if err != nil {
		t.Fatal(err)
	}
	s, err := db.Open(t.Context(), db.Options{URL: database.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	set, err := OpenProviders(t.Context(), ProviderOptions{
		Config:    c,
		Secret:    c.OutsideSecret,
		Client:    func(o *provider.Options) { o.Attempts = 1 },
		Allowance: func(p string, host provider.Host) provider.Allowance { return allowance.New(s, p, host) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = set.Close() })
	return set.List
}

// cheapest returns a call that sends one request.
func cheapest(src provider.Provider) provider.Call {
	if p, ok := src.(provider.Prober); ok {
		return p.Probe()
	}
	d := src.Describe()
	if d.Shape != provider.Bulk {
		return provider.Call{AppID: catalog.CS2, Names: []string{"A"}}
	}
	return provider.Call{AppID: d.Files[0].AppID, File: d.Files[0].Key}
}
