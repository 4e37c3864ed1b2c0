package refresh_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"assay/internal/db/dbtest"
	"assay/internal/money"
	"assay/internal/provider"
	"assay/internal/refresh"
	"assay/internal/view"
)

// spoil changes each quote of a provider.
func spoil(change func(q *provider.Quote)) func(*fakeProvider) {
	return func(s *fakeProvider) {
		s.edit = func(q *provider.Quote) bool {
			change(q)
			return true
		}
	}
}

// badAnswers returns ways in which the response of a provider can be unusable.
func badAnswers() map[string]func(*fakeProvider) {
	out := map[string]func(*fakeProvider){
		"empty": func(s *fakeProvider) { s.edit = func(*provider.Quote) bool { return false } },
		"less than half": func(s *fakeProvider) {
			s.edit = func(q *provider.Quote) bool { return strings.HasPrefix(q.Name, "Item 1") }
		},
		"silent":         func(s *fakeProvider) { s.silent = []string{"a1", "a2", "a3"} },
		"unknown market": spoil(func(q *provider.Quote) { q.Market = "elsewhere" }),
		"an error outside the contract": func(s *fakeProvider) {
			s.fail = func(int, provider.Call) error { return errTest }
		},
		"dollars for cents":      spoil(func(q *provider.Quote) { q.Ask *= 100 }),
		"cents for dollars":      spoil(func(q *provider.Quote) { q.Ask /= 100 }),
		"none offered":           spoil(func(q *provider.Quote) { q.Ask = 0 }),
		"negative ask":           spoil(func(q *provider.Quote) { q.Ask = -q.Ask }),
		"least ask":              spoil(func(q *provider.Quote) { q.Ask = math.MinInt64 }),
		"greatest ask":           spoil(func(q *provider.Quote) { q.Ask = math.MaxInt64 }),
		"over ten million":       spoil(func(q *provider.Quote) { q.Ask = units(10_000_000) + 1 }),
		"greatest bid":           spoil(func(q *provider.Quote) { q.Bid = math.MaxInt64 }),
		"negative bid":           spoil(func(q *provider.Quote) { q.Bid = -1 }),
		"greatest sale":          spoil(func(q *provider.Quote) { q.Ask, q.Sale = 0, math.MaxInt64 }),
		"greatest listings":      spoil(func(q *provider.Quote) { q.Listings = math.MaxInt64 }),
		"least listings":         spoil(func(q *provider.Quote) { q.Listings = math.MinInt64 }),
		"greatest sales":         spoil(func(q *provider.Quote) { q.Sales = math.MaxInt64 }),
		"least sales":            spoil(func(q *provider.Quote) { q.Sales = math.MinInt64 }),
		"greatest window":        spoil(func(q *provider.Quote) { q.SalesWindow = math.MaxInt64 }),
		"negative window":        spoil(func(q *provider.Quote) { q.SalesWindow = -time.Hour }),
		"no currency":            spoil(func(q *provider.Quote) { q.Currency = "" }),
		"small letters":          spoil(func(q *provider.Quote) { q.Currency = "usd" }),
		"a currency too long":    spoil(func(q *provider.Quote) { q.Currency = "USDT" }),
		"no rate":                spoil(func(q *provider.Quote) { q.Currency = "XYZ" }),
		"frozen for months":      spoil(func(q *provider.Quote) { q.MarketTime = epoch.Add(-90 * 24 * time.Hour) }),
		"no phase of ours":       spoil(func(q *provider.Quote) { q.Phase = "Phase 9" }),
		"a phase of another":     spoil(func(q *provider.Quote) { q.Phase = "Ruby" }),
		"empty names":            spoil(func(q *provider.Quote) { q.Name = "" }),
		"names of 64 KiB":        spoil(func(q *provider.Quote) { q.Name = strings.Repeat("n", 64<<10) }),
		"names that are no text": spoil(func(q *provider.Quote) { q.Name += "\xff" }),
		"names with NUL":         spoil(func(q *provider.Quote) { q.Name += "\x00" }),
		"names in other case":    spoil(func(q *provider.Quote) { q.Name = strings.ToUpper(q.Name) }),
		"names with a space":     spoil(func(q *provider.Quote) { q.Name += " " }),
	}
	for _, kind := range []provider.Kind{
		provider.KindConnect, provider.KindTimeout, provider.KindCut, provider.KindRateLimited, provider.KindAuth,
		provider.KindServer, provider.KindStatus, provider.KindProtocol, provider.KindTooLarge, provider.KindBlocked,
		provider.KindBreaker, provider.KindBudget, provider.KindCancelled, "",
	} {
		out["failure "+string(kind)] = func(s *fakeProvider) {
			s.fail = func(int, provider.Call) error { return s.broken(kind) }
		}
	}
	return out
}

