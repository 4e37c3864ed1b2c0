package e2e

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"assay/internal/provider/providertest"
	"assay/internal/provider/sim"
)

// TestSlow_BackgroundProviderDoesNotBlockRun uses a price list and a provider that is
// requested by name, with a limit of 25 requests in five minutes. A run of 60 names ends with
// the prices of the list. The provider's quotes arrive later, within its budget. A restart
// after a kill sends no additional requests.
func TestSlow_BackgroundProviderDoesNotBlockRun(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, on engine) {
		t.Parallel()
		const names, budget = 60, 25
		markets, url := simulator(t, sim.Options{Names: names, Frozen: true})
		s := on.newServer(t, "MARKET_PRICE_PROVIDERS=pricelist,sim", "PRICELIST_CONFIG="+nameLists(t, map[int][]string{730: markets.Names()}),
			"SIM_BASE_URL="+url, "SIM_SHAPE=single", "SIM_LIMIT="+strconv.Itoa(budget)+"/5m")
		s.start()
		pushNames(s, markets.Names(), 2)
		s.awaitPriced()
		id := s.refresh()
		if end := s.awaitEnd(); end.UpdatedItems != names {
			t.Errorf("got %d items updated by the run, want %d", end.UpdatedItems, names)
		}

		var j struct {
			Providers []struct {
				Provider      string
				DeferredNames int64
			}
		}
		later := func() (names int64) {
			s.get("/api/market-prices/jobs/"+id, &j)
			for _, provider := range j.Providers {
				if provider.Provider == sim.Name {
					names = provider.DeferredNames
				}
			}
			return names
		}
		// The budget may be used up before or after the forced run. Therefore the test counts the
		// stored quotes instead of the quotes of the run.
		db := s.open()
		const quotes = `SELECT 1 FROM market_snapshot s JOIN market m ON m.id = s.market_id WHERE m.provider = '` + sim.Name + `' LIMIT 1`
		s.await("the use of the whole budget", func() bool { return served(markets) >= budget })
		s.await("the quotes of the provider", func() bool { return len(rows(t, db, quotes)) > 0 })
		s.kill()
		s.start()
		s.await("the report that the budget is used up", func() bool { return s.budgetOf(sim.Name).Left == 0 })
		if left := later(); left < names-budget {
			t.Errorf("got %d names deferred, want at least %d of %d", left, names-budget, names)
		}
		checkJob(t, s, id, names)
		checkRows(t, s, 2)
		if n := served(markets); n != budget {
			t.Errorf("got %d requests, want the %d that the limit allows", n, budget)
		}
	})
}

// TestSilentProvider_IsDown uses a provider that accepts connections and never responds. Its
// health must not stay unknown until the request times out, minutes after the run.
func TestSilentProvider_IsDown(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, on engine) {
		t.Parallel()
		silent := providertest.NewServer(t, http.NotFoundHandler())
		silent.Always(providertest.Silent())
		s := on.newServer(t, "MARKET_PRICE_PROVIDERS=sim", "SIM_BASE_URL="+silent.URL(), "MARKET_PRICE_PROVIDER_WAIT=1s")
		s.start()
		s.push("u", 730, []asset{{AssetID: "1", MarketHashName: "A"}})
		s.command(5, "refresh", "--wait")
		d := s.debugOf("sim")
		if d.Health != "down" || d.LastError == nil || !strings.Contains(*d.LastError, "no successful response for 1s") {
			t.Errorf("got health %q, last error %s, want down without a successful response for 1s", d.Health, quoted(d.LastError))
		}
	})
}
