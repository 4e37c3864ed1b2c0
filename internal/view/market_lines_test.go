package view_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/refresh"
	"assay/internal/view"
)

// TestMarketLines_HaveChangesOfEachMarket prices an item five times, one hour apart. The
// market "gone" stops offering it, and the market "foreign" has no exchange rate.
func TestMarketLines_HaveChangesOfEachMarket(t *testing.T) {
	w := newWorld(t, false)
	w.own("u", "A")
	start := w.now
	var ids map[refresh.MarketName]int64
	names := []refresh.MarketName{{Provider: "p", Key: "a", Title: "A market"}, {Provider: "p", Key: "gone", Title: "Gone"}, {Provider: "p", Key: "foreign", Title: "Foreign"}}
	w.tx(func(tx *db.Tx) (err error) {
		ids, err = refresh.MarketIDs(tx, names)
		return err
	})
	for k, price := range []int64{10, 10, 12, 9, 11} {
		w.now = start.Add(time.Duration(k) * 7 * time.Hour)
		w.quotes = func() []refresh.MarketSnapshot {
			gone := refresh.MarketSnapshot{MarketID: ids[names[1]], Currency: "USD", Sale: units(7), FetchedAt: w.now}
			if k > 2 {
				gone.Reason = pricing.NotOffered
			}
			return []refresh.MarketSnapshot{
				{MarketID: ids[names[0]], Currency: "USD", Ask: units(price), FetchedAt: w.now},
				gone,
				{MarketID: ids[names[2]], Currency: "EUR", Ask: units(50), FetchedAt: w.now},
			}
		}
		w.price(map[string]money.Micro{"A": units(price)})
	}
	w.now = start.Add(40 * time.Hour)
	for _, test := range []struct {
		from, step time.Duration
		want       string
	}{
		{0, time.Hour, "A market: 0s 10, 14h0m0s 12, 21h0m0s 9, 28h0m0s 11; Gone: 0s 7, 21h0m0s 0"},
		{15 * time.Hour, time.Hour, "A market: 14h0m0s 12, 21h0m0s 9, 28h0m0s 11; Gone: 14h0m0s 7, 21h0m0s 0"},
		{0, 20 * time.Hour, "A market: 0s 10, 14h0m0s 12, 28h0m0s 11; Gone: 0s 7, 28h0m0s 0"},
	} {
		lines, err := w.MarketLines(t.Context(), catalog.Key{AppID: catalog.CS2, Name: "A"}, start.Add(test.from), w.now, test.step)
		w.must(err)
		var got []string
		for _, l := range lines {
			var points []string
			for _, p := range l.Points {
				points = append(points, fmt.Sprint(p.At.Sub(start), " ", p.Price))
			}
			got = append(got, l.Title+": "+strings.Join(points, ", "))
		}
		if strings.Join(got, "; ") != test.want {
			t.Errorf("from %v in steps of %v: got %s, want %s", test.from, test.step, strings.Join(got, "; "), test.want)
		}
	}
}

func TestHeldAndMissing_ExplainRows(t *testing.T) {
	w := newWorld(t, false)
	w.own("bob", "a", "b")
	w.own("ann", "b", "b")
	guard := pricing.EncodeGuard(&pricing.State{}, &pricing.Move{Window: pricing.SinceDay, Reference: units(4), Factor: 2_500_000, ClassMove: money.Scale})
	w.tx(func(tx *db.Tx) error {
		_, err := tx.Exec(`UPDATE item SET price = 4000000, status = 0, candidate = 10000000, candidate_at = $1, guard = $2 WHERE name = 'a'`, db.Micros(w.now), guard)
		return err
	})
	held, err := w.Held(t.Context(), "", 10)
	w.must(err)
	if want := "2.5 times 4 USD, the price 24 hours earlier or the first price after that. The limit is 2."; len(held.Items) != 1 || held.Items[0].Reason != want {
		t.Errorf("got the held prices %+v, want one with the reason %q", held.Items, want)
	}
	missing, err := w.Missing(t.Context(), "", 10)
	w.must(err)
	got := map[string]view.MissingPrice{}
	for _, m := range missing.Items {
		got[m.Key.Name] = m
	}
	if a, b := got["a"], got["b"]; a.Users != 1 || a.FirstUser != "bob" || b.Users != 2 || b.Rows != 3 || !b.LastAt.IsZero() {
		t.Errorf("got the entries %+v, want a for bob, and b for two users with three rows and no attempt", missing.Items)
	}
}