// wholes are the bad responses that show only in a complete file.
var wholes = []string{"less than half", "silent", "dollars for cents", "cents for dollars"}

func TestRule7_BadResponseReplacesNoPrice(t *testing.T) {
	list := names("Item", 120)
	w := newWorld(t)
	nth := 0
	for name, spoiled := range badAnswers() {
		for _, shape := range []provider.Shape{provider.Bulk, provider.Batch} {
			if shape == provider.Batch && (slices.Contains(wholes, name) || strings.HasPrefix(name, "failure")) {
				continue // a response to names is checked quote by quote
			}
			if nth++; !dbtest.RunsCase(nth) {
				continue
			}
			w.stop()
			s := bulk("alpha", list, "a1", "a2", "a3")
			if shape == provider.Batch {
				s = batch("alpha", 25, list, "a1", "a2", "a3")
			}
			w = newWorld(t, s)
			w.push("u", 730, list...)
			w.forget()
			w.run(false)
			before := w.named(list[0])
			w.clock.Add(8 * 24 * time.Hour) // old quotes are stale by then
			spoiled(s)
			j := w.run(false)
			after := w.named(list[0])
			if after.Price != units(10) || before.Price != units(10) || w.valueOf("u", 0) != units(10) {
				t.Errorf("%s, %s: price %v became %v", name, shape, before.Price, after.Price)
			}
			if j.Counts.Updated != 0 {
				t.Errorf("%s, %s: %d items updated", name, shape, j.Counts.Updated)
			}
			if !after.CheckedAt.Equal(before.CheckedAt) {
				t.Errorf("%s, %s: says that it was confirmed", name, shape)
			}
			w.checkIdle()

			// The next good response is accepted as usual.
			s.edit, s.fail, s.silent = nil, nil, nil
			w.clock.Add(7 * time.Hour)
			if j := w.run(false); j.Counts.Updated != 120 {
				t.Errorf("%s, %s: afterwards %+v", name, shape, j.Counts)
			}
		}
	}
}

func TestRule7_FailureDoesNotAffectOtherProviders(t *testing.T) {
	list := names("Item", 120)
	nth := 0
	for name, spoiled := range badAnswers() {
		if nth++; name == "less than half" || !dbtest.RunsCase(nth) {
			continue
		}
		sick, good := bulk("alpha", list, "a1", "a2", "a3"), bulk("beta", list, "b1", "b2", "b3")
		w := newWorld(t, sick, good)
		w.push("u", 730, list...)
		w.drain()
		w.clock.Add(8 * 24 * time.Hour)
		spoiled(sick)
		good.price = func(string, string) money.Micro { return units(11) }
		j := w.run(false)
		equal(t, name+": updated", j.Counts.Updated, 120)
		equal(t, name+": price", w.named(list[0]).Price, units(11))
		w.checkIdle()
		w.stop()
	}
}

func TestRule7_FailedMarketTakesPartWithItsLastQuoteWhileFresh(t *testing.T) {
	a, b := bulk("alpha", []string{"A"}, "a1"), bulk("beta", []string{"A"}, "b1")
	a.price = func(string, string) money.Micro { return units(8) }
	w := newWorld(t, a, b)
	w.push("u", 730, "A")
	w.drain()
	equal(t, "both", w.named("A").Average, units(9))
	a.fail = func(int, provider.Call) error { return a.broken(provider.KindServer) }
	w.clock.Add(23 * time.Hour)
	w.run(true)
	equal(t, "with the old snapshot", w.named("A").Average, units(9))
	w.clock.Add(2 * time.Hour)
	w.run(true)
	equal(t, "without it", w.named("A").Average, units(10))
	snaps, err := view.Snapshots(t.Context(), w.store, w.named("A").ID)
	must(t, err)
	equal(t, "reason", snaps[0].Reason, "staleFetch")
	equal(t, "fetched", snaps[0].FetchedAt, epoch)
	equal(t, "fetched with the job", snaps[1].FetchedAt.IsZero(), true)
}

