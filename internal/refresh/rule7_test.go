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
	"assay/internal/view"
)

// damage returns a function that makes a provider change each of its quotes.
func damage(change func(q *provider.Quote)) func(*fakeProvider) {
	return func(s *fakeProvider) {
		s.edit = func(q *provider.Quote) bool {
			change(q)
			return true
		}
	}
}

// badResponses returns functions that make the responses of a provider unusable, by name.
func badResponses() map[string]func(*fakeProvider) {
	out := map[string]func(*fakeProvider){
		"empty": func(s *fakeProvider) { s.edit = func(*provider.Quote) bool { return false } },
		"less than half": func(s *fakeProvider) {
			s.edit = func(q *provider.Quote) bool { return strings.HasPrefix(q.Name, "Item 1") }
		},
		"silent":         func(s *fakeProvider) { s.silent = []string{"a1", "a2", "a3"} },
		"unknown market": damage(func(q *provider.Quote) { q.Market = "elsewhere" }),
		"an unclassified error": func(s *fakeProvider) {
			s.fail = func(int, provider.Call) error { return errTest }
		},
		"dollars for cents":      damage(func(q *provider.Quote) { q.Ask *= 100 }),
		"cents for dollars":      damage(func(q *provider.Quote) { q.Ask /= 100 }),
		"none offered":           damage(func(q *provider.Quote) { q.Ask = 0 }),
		"negative ask":           damage(func(q *provider.Quote) { q.Ask = -q.Ask }),
		"least ask":              damage(func(q *provider.Quote) { q.Ask = math.MinInt64 }),
		"greatest ask":           damage(func(q *provider.Quote) { q.Ask = math.MaxInt64 }),
		"over ten million":       damage(func(q *provider.Quote) { q.Ask = units(10_000_000) + 1 }),
		"greatest bid":           damage(func(q *provider.Quote) { q.Bid = math.MaxInt64 }),
		"negative bid":           damage(func(q *provider.Quote) { q.Bid = -1 }),
		"greatest sale":          damage(func(q *provider.Quote) { q.Ask, q.Sale = 0, math.MaxInt64 }),
		"greatest listings":      damage(func(q *provider.Quote) { q.Listings = math.MaxInt64 }),
		"least listings":         damage(func(q *provider.Quote) { q.Listings = math.MinInt64 }),
		"greatest sales":         damage(func(q *provider.Quote) { q.Sales = math.MaxInt64 }),
		"least sales":            damage(func(q *provider.Quote) { q.Sales = math.MinInt64 }),
		"greatest window":        damage(func(q *provider.Quote) { q.SalesWindow = math.MaxInt64 }),
		"negative window":        damage(func(q *provider.Quote) { q.SalesWindow = -time.Hour }),
		"no currency":            damage(func(q *provider.Quote) { q.Currency = "" }),
		"small letters":          damage(func(q *provider.Quote) { q.Currency = "usd" }),
		"a currency too long":    damage(func(q *provider.Quote) { q.Currency = "USDT" }),
		"no rate":                damage(func(q *provider.Quote) { q.Currency = "XYZ" }),
		"frozen for months":      damage(func(q *provider.Quote) { q.MarketTime = epoch.Add(-90 * 24 * time.Hour) }),
		"an unknown phase":       damage(func(q *provider.Quote) { q.Phase = "Phase 9" }),
		"phase of another item":  damage(func(q *provider.Quote) { q.Phase = "Ruby" }),
		"empty names":            damage(func(q *provider.Quote) { q.Name = "" }),
		"names of 64 KiB":        damage(func(q *provider.Quote) { q.Name = strings.Repeat("n", 64<<10) }),
		"names of invalid UTF-8": damage(func(q *provider.Quote) { q.Name += "\xff" }),
		"names with NUL":         damage(func(q *provider.Quote) { q.Name += "\x00" }),
		"names in upper case":    damage(func(q *provider.Quote) { q.Name = strings.ToUpper(q.Name) }),
		"names with a space":     damage(func(q *provider.Quote) { q.Name += " " }),
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

// wholes are the bad responses that can be detected only in a complete file.
var wholes = []string{"less than half", "silent", "dollars for cents", "cents for dollars"}

func TestRule7_BadResponseReplacesNoPrice(t *testing.T) {
	list := names("Item", 120)
	w := newWorld(t)
	nth := 0
	for name, breakProvider := range badResponses() {
		for _, shape := range []provider.Shape{provider.Bulk, provider.Batch} {
			if shape == provider.Batch && (slices.Contains(wholes, name) || strings.HasPrefix(name, "failure")) {
				continue // a request by name returns quotes that are checked one by one
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
			w.clearMissing()
			w.run(false)
			before := w.named(list[0])
			w.clock.Add(8 * 24 * time.Hour) // old quotes are stale by then
			breakProvider(s)
			j := w.run(false)
			after := w.named(list[0])
			if after.Price != units(10) || before.Price != units(10) || w.valueOf("u", 0) != units(10) {
				t.Errorf("%s, %s: got prices %v and %v, want 10", name, shape, before.Price, after.Price)
			}
			if j.Counts.Updated != 0 {
				t.Errorf("%s, %s: got %d items updated, want 0", name, shape, j.Counts.Updated)
			}
			if !after.CheckedAt.Equal(before.CheckedAt) {
				t.Errorf("%s, %s: got a new check time, want %v", name, shape, before.CheckedAt)
			}
			w.checkIdle()

			// The next good response is accepted as usual.
			s.edit, s.fail, s.silent = nil, nil, nil
			w.clock.Add(7 * time.Hour)
			if j := w.run(false); j.Counts.Updated != 120 {
				t.Errorf("%s, %s: after the provider recovered: got %+v, want 120 updated", name, shape, j.Counts)
			}
		}
	}
}

func TestRule7_FailureDoesNotAffectOtherProviders(t *testing.T) {
	list := names("Item", 120)
	nth := 0
	for name, breakProvider := range badResponses() {
		if nth++; name == "less than half" || !dbtest.RunsCase(nth) {
			continue
		}
		failing, good := bulk("alpha", list, "a1", "a2", "a3"), bulk("beta", list, "b1", "b2", "b3")
		w := newWorld(t, failing, good)
		w.push("u", 730, list...)
		w.drain()
		w.clock.Add(8 * 24 * time.Hour)
		breakProvider(failing)
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
	equal(t, "the average", w.named("A").Average, units(9))
	a.fail = func(int, provider.Call) error { return a.broken(provider.KindServer) }
	w.clock.Add(23 * time.Hour)
	w.run(true)
	equal(t, "the average", w.named("A").Average, units(9))
	w.clock.Add(2 * time.Hour)
	w.run(true)
	equal(t, "the average", w.named("A").Average, units(10))
	snaps, err := view.Snapshots(t.Context(), w.store, w.named("A").ID)
	must(t, err)
	equal(t, "reason", snaps[0].Reason, "staleFetch")
	equal(t, "the fetch time", snaps[0].FetchedAt, epoch)
	equal(t, "whether the other market has no fetch time", snaps[1].FetchedAt.IsZero(), true)
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
		equal(t, "the price of a phase without quotes", w.valueOf("u", 3), 0)
		equal(t, "calls", len(s.requested()), 1) // one request for the name returns all phases
		w.checkIdle()
		w.stop()
	}
}

func TestRule7_HeldPriceIsReleasedByAChangedResponse(t *testing.T) {
	price, others := units(10), units(1)
	s := bulk("alpha", []string{"A"}, "a1")
	s.price = func(string, string) money.Micro { return price }
	// With the other names, the response as a whole is no anomaly.
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
	price = units(40) // the price is held, because only one market quotes it
	w.clock.Add(7 * time.Hour)
	w.run(false)
	i := w.named("A")
	equal(t, "price", i.Price, units(10))
	equal(t, "candidate", i.Candidate, units(40))
	equal(t, "the check time of the item", i.CheckedAt, epoch)
	equal(t, "value", w.valueOf("u", 0), units(10))
	w.clock.Add(29 * time.Minute)
	w.run(true)
	equal(t, "price within half an hour", w.named("A").Price, units(10))
	w.clock.Add(time.Hour)
	w.run(true)
	equal(t, "price after the same response again", w.named("A").Price, units(10))
	others++
	w.clock.Add(time.Minute)
	w.run(true)
	equal(t, "the confirmed price", w.named("A").Price, units(40))
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
		t.Error("AcceptItem without a held price: got no error, want one")
	}
	price = units(40)
	w.clock.Add(7 * time.Hour)
	w.run(false)
	must(t, w.engine.AcceptItem(t.Context(), key))
	i := w.named("A")
	equal(t, "price", i.Price, units(40))
	equal(t, "candidate", i.Candidate, 0)
	equal(t, "the check time", i.CheckedAt, w.clock.Now())
	equal(t, "rows", w.count(`SELECT count(*) FROM inventory WHERE value = $1`, int64(units(40))), 3)
	equal(t, "history", w.count(`SELECT count(*) FROM price_point WHERE item_id = $1`, i.ID), 2)
	equal(t, "history points with the method of the item", w.count(`SELECT count(*) FROM price_point p JOIN item i ON i.id = p.item_id
		WHERE i.id = $1 AND p.method = i.method AND p.method <> '' AND p.method_version = i.method_version`, i.ID), 2)
	w.run(true)
	equal(t, "price afterwards", w.named("A").Price, units(40))
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
			w.clearMissing()
			j := w.run(false)
			equal(t, "updated", j.Counts.Updated, 5)
			for name, markets := range map[string]int64{list[0]: 1, list[1]: 2, list[2]: 2} {
				equal(t, "snapshots of "+name, w.count(`SELECT count(*) FROM market_snapshot s JOIN item i ON i.id = s.item_id WHERE i.name = $1`, name), markets)
				equal(t, "price of "+name, w.named(name).Price, units(10))
			}
			fetched := `SELECT f.%s FROM market_fetch f JOIN market m ON m.id = f.market_id WHERE m.key = 'a1'`
			equal(t, "quotes", w.count(fmt.Sprintf(fetched, "quotes")), 4)
			equal(t, "rejected rows", w.count(fmt.Sprintf(fetched, "rejected")), 4)
		})
	}
}
