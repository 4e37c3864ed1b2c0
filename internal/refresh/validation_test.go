package refresh_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"assay/internal/money"
	"assay/internal/provider"
	"assay/internal/refresh"
	"assay/internal/view"
)

func TestRule7_RefusedResponseIsComparedWithTheLastValidOne(t *testing.T) {
	list := names("Item", 200)
	short := false
	s := bulk("alpha", list, "a1")
	s.edit = func(q *provider.Quote) bool {
		switch at := slices.Index(list, q.Name); {
		case !short:
			q.Ask = units(int64(at + 1))
		case at >= 50:
			return false
		case at == 7:
			q.Ask = units(2)
		case at == 9:
			q.Ask = units(11)
		default:
			q.Ask = units(int64(at + 1))
		}
		return true
	}
	w := newWorld(t, s)
	w.push("u", 730, list...)
	w.drain()
	w.clock.Add(7 * time.Hour)
	short = true
	w.run(false)
	refused, err := refresh.Quarantines(t.Context(), w.store, "alpha")
	must(t, err)
	equal(t, "refused responses", len(refused), 1)
	want := refresh.Comparison{Before: 200, After: 50, Shared: 50, Median: money.Scale, Moved: []refresh.Moved{
		{Name: list[7], Before: units(8), After: units(2)}, {Name: list[9], Before: units(10), After: units(11)},
	}}
	for at := 199; len(want.Moved) < 10; at-- { // the most expensive names that are missing
		want.Moved = append(want.Moved, refresh.Moved{Name: list[at], Before: units(int64(at + 1))})
	}
	if got := refused[0].Refused; got == nil || !reflect.DeepEqual(*got, want) {
		t.Errorf("got the comparison %+v, want %+v", got, want)
	}
	must(t, w.engine.AcceptProvider(t.Context(), "alpha", ""))
	equal(t, "stored comparisons after the acceptance", w.count(`SELECT count(*) FROM market_file WHERE refused <> ''`), 0)
}

// The market responds in a currency without a rate, and then with cents instead of dollars.
// The second response must not be compared with the first one.
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
			t.Errorf("got the last error %q, want %q", j.LastError, c.reason)
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
	failing := 0
	for _, m := range states {
		if m.Quarantine != "" {
			failing++
			equal(t, "outcome", m.Outcome, "quarantined")
			equal(t, "the start of the quarantine", m.QuarantinedSince, w.clock.Now())
		}
	}
	equal(t, "markets in quarantine", failing, 1)
	refused, err := refresh.Quarantines(t.Context(), w.store, "alpha")
	must(t, err)
	equal(t, "compared responses", len(refused), 1)
	got := refused[0].Refused
	first := refresh.Moved{Name: list[0], Before: units(10), After: units(1000)}
	if got == nil || got.Before != 200 || got.After != 200 || got.Shared != 200 || got.Median != 100*money.Scale || len(got.Moved) != 10 || got.Moved[0] != first {
		t.Errorf("got the comparison %+v, want 200 names of which each costs 100 times as much, the first one %+v", got, first)
	}
	if !strings.Contains(j.LastError, "a2: quarantined") {
		t.Errorf("got the last error %q, want one that reports the quarantine of a2", j.LastError)
	}
	snaps, err := view.Snapshots(t.Context(), w.store, w.named(list[0]).ID)
	must(t, err)
	equal(t, "last good quote of the quarantined market", snaps[1].Ask, units(10))

	must(t, w.engine.AcceptProvider(t.Context(), "alpha", ""))
	if err := w.engine.AcceptProvider(t.Context(), "alpha", ""); err == nil {
		t.Error("second AcceptProvider: got no error, want one")
	}
	w.run(true)
	snaps, err = view.Snapshots(t.Context(), w.store, w.named(list[0]).ID)
	must(t, err)
	equal(t, "accepted quote", snaps[1].Ask, units(1000))
	factor = 1
	w.run(true) // the next response is compared with the accepted one
	snaps, err = view.Snapshots(t.Context(), w.store, w.named(list[0]).ID)
	must(t, err)
	equal(t, "quote after the next response", snaps[1].Ask, units(1000))
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
		w.clearMissing()
		if known {
			w.run(false)
		}
		w.providers = append(w.providers, first)
		w.restart()
		w.run(true)
		equal(t, "price", w.named(list[0]).Price, units(10))
		equal(t, "average", w.named(list[0]).Average, units(10))
		equal(t, "markets in quarantine", w.count(`SELECT count(*) FROM market_file WHERE quarantine <> ''`), 1)
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
	w.clearMissing()
	w.run(false)
	equal(t, "price", w.named(list[0]).Price, units(10))
	equal(t, "average", w.named(list[0]).Average, units(10))
	equal(t, "markets in quarantine", w.count(`SELECT count(*) FROM market_file WHERE quarantine <> ''`), 1)
	w.checkIdle()
}