func TestRule7_PhasesDoNotAffectThePlainName(t *testing.T) {
	const name = "★ Karambit | Doppler (Factory New)"
	prices := map[string]money.Micro{"": units(900), "Ruby": units(9000), "Phase 2": units(1000)}
	for _, s := range []*fakeProvider{bulk("alpha", []string{name}, "a1"), batch("alpha", 10, []string{name}, "a1")} {
		s.edit = func(*provider.Quote) bool { return false }
		for _, phase := range []string{"Ruby", "", "Phase 2"} {
			s.extra = append(s.extra, provider.Quote{Market: "a1", Name: name, Phase: phase, Currency: "USD", Ask: prices[phase], Listings: -1, Sales: -1})
		}
		w := newWorld(t, s)
		w.pushed("u", pushOf(w, [2]string{name, ""}, [2]string{name, "Ruby"}, [2]string{name, "Phase 2"}, [2]string{name, "Sapphire"}))
		w.drain()
		for phase, want := range prices {
			i := w.named(name).Key
			i.Phase = phase
			equal(t, "price of phase "+phase, w.item(i).Price, want)
		}
		equal(t, "a phase without quotes", w.valueOf("u", 3), 0)
		equal(t, "calls", len(s.requested()), 1) // one name, however many phases
		w.checkIdle()
		w.stop()
	}
}

func TestRule7_HeldPriceIsReleasedByAChangedResponse(t *testing.T) {
	price, others := units(10), units(1)
	s := bulk("alpha", []string{"A"}, "a1")
	s.price = func(string, string) money.Micro { return price }
	// With other names, the response as a whole is no anomaly.
	rest := names("Item", 9)
	s.items[730] = append(s.items[730], rest...)
	s.price = func(_, name string) money.Micro {
		if name == "A" {
			return price
		}
		return others
	}
	w := newWorld(t, s)
	w.push("u", 730, "A")
	w.drain()
	price = units(40) // on one market: held
	w.clock.Add(7 * time.Hour)
	w.run(false)
	i := w.named("A")
	equal(t, "price", i.Price, units(10))
	equal(t, "candidate", i.Candidate, units(40))
	equal(t, "confirmed", i.CheckedAt, epoch)
	equal(t, "value", w.valueOf("u", 0), units(10))
	w.clock.Add(29 * time.Minute)
	w.run(true)
	equal(t, "price before half an hour", w.named("A").Price, units(10))
	w.clock.Add(time.Hour)
	w.run(true)
	equal(t, "price after the same response again", w.named("A").Price, units(10))
	others++
	w.clock.Add(time.Minute)
	w.run(true)
	equal(t, "price confirmed", w.named("A").Price, units(40))
	equal(t, "value", w.valueOf("u", 0), units(40))
	w.checkIdle()
}

func TestRule7_AnOperatorCanAcceptAHeldPrice(t *testing.T) {
	price := units(10)
	rest := names("Item", 9)
	s := bulk("alpha", append(rest, "A"), "a1")
	s.price = func(_, name string) money.Micro {
		if name == "A" {
			return price
		}
		return units(1)
	}
	w := newWorld(t, s)
	w.push("u", 730, "A")
	w.push("v", 730, "A", "A")
	w.drain()
	key := w.named("A").Key
	if err := w.engine.AcceptItem(t.Context(), key); err == nil {
		t.Error("accepted a price that is not held")
	}
	price = units(40)
	w.clock.Add(7 * time.Hour)
	w.run(false)
	must(t, w.engine.AcceptItem(t.Context(), key))
	i := w.named("A")
	equal(t, "price", i.Price, units(40))
	equal(t, "candidate", i.Candidate, 0)
	equal(t, "confirmed", i.CheckedAt, w.clock.Now())
	equal(t, "rows", w.count(`SELECT count(*) FROM inventory WHERE value = $1`, int64(units(40))), 3)
	equal(t, "history", w.count(`SELECT count(*) FROM price_point WHERE item_id = $1`, i.ID), 2)
	equal(t, "history with its method", w.count(`SELECT count(*) FROM price_point p JOIN item i ON i.id = p.item_id
		WHERE i.id = $1 AND p.method = i.method AND p.method <> '' AND p.method_version = i.method_version`, i.ID), 2)
	w.run(true)
	equal(t, "price afterwards", w.named("A").Price, units(40))
	w.checkIdle()
}

