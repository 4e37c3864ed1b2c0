package provider_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"assay/internal/money"
	"assay/internal/provider"
	"assay/internal/randtest"
)

func TestDuplicates_MatchesMapImplementation(t *testing.T) {
	rng := rand.New(rand.NewPCG(randtest.Seed(t), 0))
	var d provider.Duplicates
	for range 3 {
		d.Reset()
		type key struct{ market, name, phase string }
		first, contested := map[key]provider.Quote{}, map[key]bool{}
		for range randtest.Count(20_000, 1_000_000) {
			q := provider.Quote{
				Market: fmt.Sprintf("m%d", rng.IntN(3)), Name: fmt.Sprintf("name %d", rng.IntN(9000)), Phase: []string{"", "", "Ruby"}[rng.IntN(3)],
				Currency: money.Currency([]string{"USD", "USD", "USD", "USD", "USD", "EUR"}[rng.IntN(6)]),
				Ask:      money.Micro(rng.IntN(2)), Sale: money.Micro(rng.IntN(2)), Bid: money.Micro(rng.IntN(5)), Listings: rng.Int64N(5),
			}
			k := key{q.Market, q.Name, q.Phase}
			have, twice := first[k]
			same := q.Currency == have.Currency && q.Ask == have.Ask && (q.Ask > 0 || q.Sale == have.Sale)
			want := provider.Repeated
			switch {
			case !twice:
				want, first[k] = provider.First, q
			case contested[k]:
				want = provider.AfterConflict
			case !same:
				want, contested[k] = provider.Conflicting, true
			}
			if got := d.Add(&q); got != want {
				t.Fatalf("Add(%+v) after %+v: got %v, want %v", q, have, got, want)
			}
		}
		if d.Conflicts() != len(contested) {
			t.Errorf("got %d conflicts, want %d", d.Conflicts(), len(contested))
		}
		for k := range first {
			if d.Conflicting(k.market, k.name, k.phase) != contested[k] {
				t.Errorf("Conflicting(%+v): got %v, want %v", k, !contested[k], contested[k])
			}
		}
		if d.Conflicting("m0", "another name", "") {
			t.Error("name without quotes: got conflicting prices, want none")
		}
	}
}
