package e2e

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"assay/internal/randtest"
)

// TestExplanation_RecomputesExactly prices real names on five markets with generated levels,
// noise, absurd quotes and gaps. Then some quotes move far. It recomputes every price from
// only the data in the API.
func TestExplanation_RecomputesExactly(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, on engine) {
		t.Parallel()
		r := randtest.New(t)
		m := newMarkets(t, r, randtest.Count(1_200, 10_000))
		s := on.newServer(t, "MARKET_PRICE_PROVIDERS=pricelist", "PRICELIST_CONFIG="+m.config(t), "MARKET_PRICE_SCOPE=all")
		s.start()
		m.push(s)
		m.run(t, s)
		m.recomputed(t, s, "first run")
		between := time.Now()
		m.move(r)
		m.run(t, s)
		seen := m.recomputed(t, s, "second run")
		m.recomputedAt(t, s, r, between, "first run, afterwards")
		m.recomputedAt(t, s, r, time.Now(), "second run, from the history")
		for _, what := range []string{"majority", "held", "takenAtOnce", "outlier", "suspect", "disputed", "lastPrice", "ok", "thin"} {
			if seen[what] == 0 {
				t.Errorf("got no item with %s, want one: %v", what, seen)
			}
		}
	})
}

// markets are files with quotes of some names on several markets.
type markets struct {
	dir    string
	names  []string
	keys   []string
	prices [][]int64 // by name and market, in cents; 0: not offered
}

func newMarkets(t *testing.T, r *rand.Rand, names int) *markets {
	t.Helper()
	m := &markets{dir: t.TempDir(), keys: []string{"aurum", "brook", "cobalt", "dune", "ember"}}
	level := []float64{1, 0.8, 1.3, 0.9, 1.1}
	for _, row := range columns(t, filepath.Join(dataDir(t), "cs2_steam_weekly_2026_usd_cents.csv.gz")) {
		cents, err := strconv.ParseInt(row["2026-06-15"], 10, 64)
		if err != nil || cents < 5 {
			continue
		}
		base := float64(cents)
		quotes := make([]int64, len(m.keys))
		for k := range quotes {
			quotes[k] = max(1, int64(math.Round(base*level[k]*math.Exp(0.06*r.NormFloat64()))))
			switch n := r.IntN(100); {
			case n < 12:
				quotes[k] = 0
			case n < 15:
				quotes[k] *= 3 + r.Int64N(400)
			}
		}
		m.names, m.prices = append(m.names, row["market_hash_name"]), append(m.prices, quotes)
		if len(m.names) == names {
			break
		}
	}
	return m
}

// config writes the files and their configuration. It returns the path of the configuration.
func (m *markets) config(t *testing.T) string {
	t.Helper()
	m.write(t)
	var lists []map[string]any
	for _, k := range m.keys {
		lists = append(lists, map[string]any{
			"key": k, "location": filepath.Join(m.dir, k+".csv"), "format": "csv", "appId": 730, "currency": "USD", "unit": 100,
			"name": "name", "markets": []map[string]any{{"key": k, "ask": "price"}},
		})
	}
	b, err := json.Marshal(map[string]any{"lists": lists})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(m.dir, "lists.json")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (m *markets) write(t *testing.T) {
	t.Helper()
	for k, key := range m.keys {
		f, err := os.Create(filepath.Join(m.dir, key+".csv"))
		if err != nil {
			t.Fatal(err)
		}
		w := csv.NewWriter(f)
		_ = w.Write([]string{"name", "price"})
		for i, name := range m.names {
			if p := m.prices[i][k]; p > 0 {
				_ = w.Write([]string{name, strconv.FormatInt(p, 10)})
			}
		}
		w.Flush()
		if err := errors.Join(w.Error(), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// move changes all quotes slightly. For some names it changes one or all quotes by a large
// factor.
func (m *markets) move(r *rand.Rand) {
	for i := range m.prices {
		far, alone := 1.0, -1
		switch n := r.IntN(100); {
		case n < 2:
			far = 2.5 + 3*r.Float64()
		case n < 4:
			far = 0.1 + 0.3*r.Float64()
		case n < 7:
			far, alone = 6, r.IntN(len(m.keys))
		}
		for k, p := range m.prices[i] {
			f := math.Exp(0.02 * r.NormFloat64())
			if alone < 0 || alone == k {
				f *= far
			}
			if p > 0 {
				m.prices[i][k] = max(1, int64(math.Round(float64(p)*f)))
			}
			if alone >= 0 && alone != k && r.IntN(2) == 0 {
				m.prices[i][k] = 0
			}
		}
	}
}

func (m *markets) push(s *server) {
	var items []map[string]any
	for i, name := range m.names {
		items = append(items, map[string]any{"assetId": strconv.Itoa(i), "marketHashName": name})
	}
	s.pushRaw("collector", 730, items)
}

func (m *markets) run(t *testing.T, s *server) {
	t.Helper()
	m.write(t)
	if code, response, err := s.call(http.MethodPost, "/api/market-prices/refresh?force=1", nil); err != nil || code != http.StatusAccepted {
		t.Fatalf("refresh: got %d %s, %v, want 202", code, response, err)
	}
	if end := s.awaitEnd(); end.Status.State != "finished" || end.FailedItems != 0 {
		t.Fatalf("run: got %+v, want it finished without failed items", end)
	}
}

// recomputed recomputes every price. It counts the cases that occurred.
func (m *markets) recomputed(t *testing.T, s *server, run string) map[string]int {
	t.Helper()
	seen := map[string]int{}
	wrong := 0
	for _, name := range m.names {
		var e explained
		s.get("/api/prices/items/"+url.PathEscape(name)+"?appId=730", &e)
		m.checkOne(t, &e, seen, &wrong, run, name)
	}
	t.Logf("%s: %d prices compared: %v", run, len(m.names), seen)
	return seen
}

func (m *markets) checkOne(t *testing.T, e *explained, seen map[string]int, wrong *int, run, name string) {
	t.Helper()
	if err := e.check(seen); err != nil {
		if *wrong++; *wrong > 5 {
			t.Fatal("stopped after 5 wrong explanations")
		}
		text, _ := json.MarshalIndent(e, "", " ")
		t.Errorf("%s: wrong explanation of %q: %v\n%s", run, name, err, text)
	}
}

// recomputedAt recomputes prices that were in force at a time, from only the history.
func (m *markets) recomputedAt(t *testing.T, s *server, r *rand.Rand, at time.Time, run string) {
	t.Helper()
	seen, wrong := map[string]int{}, 0
	count := min(len(m.names), randtest.Count(300, 5_000))
	for _, k := range r.Perm(len(m.names))[:count] {
		var e struct {
			explained
			PriceStatus string
		}
		s.get("/api/prices/items/"+url.PathEscape(m.names[k])+"/at?explain=1&time="+url.QueryEscape(at.UTC().Format(time.RFC3339Nano)), &e)
		e.Status = e.PriceStatus
		m.checkOne(t, &e.explained, seen, &wrong, run, m.names[k])
	}
	t.Logf("%s: %d prices compared: %v", run, count, seen)
}