// The market responds in a currency without a rate, and then with cents instead of dollars.
// The second response must not be compared with the first.
func TestRule7_ResponseWithoutPricesIsNoBaseline(t *testing.T) {
	list := names("Item", 200)
	change := func(*provider.Quote) {}
	s := bulk("alpha", list, "a1")
	s.edit = func(q *provider.Quote) bool {
		change(q)
		return true
	}
	w := newWorld(t, s)
	w.push("u", 730, list...)
	w.drain()
	for _, c := range []struct {
		change func(*provider.Quote)
		reason string
	}{
		{func(q *provider.Quote) { q.Currency = "RUB" }, "a1: quarantined: the response has 0 names, fewer than half of the 200 names before"},
		{func(q *provider.Quote) { q.Ask = 0 }, "a1: quarantined: the response has 0 names, fewer than half of the 200 names before"},
		{func(q *provider.Quote) { q.Ask *= 100 }, "a1: quarantined: prices are 100 times"},
	} {
		w.clock.Add(7 * time.Hour)
		change = c.change
		if j := w.run(false); !strings.Contains(j.LastError, c.reason) {
			t.Errorf("last error %q, want %q", j.LastError, c.reason)
		}
		snaps, err := view.Snapshots(t.Context(), w.store, w.named(list[0]).ID)
		must(t, err)
		equal(t, "last good quote", snaps[0].Ask, units(10))
	}
}

func TestRule7_AnomalousResponseIsQuarantinedUntilAccepted(t *testing.T) {
	list := names("Item", 200)
	factor := money.Micro(1)
	s := bulk("alpha", list, "a1", "a2", "a3")
	s.edit = func(q *provider.Quote) bool {
		if q.Market == "a2" {
			q.Ask *= factor
		}
		return true
	}
	w := newWorld(t, s)
	w.push("u", 730, list...)
	w.drain()
	w.clock.Add(7 * time.Hour)
	factor = 100
	j := w.run(false)
	equal(t, "price", w.named(list[0]).Price, units(10))
	states, err := refresh.MarketStates(t.Context(), w.store)
	must(t, err)
	sick := 0
	for _, m := range states {
		if m.Quarantine != "" {
			sick++
			equal(t, "outcome", m.Outcome, "quarantined")
			equal(t, "since", m.QuarantinedSince, w.clock.Now())
		}
	}
	equal(t, "markets in quarantine", sick, 1)
	if !strings.Contains(j.LastError, "a2: quarantined") {
		t.Errorf("last error %q", j.LastError)
	}
	snaps, err := view.Snapshots(t.Context(), w.store, w.named(list[0]).ID)
	must(t, err)
	equal(t, "last good quote of the quarantined market", snaps[1].Ask, units(10))

	must(t, w.engine.AcceptProvider(t.Context(), "alpha", ""))
	if err := w.engine.AcceptProvider(t.Context(), "alpha", ""); err == nil {
		t.Error("accepted twice")
	}
	w.run(true)
	snaps, err = view.Snapshots(t.Context(), w.store, w.named(list[0]).ID)
	must(t, err)
	equal(t, "accepted quote", snaps[1].Ask, units(1000))
	factor = 1
	w.run(true) // the next response is compared with the accepted one
	snaps, err = view.Snapshots(t.Context(), w.store, w.named(list[0]).ID)
	must(t, err)
	equal(t, "quote after the next", snaps[1].Ask, units(1000))
	w.checkIdle()
}

func TestRule7_FirstResponseIsComparedWithOtherMarkets(t *testing.T) {
	list := names("Item", 300)
	for _, known := range []bool{false, true} {
		old := bulk("alpha", list, "a1", "a2", "a3")
		first := bulk("beta", list, "b1")
		first.price = func(string, string) money.Micro { return units(1000) }
		w := newWorld(t, old)
		w.push("u", 730, list...)
		w.forget()
		if known {
			w.run(false)
		}
		w.providers = append(w.providers, first)
		w.restart()
		w.run(true)
		equal(t, "price", w.named(list[0]).Price, units(10))
		equal(t, "average", w.named(list[0]).Average, units(10))
		equal(t, "quarantined", w.count(`SELECT count(*) FROM market_file WHERE quarantine <> ''`), 1)
		w.checkIdle()
		w.stop()
	}
}

