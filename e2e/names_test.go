package e2e

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// trapNames are names that trimming, case folding, normalization, unescaping or path cleaning
// would change.
var trapNames = []string{
	"AK-47 | Redline (Field-Tested)", "★ Karambit", "★ StatTrak™ Karambit | Doppler (Factory New)",
	"Sticker | FURIA | Rio 2022", "Sticker | furia | Rio 2022", " leading", "trailing ", "double  space", "tab\there", "line\nbreak",
	"#CSGO_crate_x", "'quoted'", `"double"`, "a,b;c", "50% & more + ? @ $ * ~ <b>", "&lt;literal&gt;", "%2F", "%252F", "a/b", "a//b", "..", ".", "../..",
	"壱", "弐", "ﬁ", "fi", "é", "e\u0301", "龍王 ♥", `back\slash`, "null", "0", "{}", "日本", strings.Repeat("x", 512),
}

// TestNames_KeepEveryByte prices every trap name, and all recorded names of Dota 2 and Team
// Fortress 2. It then finds each name by its exact bytes.
func TestNames_KeepEveryByte(t *testing.T) {
	t.Parallel()
	onBoth(t, testNames)
}

func testNames(t *testing.T, on engine) {
	t.Parallel()
	games := map[int][]string{730: trapNames}
	dir := dataDir(t)
	var tf2 []string
	parseJSON(t, filepath.Join(dir, "tf2_names_schema.json.gz"), &tf2)
	var dota map[string]json.RawMessage
	parseJSON(t, filepath.Join(dir, "dota2_steam_prices_2024-11-09.json.gz"), &dota)
	games[440] = tf2
	for name := range dota {
		games[570] = append(games[570], name)
	}
	slices.Sort(games[570])

	config := nameLists(t, games)
	s := on.newServer(t, "MARKET_PRICE_PROVIDERS=pricelist", "PRICELIST_CONFIG="+config)
	s.start()
	for app, names := range games {
		var items []asset
		for i, n := range names {
			items = append(items, asset{AssetID: fmt.Sprint(i), MarketHashName: n})
		}
		s.push("collector", app, items)
	}
	s.awaitPriced()

	for app, names := range games {
		want := map[string]string{}
		for i, n := range names {
			want[n] = price(i)
		}
		got := map[string]string{}
		for _, i := range all[item](s, fmt.Sprintf("/api/prices/items?appId=%d", app)) {
			got[i.MarketHashName] = i.CurrentPrice.String()
		}
		if len(got) != len(want) {
			t.Errorf("game %d: got %d names, want %d", app, len(got), len(want))
		}
		for n, p := range want {
			if got[n] != p {
				t.Errorf("game %d: %q: got price %q, want %s", app, n, got[n], p)
			}
		}
		for _, r := range all[row](s, fmt.Sprintf("/api/inventory/collector?appId=%d", app)) {
			if r.EstimatedValue == nil || r.EstimatedValue.String() != want[r.MarketHashName] {
				t.Errorf("game %d: row %q: got value %v, want %s", app, r.MarketHashName, r.EstimatedValue, want[r.MarketHashName])
			}
		}
	}
	for i, n := range trapNames {
		paths := []string{"/api/prices/items/x?name=" + url.QueryEscape(n)}
		if n != "." && n != ".." { // clients remove these from paths
			paths = append(paths, "/api/prices/items/"+url.PathEscape(n))
		}
		for _, path := range paths {
			var d item
			s.get(path, &d)
			if d.MarketHashName != n || d.CurrentPrice.String() != price(i) {
				t.Errorf("%s: got %q at %s, want %q at %s", path, d.MarketHashName, d.CurrentPrice, n, price(i))
			}
		}
	}
}

// price returns the price of the i-th name, in whole cents.
func price(i int) string {
	s := fmt.Sprintf("%d.%02d", (i+1)/100, (i+1)%100)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// nameLists writes a price list for each game, as CSV, JSON object or NDJSON. It returns the
// configuration.
func nameLists(t *testing.T, games map[int][]string) string {
	t.Helper()
	dir := t.TempDir()
	var lists []map[string]any
	for app, names := range games {
		l := map[string]any{
			"key": fmt.Sprint(app), "appId": app, "currency": "USD", "unit": 100,
			"markets": []map[string]any{{"key": fmt.Sprintf("m%d", app), "ask": "cents"}},
		}
		var b strings.Builder
		switch app {
		case 730:
			l["format"], l["name"], l["location"] = "csv", "name", "cs2.csv"
			w := csv.NewWriter(&b)
			_ = w.Write([]string{"name", "cents"})
			for i, n := range names {
				_ = w.Write([]string{n, fmt.Sprint(i + 1)})
			}
			w.Flush()
		case 440:
			l["format"], l["location"] = "jsonObject", "tf2.json"
			doc := map[string]any{}
			for i, n := range names {
				doc[n] = map[string]int{"cents": i + 1}
			}
			raw, err := json.Marshal(doc)
			if err != nil {
				t.Fatal(err)
			}
			b.Write(raw)
		default:
			l["format"], l["name"], l["location"] = "ndjson", "name", "dota.ndjson"
			enc := json.NewEncoder(&b)
			for i, n := range names {
				_ = enc.Encode(map[string]any{"name": n, "cents": i + 1})
			}
		}
		if err := os.WriteFile(filepath.Join(dir, l["location"].(string)), []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		lists = append(lists, l)
	}
	raw, err := json.Marshal(map[string]any{"lists": lists})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "lists.json")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
