package view_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"assay/internal/db"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/provider"
	"assay/internal/randtest"
	"assay/internal/refresh"
	"assay/internal/view"
)

func TestPriceCounts_MatchLists(t *testing.T) {
	w := newWorld(t, false)
	createItems(w, randtest.New(t), 120)
	got, err := w.PriceCounts(t.Context())
	w.must(err)
	total := int64(0)
	for _, status := range view.PriceStatuses() {
		p, err := w.Items(t.Context(), view.ItemFilter{AppID: 730, Status: status}, "", 1000)
		w.must(err)
		if n, there := got.ByStatus[status]; !there || n != int64(len(p.Items)) {
			t.Errorf("items of status %s: got %d, want %d", status, n, len(p.Items))
		}
		total += got.ByStatus[status]
	}
	held, err := w.Items(t.Context(), view.ItemFilter{AppID: 730, Held: true}, "", 1000)
	w.must(err)
	if total != 120 || got.Held != int64(len(held.Items)) || got.Held == 0 || got.ByStatus["stale"] == 0 || got.ByStatus["noPrice"] == 0 {
		t.Errorf("got counts %+v, want 120 items, %d of them held, and some stale and some without a price", got, len(held.Items))
	}
}

// The levels come from the newest set of each game. The limit of the dispersion is the current limit for a
// response.
func TestMarketLevels_ReturnsNewestSetsOfConfiguredMarkets(t *testing.T) {
	w := newWorld(t, false)
	var ids map[refresh.MarketName]int64
	a, b, gone := refresh.MarketName{Provider: "sim", Key: "a"}, refresh.MarketName{Provider: "sim", Key: "b"}, refresh.MarketName{Provider: "sim", Key: "gone"}
	w.tx(func(tx *db.Tx) (err error) {
		ids, err = refresh.MarketIDs(tx, []refresh.MarketName{a, b, gone})
		return err
	})
	quiet := pricing.ValidationState{Dispersions: []money.Micro{10_000, 20_000, 30_000}}
	refused := pricing.ValidationState{
		Dispersions: []money.Micro{10_000, 20_000, 30_000}, RefusedSince: w.now,
		Refused: pricing.Refusal{Anomaly: pricing.Dispersion, Value: 400_000, High: 90_000},
	}
	learn := func(app int32, late bool) {
		set := pricing.NewSet(money.Scale)
		set.Markets = []pricing.SetMarket{
			{ID: ids[a], Known: true, Level: pricing.Ln(1_250_000) - pricing.Ln(money.Scale), Far: -1},
			{ID: ids[b], Late: late, Far: -1},
		}
		w.learned = append(w.learned, refresh.Learned{AppID: app, Set: set, States: []refresh.ValidationState{
			{MarketID: ids[a], State: quiet}, {MarketID: ids[b], State: refused}, {MarketID: ids[gone], State: quiet},
		}})
	}
	w.own("u", "x")
	for _, late := range []bool{true, false} { // the second set must be returned
		w.learned = nil
		learn(730, late)
		if late {
			learn(440, true)
		}
		id := w.begin(1)
		w.estimate(nil)
		w.end(id)
		w.now = w.now.Add(7 * time.Hour)
	}
	readers := view.New(view.Options{
		Store: w.store, Currency: "USD", Now: func() time.Time { return w.now },
		Providers: []provider.Provider{described{provider.Description{Name: "sim", Markets: []provider.Market{{Key: "a"}, {Key: "b"}}}}},
	})
	levels, err := readers.Providers.MarketLevels(t.Context())
	w.must(err)
	var got []string
	for _, l := range levels {
		got = append(got, fmt.Sprintf("%s/%s %d level %v late %t dispersion %v", l.Provider, l.Market, l.AppID, l.Level, l.Late, l.Dispersion))
		if l.Market == "b" && l.DispersionLimit != 90_000 || l.Market == "a" && l.DispersionLimit < 60_000 {
			t.Errorf("%s: got DispersionLimit %v, want 90,000 for b and at least 60,000 for a", l.Market, l.DispersionLimit)
		}
	}
	want := []string{
		"sim/a 440 level 1.25 late false dispersion 0.03", "sim/b 440 level 0 late true dispersion 0.4",
		"sim/a 730 level 1.25 late false dispersion 0.03", "sim/b 730 level 0 late false dispersion 0.4",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("levels:\ngot\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