func TestRule7_FirstFileIsComparedWithQuotesByName(t *testing.T) {
	list := names("Item", 300)
	cents := bulk("alpha", list, "a1")
	cents.price = func(string, string) money.Micro { return units(1000) }
	w := newWorld(t, cents, batch("beta", 50, list, "b1"), single("gamma", list[:150], "c1"))
	w.push("u", 730, list...)
	w.forget()
	w.run(false)
	equal(t, "price", w.named(list[0]).Price, units(10))
	equal(t, "average", w.named(list[0]).Average, units(10))
	equal(t, "quarantined", w.count(`SELECT count(*) FROM market_file WHERE quarantine <> ''`), 1)
	w.checkIdle()
}

func TestRule7_AcceptanceIsLimitedToTheRefusedResponse(t *testing.T) {
	list := names("Item", 200)
	for _, c := range []struct {
		name   string
		factor money.Micro // names of the next response; the refused one had 100
		share  int         // of the names
		later  time.Duration
		want   money.Micro
	}{
		{"the same", 100, 200, time.Hour, units(1000)},
		{"about the same", 130, 150, 47 * time.Hour, units(1300)},
		{"another level", 10_000, 200, time.Hour, units(10)},
		{"another size", 100, 99, time.Hour, units(10)},
		{"too late", 100, 200, 48 * time.Hour, units(10)},
		{"good again", 1, 200, time.Hour, units(10)},
	} {
		t.Run(c.name, func(t *testing.T) {
			factor, share := money.Micro(1), list
			s := bulk("alpha", list, "a1")
			s.edit = func(q *provider.Quote) bool {
				q.Ask *= factor
				return slices.Contains(share, q.Name)
			}
			w := newWorld(t, s)
			w.push("u", 730, list...)
			w.drain()
			w.clock.Add(7 * time.Hour)
			factor = 100
			w.run(false)
			must(t, w.engine.AcceptProvider(t.Context(), "alpha", ""))
			w.clock.Add(c.later)
			factor, share = c.factor, list[:c.share]
			w.run(true)
			snaps, err := view.Snapshots(t.Context(), w.store, w.named(list[0]).ID)
			must(t, err)
			equal(t, "quote", snaps[0].Ask, c.want)
			refused := int64(0)
			if c.want == units(10) && c.factor != 1 {
				refused = 1
			}
			equal(t, "quarantined", w.count(`SELECT count(*) FROM market_file WHERE quarantine <> ''`), refused)
			equal(t, "an operator's word is left", w.count(`SELECT count(*) FROM market_file WHERE accepted_at <> 0`), 0)
			w.checkIdle()
		})
	}
}

func TestRule7_FallOfAllMarketsIsNoAnomaly(t *testing.T) {
	list := names("Item", 200)
	percent := money.Micro(100)
	s := bulk("alpha", list, "a1", "a2", "a3")
	s.price = func(string, string) money.Micro { return units(10) * percent / 100 }
	w := newWorld(t, s)
	w.push("u", 730, list...)
	w.drain()
	percent = 59
	w.clock.Add(7 * time.Hour)
	w.run(false)
	equal(t, "price", w.named(list[0]).Price, units(59)/10)
	w.checkIdle()
}

func TestRule7_RecentFileIsValidatedBeforeUse(t *testing.T) {
	list := names("Item", 200)
	hang := bulk("beta", list, "b1")
	sick := bulk("alpha", append(slices.Clone(list), "New"), "a1", "a2", "a3")
	w := newWorld(t, sick, hang)
	w.push("u", 730, list...)
	w.drain()
	w.clock.Add(7 * time.Hour)
	// The bulk job has the anomalous response and waits for another file.
	sick.price = func(string, string) money.Micro { return units(1000) }
	hang.fail = func(int, provider.Call) error { return hang.wait(time.Minute) }
	id := w.begin(false)
	w.drain()
	equal(t, "stage", w.job(id).Stage, refresh.StageFetch)
	calls := len(sick.requested())
	w.push("v", 730, "New")
	w.drain()
	equal(t, "calls for the missing price", len(sick.requested()), 0)
	equal(t, "calls before", calls > 0, true)
	equal(t, "price", w.named("New").Price, 0)
	equal(t, "markets in quarantine too early", w.count(`SELECT count(*) FROM market_file WHERE quarantine <> ''`), 0)

	hang.fail = nil
	w.clock.Add(2 * time.Minute)
	w.drain()
	equal(t, "price of another", w.named(list[0]).Price, units(10))
	equal(t, "markets in quarantine", w.count(`SELECT count(*) FROM market_file WHERE quarantine <> ''`), 3)
	w.checkIdle()
}

