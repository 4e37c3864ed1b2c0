package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"testing"
	"time"

	"assay/internal/provider"
	"assay/internal/randtest"
)

// TestPast_EqualsWhatWasStoredAndRecomputes prices names in several runs over some days. Some
// prices are held and released. It compares the prices at random past moments with a snapshot of
// that time, and recomputes each price from the response alone.
func TestPast_EqualsWhatWasStoredAndRecomputes(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, on engine) {
		t.Parallel()
		r := randtest.New(t)
		m := newMarkets(t, r, 300)
		c := &clock{}
		s := onClock(t, on, c, provider.DefaultTimeout, "MARKET_PRICE_PROVIDERS=pricelist", "PRICELIST_CONFIG="+m.config(t), "MARKET_PRICE_SCOPE=all")
		m.push(s)
		var past []*pastRun
		for range randtest.Count(8, 16) {
			m.run(t, s)
			run := &pastRun{from: c.now(), snapshot: s.readSnapshot()}
			c.jump(35*time.Minute + time.Duration(r.Int64N(int64(8*time.Hour))))
			run.until = c.now()
			past = append(past, run)
			m.move(r)
			m.moveSingles(r)
		}
		m.comparePast(t, s, r, past, randtest.Count(1_000, 10_000))
	})
}

// moveSingles leaves every sixth name on one market, where its price often moves far. Such a price
// is held until a later response has a different price.
func (m *markets) moveSingles(r *rand.Rand) {
	for i := 0; i < len(m.prices); i += 6 {
		quotes := m.prices[i]
		one := slices.Max(quotes)
		clear(quotes)
		switch n := r.IntN(6); {
		case n == 0 && one < 100_000_00:
			one *= 3
		case n == 1:
			one = one/3 + 1
		}
		quotes[i%len(quotes)] = one
	}
}

// pastRun is the time between two runs, with a snapshot of the prices in this time.
type pastRun struct {
	from, until time.Time
	snapshot    *snapshot
}

// comparePast compares prices at random moments with the snapshots, and recomputes them.
func (m *markets) comparePast(t *testing.T, s *server, r *rand.Rand, past []*pastRun, moments int) {
	t.Helper()
	began := time.Now()
	seen, wrong := map[string]int{}, 0
	for range moments {
		run, name := past[r.IntN(len(past))], m.names[r.IntN(len(m.names))]
		at := run.from.Add(time.Duration(r.Int64N(int64(run.until.Sub(run.from)))))
		var got struct {
			explained
			published
		}
		path := "/api/prices/items/" + url.PathEscape(name) + "/at?explain=1&time=" + url.QueryEscape(at.UTC().Format(time.RFC3339Nano))
		s.get(path, &got.explained)
		s.get(path, &got.published)
		if want, ok := run.snapshot.prices[got.published.key()]; !ok || got.published != want {
			t.Fatalf("%s: got %+v, want %+v as in the snapshot", path, got.published, want)
		}
		got.explained.Status = got.PriceStatus
		m.checkOne(t, &got.explained, seen, &wrong, fmt.Sprint("at ", at), name)
	}
	t.Logf("%d moments compared in %s: %v", moments, time.Since(began).Round(time.Millisecond), seen)
	for _, what := range []string{"majority", "held", "released", "earlier released", "takenAtOnce", "suspect"} {
		if seen[what] == 0 {
			t.Errorf("got no price with %s, want one: %v", what, seen)
		}
	}
}
