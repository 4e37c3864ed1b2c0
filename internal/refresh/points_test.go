package refresh_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/provider"
	"assay/internal/refresh"
)

// points returns the price history of an item, the oldest point first.
func (w *world) points(name string) []string {
	w.tb.Helper()
	var out strings.Builder
	w.print(&out, `SELECT p.price, p.status, p.interval_low, p.interval_high, `+setOf("p.level_set")+`, p.used, p.rate_set FROM price_point p
		JOIN item i ON i.id = p.item_id WHERE i.name = '`+name+`' ORDER BY p.at`)
	if out.Len() == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

func TestHistory_AddsPointPerChangeOfPriceOrStatus(t *testing.T) {
	const name = "A"
	price := map[string]money.Micro{"a1": units(10), "a2": units(10)}
	s := batch("alpha", 10, []string{name}, "a1", "a2")
	s.price = func(market, _ string) money.Micro { return price[market] }
	w := newWorld(t, s)
	w.push("u", 730, name)
	w.drain()
	ids := []int64{w.count(`SELECT id FROM market WHERE key = 'a1'`), w.count(`SELECT id FROM market WHERE key = 'a2'`)}
	var want []string
	note := func(what, used string) {
		t.Helper()
		i := w.named(name)
		var out strings.Builder
		w.print(&out, `SELECT price, status, interval_low, interval_high, `+setOf("item.level_set")+`, '`+used+`', rate_set FROM item`)
		want = append(want, strings.TrimSuffix(out.String(), "\n"))
		if got := w.points(name); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Fatalf("%s, status %v: got the points\n%s, want\n%s", what, i.Status, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	of := func(ids ...int64) string {
		var out []string
		for _, id := range ids {
			out = append(out, money.Micro(id*money.Scale).String())
		}
		return strings.Join(out, ",")
	}
	both, first := of(ids...), of(ids[0])
	note("first price", both)
	again := func() { w.clock.Add(7 * time.Hour); w.run(true) }
	again()
	equal(t, "points where nothing changed", len(w.points(name)), len(want))

	price["a1"], price["a2"] = units(11), units(11)
	again()
	note("another price", both)

	status := w.named(name).Status
	price["a2"] = 0 // the market no longer offers the item, and one market alone is thin
	again()
	if w.named(name).Status == status {
		t.Fatalf("got the unchanged status %v, want a different one", status)
	}
	note("another status", first)

	price["a1"] = units(44)
	again()
	if w.named(name).Candidate == 0 {
		t.Fatal("got no held price, want one")
	}
	if w.named(name).Status != pricing.Thin {
		note("held: another status", first)
	}
	w.clock.Add(time.Minute)
	must(t, w.engine.AcceptItem(t.Context(), catalog.Key{AppID: catalog.CS2, Name: name}))
	note("accepted", first)
	w.checkIdle()

	id := w.named(name).ID
	for after, want := range map[time.Duration]money.Micro{0: 0, time.Second: 0, 14 * time.Hour: units(10), 14*time.Hour + 1000: units(10), 1000 * time.Hour: units(11)} {
		got, err := refresh.PriceBefore(t.Context(), w.store, id, epoch.Add(after))
		must(t, err)
		equal(t, "price before the last change up to "+after.String(), got, want)
	}
	past, err := refresh.ReadPastPrices(t.Context(), w.store, []int64{id}, w.clock.Now())
	must(t, err)
	equal(t, "past prices", past[id].First, pricing.Reference{Price: units(10), At: epoch})
	equal(t, "price a day ago", past[id].Day, units(10))
	equal(t, "price a week ago", past[id].Week, 0)
	equal(t, "range of the week", past[id].Range, pricing.Range{Low: units(10), High: units(44)})
	past, err = refresh.ReadPastPrices(t.Context(), w.store, []int64{id}, w.clock.Now().Add(7*24*time.Hour))
	must(t, err)
	equal(t, "a week later: price a day ago", past[id].Day, units(44))
	equal(t, "a week later: price a week ago", past[id].Week, units(44))
	equal(t, "a week later: range of the week", past[id].Range, pricing.Range{Low: units(44), High: units(44)})
}

// The clock was ahead at a change. The next point replaces that of the change, so it is announced as
// a change too: a reader may not have read the first one.
func TestHistory_PointThatReplacesAChangeIsAnnounced(t *testing.T) {
	s := batch("alpha", 10, []string{"A"}, "a1")
	price, bid := units(10), money.Micro(0)
	s.price = func(string, string) money.Micro { return price }
	s.edit = func(q *provider.Quote) bool {
		q.Bid = bid
		return true
	}
	w := newWorld(t, s)
	w.push("u", 730, "A")
	w.drain()
	w.clock.Add(7 * time.Hour)
	price = units(12)
	w.run(false)
	w.clock.Add(-time.Hour)
	bid = units(1)
	w.run(true)
	equal(t, "points", len(w.points("A")), 2)
	equal(t, "price", w.named("A").Price, units(12))
	newest := `SELECT count(*) FROM event e, price_point p WHERE e.kind = 'price.changed' AND e.data = '{"items":[' || p.item_id || ']}'
		AND e.at = p.at AND p.at = ` + fmt.Sprint(w.clock.Now().UnixMicro())
	equal(t, "announced changes at the time of the newest point", w.count(newest), 1)
	w.checkIdle()
}