func TestRule7_GoodRecentFileIsUsedBeforeItsOwnJobIsValidated(t *testing.T) {
	list := names("Item", 200)
	hang := bulk("beta", list, "b1")
	s := bulk("alpha", append(slices.Clone(list), "New"), "a1", "a2", "a3")
	w := newWorld(t, s, hang)
	w.push("u", 730, list...)
	w.drain()
	w.clock.Add(7 * time.Hour)
	hang.fail = func(int, provider.Call) error { return hang.wait(time.Minute) }
	w.begin(false)
	w.drain()
	s.requested()
	hang.fail = func(int, provider.Call) error { return hang.broken(provider.KindServer) }
	w.push("v", 730, "New")
	w.drain()
	equal(t, "calls", len(s.requested()), 0)
	equal(t, "price", w.named("New").Price, units(10))
	w.clock.Add(2 * time.Minute)
	w.drain()
	w.checkIdle()
	equal(t, "newest response is of the job itself", w.count(`SELECT count(*) FROM market_file f JOIN fetch_unit u ON u.id = f.unit_id
		JOIN refresh_job j ON j.id = u.job_id WHERE j.kind = 'bulk'`), 3)
}

func TestRule7_DamagedStoredResponseStopsNoJob(t *testing.T) {
	list := names("Item", 300)
	a, b := bulk("alpha", list, "a1", "a2", "a3"), bulk("beta", list, "b1", "b2", "b3")
	w := newWorld(t, a, b)
	w.push("u", 730, list...)
	w.drain()
	w.exec(`UPDATE fetch_blob SET data = $1`, []byte{1, 2, 3, 4, 5, 6, 7, 8}) // baseline of the next job
	w.clock.Add(7 * time.Hour)
	w.begin(false)
	for _, work := range []func() (bool, error){
		func() (bool, error) { return w.engine.Plan(t.Context()) },
		func() (bool, error) { return w.engine.Fetch(t.Context(), "alpha", "") },
	} {
		_, err := work()
		must(t, err)
	}
	w.exec(`UPDATE fetch_blob SET data = $1 WHERE bucket % 2 = 0`, []byte{0}) // and a half of what it brought
	w.drain()
	j := w.last(refresh.Bulk)
	equal(t, "updated", j.Counts.Updated, 300)
	equal(t, "state", j.State, refresh.Finished)
	w.checkIdle()
}

// Conflicting rows of one response are evidence for neither price.
func TestRule7_ConflictingPricesOfANameAreRejected(t *testing.T) {
	again := func(name string, price money.Micro) provider.Quote {
		return provider.Quote{Market: "a1", Name: name, Currency: "USD", Ask: price, Listings: provider.Unknown, Sales: provider.Unknown}
	}
	list := names("Item", 5)
	for shape, s := range map[string]*fakeProvider{"file": bulk("alpha", list, "a1", "a2"), "names": batch("alpha", 10, list, "a1", "a2")} {
		t.Run(shape, func(t *testing.T) {
			s.extra = []provider.Quote{again(list[0], units(11)), again(list[1], units(10)), again(list[0], units(10))}
			if shape == "file" {
				s.split, s.d.Files = nil, []provider.File{{Key: "all.json", AppID: 730, Markets: []string{"a1", "a2"}}}
			}
			w := newWorld(t, s)
			w.push("u", 730, list...)
			w.forget()
			j := w.run(false)
			equal(t, "updated", j.Counts.Updated, 5)
			for name, markets := range map[string]int64{list[0]: 1, list[1]: 2, list[2]: 2} {
				equal(t, "snapshots of "+name, w.count(`SELECT count(*) FROM market_snapshot s JOIN item i ON i.id = s.item_id WHERE i.name = $1`, name), markets)
				equal(t, "price of "+name, w.named(name).Price, units(10))
			}
			fetched := `SELECT f.%s FROM market_fetch f JOIN market m ON m.id = f.market_id WHERE m.key = 'a1'`
			equal(t, "quotes", w.count(fmt.Sprintf(fetched, "quotes")), 4)
			equal(t, "rejected", w.count(fmt.Sprintf(fetched, "rejected")), 4)
		})
	}
}
