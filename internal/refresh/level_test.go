package refresh_test

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/fault"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/provider"
	"assay/internal/refresh"
)

// set returns the newest level set of CS2.
func (w *world) set() *pricing.Set {
	w.tb.Helper()
	set, err := refresh.LevelSet(w.tb.Context(), w.store, catalog.CS2)
	must(w.tb, err)
	if set == nil {
		w.tb.Fatal("got no level set, want one")
	}
	return set
}

// market returns the learned data of a market.
func (w *world) market(key string) pricing.SetMarket {
	w.tb.Helper()
	m := w.set().Market(w.count(`SELECT id FROM market WHERE key = $1`, key))
	if !m.Known {
		w.tb.Fatalf("got no level of %s, want one", key)
	}
	return m
}

// levelled returns a provider with three markets. Each market quotes percent of its base
// price: 10, 12 or 9 dollars. The test may change percent.
func levelled(list []string, percent *money.Micro) *fakeProvider {
	s := bulk("alpha", list, "a1", "a2", "a3")
	s.price = func(market, _ string) money.Micro {
		at := map[string]money.Micro{"a1": 10, "a2": 12, "a3": 9}[market]
		return at * money.Scale * *percent / 100
	}
	return s
}

// nearly compares amounts with a tolerance of 0.1 %, because levels are learned from varied
// prices, which differ by up to 0.05 %.
func nearly(tb testing.TB, what string, got, want money.Micro) {
	tb.Helper()
	if off := 1000 * (got - want); off < -want || off > want {
		tb.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// nearLevel compares the levels of a market with earlier ones, with a tolerance of 0.1 %.
func nearLevel(tb testing.TB, what string, got, want pricing.SetMarket) {
	tb.Helper()
	nearly(tb, what, pricing.Exp(got.Level), pricing.Exp(want.Level))
	for b := range want.Bands {
		nearly(tb, what+" in a price band", pricing.Exp(got.Bands[b]), pricing.Exp(want.Bands[b]))
	}
}

func TestLevel_PricesFollowTheConfiguredMarket(t *testing.T) {
	list := names("Item", 150)
	percent := money.Micro(100)
	for level, want := range map[string]money.Micro{"": units(10), "a2": units(12), "alpha/a3": units(9)} {
		w := newWorld(t, levelled(list, &percent))
		w.cfg.Level = level
		w.restart()
		w.push("u", 730, list...)
		w.drain()
		i := w.named(list[7])
		nearly(t, "price at the level of "+level, i.Price, varied(want, list[7]))
		equal(t, "used markets", i.UsedMarkets, 3)
		w.checkIdle()
		w.stop()
	}
}

func TestLevel_UnknownOrAmbiguousMarketIsAnError(t *testing.T) {
	w := newWorld(t, bulk("alpha", nil, "m", "a"), bulk("beta", nil, "m"))
	for level, want := range map[string]string{
		"nowhere": `MARKET_PRICE_LEVEL: no configured provider carries the market "nowhere": use consensus or one of alpha/a, alpha/m, beta/m`,
		"m":       `MARKET_PRICE_LEVEL: several providers carry the market "m": name the provider, as in alpha/m`,
	} {
		cfg := w.cfg
		cfg.Level = level
		_, err := refresh.New(t.Context(), refresh.Options{
			Store: w.store, Config: cfg, Providers: []provider.Provider{w.providers[0], w.providers[1]},
			Owner: level, Now: w.clock.Now, Logger: slog.New(slog.DiscardHandler),
		})
		f := fault.Of(err)
		if f == nil || f.Kind != fault.Invalid || f.Error() != want {
			t.Errorf("%s: got error %v, want %s", level, err, want)
		}
	}
}

// The other markets move meanwhile. Their new quotes must not be compared with old ones.
func TestLevel_FailedMarketKeepsItsLevel(t *testing.T) {
	list := names("Item", 150)
	percent := money.Micro(100)
	s := levelled(list, &percent)
	w := newWorld(t, s)
	w.push("u", 730, list...)
	w.drain()
	before, was := w.market("a2"), w.named(list[7])
	s.fail = func(_ int, c provider.Call) error {
		if c.File == "a2.json" {
			return s.broken(provider.KindServer)
		}
		return nil
	}
	for _, step := range []struct {
		after   time.Duration
		percent money.Micro
	}{{7 * time.Hour, 100}, {7 * time.Hour, 130}, {30 * time.Hour, 130}} { // after 30 hours the quotes of the failed market are stale
		percent = step.percent
		w.clock.Add(step.after)
		w.run(true)
		nearLevel(t, "level of the missing market", w.market("a2"), before)
		nearly(t, "price without the missing market", w.named(list[7]).Price, was.Price*step.percent/100)
	}
	equal(t, "used markets", w.named(list[7]).UsedMarkets, 2)

	s.fail = nil
	w.clock.Add(7 * time.Hour)
	w.run(true)
	nearly(t, "price after the market returned", w.named(list[7]).Price, was.Price*13/10)
	nearLevel(t, "level after the market returned", w.market("a2"), before)
	w.checkIdle()
}

// The times in the market's response are more than a week old. The response is not good, but
// it is not quarantined either.
func TestLevel_OldQuotesKeepTheLevel(t *testing.T) {
	list := names("Item", 150)
	percent := money.Micro(100)
	s := levelled(list, &percent)
	plain := s.price
	old := false
	s.price = func(market, name string) money.Micro {
		if old && market == "a2" {
			return plain(market, name) * 3 / 2
		}
		return plain(market, name)
	}
	w := newWorld(t, s)
	s.edit = func(q *provider.Quote) bool {
		if old && q.Market == "a2" {
			q.MarketTime = w.clock.Now().Add(-8 * 24 * time.Hour)
		}
		return true
	}
	w.push("u", 730, list...)
	w.drain()
	before, was := w.market("a2"), w.named(list[7])
	old = true
	for range 2 {
		w.clock.Add(7 * time.Hour)
		w.run(true)
	}
	nearLevel(t, "level of the market with old quotes", w.market("a2"), before)
	equal(t, "markets in quarantine", len(w.quarantined()), 0)
	nearly(t, "price", w.named(list[7]).Price, was.Price)
	equal(t, "used markets", w.named(list[7]).UsedMarkets, 2)
	w.checkIdle()
}

// Prices in files fall by 41 % while a market that is requested by name does not respond.
// The market's old quotes must not be compared with the new files.
func TestLevel_MarketByNameUsesQuotesOfTheSameTime(t *testing.T) {
	list := names("★ Item", 150)
	percent := money.Micro(100)
	files, byName := levelled(list, &percent), batch("beta", 50, list, "b1")
	byName.price = func(string, string) money.Micro { return units(15) * percent / 100 }
	w := newWorld(t, files, byName)
	w.push("u", 730, list...)
	w.drain()
	w.clock.Add(7 * time.Hour)
	w.run(true) // the stored quotes of both providers now have the same time
	before, was := w.market("b1"), w.named(list[7])
	nearly(t, "level of the market", pricing.Exp(before.Level), 1_500_000)

	byName.fail = func(int, provider.Call) error { return byName.broken(provider.KindConnect) }
	percent = 59
	for range 2 {
		w.clock.Add(7 * time.Hour)
		w.run(true)
		nearLevel(t, "level of the market", w.market("b1"), before)
	}
	byName.fail = nil
	for range 2 {
		w.clock.Add(7 * time.Hour)
		w.run(true)
	}
	i := w.named(list[7])
	nearly(t, "price", i.Price, was.Price*59/100)
	equal(t, "used markets", i.UsedMarkets, 4)
	w.checkIdle()
}

// The second instance leaves the validation to the first one. After it has taken over the job, it
// validates the same responses before the first one stores its result, which would be different.
// Both instances then estimate.
func TestConcurrency_TwoInstancesValidateTheSameJobOnce(t *testing.T) {
	list := names("Item", 600) // two batches
	providers := func(percent *money.Micro) []*fakeProvider {
		s := bulk("alpha", list, "a1", "a2")
		s.price = func(market, _ string) money.Micro { return 10 * level(market) * *percent / 100 }
		return []*fakeProvider{s}
	}
	result := func(w *world) string {
		var out bytes.Buffer
		w.print(&out, `SELECT name, price, status, consensus, interval_low, interval_high, guard, `+setOf("item.level_set")+` FROM item ORDER BY name`)
		w.print(&out, `SELECT app_id, data FROM level_set ORDER BY id`)
		w.print(&out, `SELECT app_id, movers, `+setOf("r.level_set")+` FROM refresh_level r ORDER BY job_id`)
		w.print(&out, `SELECT market_id, state, history FROM market_validation ORDER BY market_id`)
		return out.String()
	}
	percent := money.Micro(100)
	alone := newWorld(t, providers(&percent)...)
	alone.push("u", 730, list...)
	alone.drain()
	alone.clock.Add(7 * time.Hour)
	percent = 150 // this move makes all prices suspect for a day after the validation
	alone.begin(true)
	fetchAll := func(e *refresh.Engine) {
		_, err := e.Plan(t.Context())
		must(t, err)
		for range 2 {
			_, err := e.Fetch(t.Context(), "alpha", "")
			must(t, err)
		}
	}
	fetchAll(alone.engine)
	alone.drain()
	want := result(alone)
	alone.stop()

	shared(t, func(t *testing.T, w *cluster) {
		percent = 100
		a, b := w.join("a", providers(&percent)...), w.join("b", providers(&percent)...)
		w.push("u", 730, list...)
		w.drainBy(a)
		w.clock.Add(7 * time.Hour)
		percent = 150
		s, err := a.Start(t.Context(), true, "test")
		must(t, err)
		fetchAll(a.Engine)
		a.BlobsRead()
		b.BlobsRead()
		estimate := func(i *instance) {
			more, err := i.Estimate(t.Context())
			must(t, err)
			equal(t, "work done by "+i.name, more, true)
		}
		beside := func() { // instance a has read the clock for its work, and b now does the same work
			a.atNow.Store(nil)
			estimate(b)
			w.clock.Add(time.Minute)
		}
		takeOver := func() {
			more, err := b.Estimate(t.Context())
			must(t, err)
			equal(t, "work done by b while a validates", more, false)
			w.exec(`UPDATE refresh_job SET owner = ''`)
			beside()
		}
		a.atNow.Store(&takeOver)
		estimate(a)
		equal(t, "responses read by both", (a.BlobsRead()+b.BlobsRead())%2, 0)
		equal(t, "stage", w.job(s.JobID).Stage, refresh.StageEstimate)
		a.atNow.Store(&beside)
		estimate(a)
		equal(t, "batches estimated by both", w.count(`SELECT count(*) FROM refresh_batch WHERE job_id = $1 AND state = 'estimated'`, s.JobID), 2)
		w.drainBy(a, b)
		if got := result(w.world); got != want {
			t.Errorf("two instances: got a different result, want the result of one instance: %s", differ(got, want))
		}
		equal(t, "level sets of the job", w.count(`SELECT count(*) FROM refresh_level WHERE job_id = $1`, s.JobID), 1)
		equal(t, "level sets of the items of the job", w.count(`SELECT count(DISTINCT level_set) FROM item`), 1)
		w.checkIdle()
	})
}
