package refresh_test

import (
	"slices"
	"testing"
	"time"

	"assay/internal/provider"
	"assay/internal/refresh"
)

// Steam responds to an unknown name with success and no quote. It responds to some existing
// names in the same way, so such a response does not show whether a name is listed.
func TestBackground_ResponseWithoutEvidenceKeepsQuotes(t *testing.T) {
	list := names("Item", 4)
	steam := slow("steam", list, "s1", "s2")
	w := priced(t, list, steam)
	w.run(false)
	const quoted = `SELECT count(*) FROM market_snapshot s JOIN market m ON m.id = s.market_id WHERE m.provider = 'steam' AND s.ask > 0`
	equal(t, "snapshots", w.count(quoted), 8)

	for _, c := range []struct {
		name     string
		response func()
		want     int64
	}{
		{"no row of the name", func() { steam.items[730] = nil }, 8},
		{"a missing market", func() {
			steam.edit = func(q *provider.Quote) bool { return q.Market == "s1" }
			steam.silent = []string{"s2"}
		}, 8},
		{"known, not listed anywhere", func() {
			steam.edit = func(q *provider.Quote) bool { q.Ask = 0; return true }
		}, 0},
		{"offered again", func() {}, 8},
		{"known, not listed on one market", func() {
			steam.edit = func(q *provider.Quote) bool { return q.Market == "s1" }
		}, 4},
	} {
		steam.items[730], steam.edit, steam.silent = list, nil, nil
		c.response()
		w.clock.Add(7 * time.Hour)
		w.run(false)
		if n := len(steam.requested()); n == 0 {
			t.Errorf("%s: the provider got no request, want one", c.name)
		}
		equal(t, c.name, w.count(quoted), c.want)
	}
	w.checkIdle()
}

func TestNames_MissingMarketKeepsItsQuote(t *testing.T) {
	list := names("Item", 3)
	b := batch("cap", 10, list, "m1", "m2", "m3")
	w := newWorld(t, b)
	w.push("u", 730, list...)
	w.drain()
	equal(t, "markets", w.named(list[0]).UsedMarkets, 3)
	b.edit = func(q *provider.Quote) bool { return q.Market == "m1" }
	b.silent = []string{"m2"}
	w.clock.Add(7 * time.Hour)
	w.run(false)
	equal(t, "markets, one missing from the response and one without the item", w.named(list[0]).UsedMarkets, 2)
	w.checkIdle()
}

// Each response of a provider reports its own missing markets, so the last response does not decide for the others.
func TestNames_MissingMarketConcernsOnlyTheNamesOfItsResponse(t *testing.T) {
	list := names("Item", 400)
	b := batch("cap", 100, list, "m1", "m2")
	w := newWorld(t, b)
	w.push("u", 730, list...)
	w.drain()
	b.edit = func(q *provider.Quote) bool { return q.Market == "m1" } // m2 quotes nothing
	b.lacks = func(call provider.Call) []string {
		if slices.Contains(call.Names, list[0]) {
			return []string{"m2"}
		}
		return nil
	}
	w.clock.Add(7 * time.Hour)
	b.requested()
	lacked := w.run(false)
	for _, call := range b.requested() {
		want := 1
		if slices.Contains(call.Names, list[0]) {
			want = 2
		}
		for _, name := range call.Names {
			equal(t, "markets of "+name, int(w.named(name).UsedMarkets), want)
		}
	}
	w.checkOutcome("a market is missing from one of four responses", lacked, refresh.JobPartial, "cap/m2 silent 0.25")
	w.checkIdle()
}