func TestRule7_AcceptanceIsLimitedToTheRefusedResponse(t *testing.T) {
	list := names("Item", 200)
	for _, c := range []struct {
		name   string
		factor money.Micro // of the prices in the next response; 100 in the refused response
		share  int         // number of names in the next response
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
			equal(t, "markets in quarantine", w.count(`SELECT count(*) FROM market_file WHERE quarantine <> ''`), refused)
			equal(t, "stored acceptances of an operator", w.count(`SELECT count(*) FROM market_file WHERE accepted_at <> 0`), 0)
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
	failing := bulk("alpha", append(slices.Clone(list), "New"), "a1", "a2", "a3")
	w := newWorld(t, failing, hang)
	w.push("u", 730, list...)
	w.drain()
	w.clock.Add(7 * time.Hour)
	// The bulk job has the anomalous response and waits for another file.
	failing.price = func(string, string) money.Micro { return units(1000) }
	hang.fail = func(int, provider.Call) error { return hang.wait(time.Minute) }
	id := w.begin(false)
	w.drain()
	equal(t, "stage", w.job(id).Stage, refresh.StageFetch)
	calls := len(failing.requested())
	w.push("v", 730, "New")
	w.drain()
	equal(t, "calls for the missing price", len(failing.requested()), 0)
	equal(t, "calls before", calls > 0, true)
	equal(t, "price", w.named("New").Price, 0)
	equal(t, "markets in quarantine too early", w.count(`SELECT count(*) FROM market_file WHERE quarantine <> ''`), 0)

	hang.fail = nil
	w.clock.Add(2 * time.Minute)
	w.drain()
	equal(t, "the price of another item", w.named(list[0]).Price, units(10))
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
	equal(t, "whether the newest response belongs to the job", w.count(`SELECT count(*) FROM market_file f JOIN fetch_unit u ON u.id = f.unit_id
		JOIN refresh_job j ON j.id = u.job_id WHERE j.kind = 'bulk'`), 3)
}

func TestRule7_DamagedStoredResponseStopsNoJob(t *testing.T) {
	list := names("Item", 300)
	a, b := bulk("alpha", list, "a1", "a2", "a3"), bulk("beta", list, "b1", "b2", "b3")
	w := newWorld(t, a, b)
	w.push("u", 730, list...)
	w.drain()
	w.exec(`UPDATE fetch_blob SET data = $1`, []byte{1, 2, 3, 4, 5, 6, 7, 8}) // the next job compares its response with this data
	w.clock.Add(7 * time.Hour)
	w.begin(false)
	for _, work := range []func() (bool, error){
		func() (bool, error) { return w.engine.Plan(t.Context()) },
		func() (bool, error) { return w.engine.Fetch(t.Context(), "alpha", "") },
	} {
		_, err := work()
		must(t, err)
	}
	w.exec(`UPDATE fetch_blob SET data = $1 WHERE bucket % 2 = 0`, []byte{0}) // half of the stored response is damaged
	w.drain()
	j := w.last(refresh.Bulk)
	equal(t, "updated", j.Counts.Updated, 300)
	equal(t, "state", j.State, refresh.Finished)
	w.checkIdle()
}
