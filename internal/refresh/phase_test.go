package refresh_test

import (
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/provider"
)

// If all known items are in scope, a new phase of a known name becomes an item. One job finds
// it, and the next one prices it. This needs no further request, because a request for a name
// returns all its phases.
func TestScopeAll_NewPhaseBecomesAnItem(t *testing.T) {
	const name = "★ Karambit | Doppler (Factory New)"
	for _, all := range []bool{true, false} {
		a, b := bulk("alpha", []string{name}, "a1"), batch("beta", 10, []string{name}, "b1")
		for _, s := range []*fakeProvider{a, b} {
			s.extra = []provider.Quote{
				{Market: s.d.Markets[0].Key, Name: name, Phase: "Ruby", Currency: "USD", Ask: units(9000), Listings: -1, Sales: -1},
				{Market: s.d.Markets[0].Key, Name: name, Phase: "Phase 2", Currency: "USD", Listings: 0, Sales: -1},
				{Market: s.d.Markets[0].Key, Name: "Nobody's", Phase: "Ruby", Currency: "USD", Ask: units(1), Listings: -1, Sales: -1},
			}
		}
		w := newWorld(t, a, b)
		w.cfg.ScopeAll = all
		w.restart()
		w.push("u", 730, name)
		w.drain()
		want := map[bool]int64{true: 2, false: 1}[all]
		equal(t, "items", w.count(`SELECT count(*) FROM item`), want)
		a.requested()
		b.requested()
		w.clock.Add(7 * time.Hour)
		j := w.run(false)
		equal(t, "updated", j.Counts.Updated, want)
		equal(t, "files", len(a.requested()), 1)
		requested := b.requested()
		if len(requested) != 1 || len(requested[0].Names) != 1 {
			t.Errorf("the provider got %+v, want one request for the name", requested)
		}
		if all {
			ruby := w.item(catalog.Key{AppID: catalog.CS2, Name: name, Phase: "Ruby"})
			equal(t, "price", ruby.Price, units(9000))
			equal(t, "markets", ruby.UsedMarkets, 2)
		}
		equal(t, "price of the plain name", w.named(name).Price, units(10))
		equal(t, "items", w.count(`SELECT count(*) FROM item`), want)
		w.checkIdle()
		w.stop()
	}
}
