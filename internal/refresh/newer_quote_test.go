package refresh_test

import (
	"context"
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/money"
	"assay/internal/provider"
	"assay/internal/view"
)

func TestStep4_NewerQuoteOfTwoProvidersCounts(t *testing.T) {
	for _, first := range []string{"alpha", "beta"} {
		a, b := bulk("alpha", []string{"A"}, "m"), bulk("beta", []string{"A"}, "m")
		a.price = func(string, string) money.Micro { return units(10) }
		b.price = func(string, string) money.Micro { return units(12) }
		w := newWorld(t, a, b)
		w.push("u", 730, "A")
		w.clearMissing()
		w.begin(false)
		_, err := w.engine.Plan(t.Context())
		must(t, err)
		second, want := "beta", units(12)
		if first == "beta" {
			second, want = "alpha", units(10)
		}
		for _, provider := range []string{first, second} {
			_, err := w.engine.Fetch(t.Context(), provider, "")
			must(t, err)
			w.clock.Add(time.Second)
		}
		w.drain()
		i := w.named("A")
		equal(t, "price", i.Price, want)
		equal(t, "the quote time", i.QuotesAt, epoch)
		snaps, err := view.Snapshots(t.Context(), w.store, i.ID)
		must(t, err)
		for _, s := range snaps {
			at, reason := epoch, "duplicate"
			if s.Provider == second {
				at, reason = epoch.Add(time.Second), ""
			}
			equal(t, s.Provider+" was fetched", s.FetchedAt, at)
			equal(t, "reason of "+s.Provider, string(s.Reason), reason)
		}
		w.stop()
	}
}

func TestStep4_NewerQuoteOfTwoFilesCounts(t *testing.T) {
	s := bulk("alpha", []string{"A"}, "m")
	s.d.Files = append(s.d.Files, provider.File{Key: "later.json", AppID: catalog.CS2, Markets: []string{"m"}})
	price := units(10)
	s.price = func(string, string) money.Micro { return price }
	w := newWorld(t, s)
	s.before = func(_ context.Context, call provider.Call) {
		if call.File == "later.json" {
			w.clock.Add(time.Second)
			price = units(12)
		}
	}
	w.push("u", 730, "A")
	w.clearMissing()
	w.run(false)
	equal(t, "price", w.named("A").Price, units(12))
	w.checkIdle()
}

func TestStep3_EachNameHasTheTimeOfItsResponse(t *testing.T) {
	s := single("alpha", []string{"Fresh", "Frozen"}, "m")
	s.stated = func(call provider.Call) time.Time {
		if call.Names[0] == "Frozen" {
			return epoch.Add(-8 * 24 * time.Hour)
		}
		return epoch
	}
	w := newWorld(t, s)
	w.push("u", 730, "Fresh", "Frozen")
	w.drain()
	equal(t, "the price of the fresh item", w.named("Fresh").Price, units(10))
	equal(t, "the price of the frozen item", w.named("Frozen").Price, 0)
	w.checkIdle()
}

// A bulk job stops after its fetches. Before it continues, another job fetches the file again.
func TestStep4_NewerQuoteOfAnotherJobCounts(t *testing.T) {
	s := bulk("alpha", []string{"A", "B"}, "m")
	price := units(10)
	s.price = func(string, string) money.Micro { return price }
	w := newWorld(t, s)
	w.push("u", 730, "A", "B")
	w.drain()
	w.clock.Add(7 * time.Hour)
	price = units(11)
	w.begin(false)
	for _, work := range []func(context.Context) (bool, error){w.engine.Plan, func(ctx context.Context) (bool, error) { return w.engine.Fetch(ctx, "alpha", "") }} {
		_, err := work(t.Context())
		must(t, err)
	}
	w.clock.Add(10 * time.Minute)
	price = units(12)
	_, err := w.engine.RefreshItems(t.Context(), []catalog.Key{{AppID: 730, Name: "A"}}, "test")
	must(t, err)
	w.drain()
	equal(t, "price with a quote of both jobs", w.named("A").Price, units(12))
	equal(t, "price with a quote of the older job", w.named("B").Price, units(11))
	equal(t, "fetch of the newest good response", w.count(`SELECT fetched_at FROM market_file`), w.clock.Now().UnixMicro())
	w.checkIdle()
}
