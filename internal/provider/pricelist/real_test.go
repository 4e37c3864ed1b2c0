package pricelist

import (
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"os"
	"strings"
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/money"
	"assay/internal/provider"
)

// These tests read real lists. They compare the quotes with quotes that the tests compute
// from the same files with the standard library and exact rational numbers.

const sixMarkets = `{"key":"six","location":"@","format":"csv","appId":730,"currency":"USD","name":"market_hash_name",
	"minItems":1000,"markets":[
	{"key":"steam","ask":"steam"},{"key":"bitskins","ask":"bitskins"},{"key":"lootfarm","ask":"lootfarm"},
	{"key":"csgotm","ask":"csgotm"},{"key":"csmoney","ask":"csmoney"},{"key":"skincay","ask":"skincay"}]}`

const steamWeekly = `{"key":"weekly","location":"@","format":"csv","compression":"gzip","appId":730,"currency":"USD",
	"unit":100,"name":"market_hash_name","markets":[{"key":"steam","ask":"2026-08-08"}]}`

const steamSales = `{"key":"sales","location":"@","format":"csv","appId":730,"currency":"USD","unit":100,
	"name":"market_hash_name","markets":[{"key":"steam","sale":"median_30d_cents","sales":"sold_30d","salesWindow":"720h",
	"time":{"field":"last_sale_hour","format":"2006-01-02T15:04Z07:00"}}]}`

const buffDoppler = `{"key":"buff","preset":"csgotrader-buff163","location":"@","time":{"modified":true}}`

const dotaSteam = `{"key":"dota","location":"@","format":"jsonObject","appId":570,"currency":"USD",
	"markets":[{"key":"steam","sale":["steam.last_24h","steam.last_7d","steam.last_30d","steam.last_90d"]}]}`

const rustMarkets = `{"key":"rust","location":"@","format":"jsonObject","appId":252490,"currency":"USD","unit":100,
	"root":"items","each":"prices","market":"name","time":{"field":"sources.scmm.fetchedAt","format":"rfc3339"},
	"quote":{"ask":"price","listings":"listings"},"markets":[
	{"key":"csdeals","value":"CS.Deals"},{"key":"dmarket","value":"DMarket"},{"key":"lisskins","value":"Lis-Skins"},
	{"key":"mannco","value":"Mannco"},{"key":"rusttm","value":"Rust.tm"},{"key":"skinport","value":"Skinport"},
	{"key":"steam","value":"Steam"},{"key":"swapgg","value":"Swap.gg"},{"key":"waxpeer","value":"Waxpeer"},
	{"key":"avan","value":"Avan Market"},{"key":"shadowpay","value":"ShadowPay"},{"key":"cstrade","value":"CS.Trade"},
	{"key":"nowhere","value":"No Such Market"}]}`

// open returns the decompressed content of a file.
func open(t testing.TB, file string) []byte {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(file, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// micro converts an amount exactly and rounds half to even. It returns 0 for "" and null.
func micro(t testing.TB, text string, unit int64) money.Micro {
	t.Helper()
	if text == "" || text == "null" || text == `"null"` {
		return 0
	}
	v, ok := new(big.Rat).SetString(strings.Trim(text, `"`))
	if !ok {
		t.Fatalf("invalid number %q", text)
	}
	v.Mul(v, big.NewRat(money.Scale, unit))
	q, rest := new(big.Int).QuoRem(v.Num(), v.Denom(), new(big.Int))
	switch rest.Lsh(rest, 1).Cmp(v.Denom()) {
	case 1:
		q.Add(q, big.NewInt(1))
	case 0:
		q.Add(q, new(big.Int).And(q, big.NewInt(1)))
	}
	return money.Micro(q.Int64())
}

type quoteKey struct{ market, name, phase string }

// compare checks that the quotes are exactly the wanted ones and that there are no rejects.
func compare(t *testing.T, got *collector, want map[quoteKey]provider.Quote) {
	t.Helper()
	if len(got.rejects) > 0 {
		t.Errorf("got %d rejects, first: %+v, want 0", len(got.rejects), got.rejects[0])
	}
	if len(got.quotes) != len(want) {
		t.Errorf("got %d quotes, want %d", len(got.quotes), len(want))
	}
	wrong := 0
	for _, q := range got.quotes {
		w, ok := want[quoteKey{q.Market, q.Name, q.Phase}]
		w.Market, w.Name, w.Phase = q.Market, q.Name, q.Phase
		if (!ok || w != q) && wrong < 5 {
			wrong++
			t.Errorf("got quote %+v, want %+v (expected item: %v)", q, w, ok)
		}
		delete(want, quoteKey{q.Market, q.Name, q.Phase})
	}
	for key := range want {
		t.Errorf("got no quote of %d rows, want one of each, such as %+v", len(want), key)
		break
	}
}

// plain returns a quote with prices and unknown counts.
func plain(ask, bid, sale money.Micro) provider.Quote {
	return provider.Quote{
		Currency: "USD", Ask: ask, Bid: bid, Sale: sale,
		Listings: provider.Unknown, Sales: provider.Unknown,
	}
}

func table(t testing.TB, file string) (header map[string]int, records [][]string) {
	t.Helper()
	all, err := csv.NewReader(strings.NewReader(string(open(t, file)))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	header = map[string]int{}
	for i, name := range all[0] {
		header[name] = i
	}
	return header, all[1:]
}

func TestReal_SixMarketColumns(t *testing.T) {
	file := dataFile(t, "csgo_6market_2020-05_usd.csv.gz")
	got := &collector{}
	result, meter, err := fetchFile(t, sixMarkets, file, got)
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Silent) != 0 || meter.Requests() != 0 || meter.Bytes() == 0 {
		t.Errorf("got silent markets %v, %d requests, %d bytes, want none, 0 and more than 0", result.Silent, meter.Requests(), meter.Bytes())
	}
	header, records := table(t, file)
	want := map[quoteKey]provider.Quote{}
	notOffered := 0
	for _, record := range records {
		for _, market := range []string{"steam", "bitskins", "lootfarm", "csgotm", "csmoney", "skincay"} {
			ask := micro(t, record[header[market]], 1)
			if ask == 0 {
				notOffered++
			}
			want[quoteKey{market, record[0], ""}] = plain(ask, 0, 0)
		}
	}
	if len(want) != 6000 || notOffered == 0 {
		t.Fatalf("the file has %d quotes, %d without a price, want 6000 and more than 0", len(want), notOffered)
	}
	compare(t, got, want)
}

func TestReal_SteamWeeklyCents(t *testing.T) {
	file := dataFile(t, "cs2_steam_weekly_2026_usd_cents.csv.gz")
	got := &collector{}
	if _, _, err := fetchFile(t, steamWeekly, file, got); err != nil {
		t.Fatal(err)
	}
	header, records := table(t, file)
	want := map[quoteKey]provider.Quote{}
	for _, record := range records {
		want[quoteKey{"steam", record[0], ""}] = plain(micro(t, record[header["2026-08-08"]], 100), 0, 0)
	}
	if len(want) != 36346 {
		t.Fatalf("the file has %d names, want 36346", len(want))
	}
	compare(t, got, want)
}

func TestReal_SalesWithWindow(t *testing.T) {
	file := dataFile(t, "cs2_steam_sales_stats_2025-11-01_usd.csv.gz")
	got := &collector{}
	if _, _, err := fetchFile(t, steamSales, file, got); err != nil {
		t.Fatal(err)
	}
	header, records := table(t, file)
	want := map[quoteKey]provider.Quote{}
	for _, record := range records {
		q := plain(0, 0, micro(t, record[header["median_30d_cents"]], 100))
		if _, err := fmt.Sscan(record[header["sold_30d"]], &q.Sales); err != nil {
			t.Fatal(err)
		}
		q.SalesWindow = 720 * time.Hour
		stamp, err := time.Parse("2006-01-02T15:04Z", record[header["last_sale_hour"]])
		if err != nil {
			t.Fatal(err)
		}
		q.MarketTime = stamp
		want[quoteKey{"steam", record[0], ""}] = q
	}
	if len(want) != 19440 {
		t.Fatalf("the file has %d names, want 19440", len(want))
	}
	compare(t, got, want)
}

func TestReal_BuffWithDopplerPhases(t *testing.T) {
	file := dataFile(t, "buff163_csgotrader_format_2021-06-06.json.gz")
	got := &collector{}
	result, _, err := fetchFile(t, buffDoppler, file, got)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	type side struct {
		Price   json.RawMessage            `json:"price"`
		Doppler map[string]json.RawMessage `json:"doppler"`
	}
	var items map[string]struct {
		Ask side `json:"starting_at"`
		Bid side `json:"highest_order"`
	}
	if err := json.Unmarshal(open(t, file), &items); err != nil {
		t.Fatal(err)
	}
	modified := info.ModTime().UTC()
	if !result.ProviderTime.Equal(modified) {
		t.Errorf("got provider time %v, want the modification time %v", result.ProviderTime, modified)
	}
	want := map[quoteKey]provider.Quote{}
	phased := 0
	for name, item := range items {
		q := plain(micro(t, string(item.Ask.Price), 1), micro(t, string(item.Bid.Price), 1), 0)
		q.MarketTime = modified
		want[quoteKey{"buff163", name, ""}] = q
		for _, phase := range catalog.Phases {
			ask, ok := item.Ask.Doppler[phase]
			if !ok {
				continue
			}
			phased++
			q := plain(micro(t, string(ask), 1), micro(t, string(item.Bid.Doppler[phase]), 1), 0)
			q.MarketTime = modified
			want[quoteKey{"buff163", name, phase}] = q
		}
	}
	if len(items) != 17230 || phased == 0 {
		t.Fatalf("the file has %d names and %d phases, want 17230 and more than 0", len(items), phased)
	}
	compare(t, got, want)
}

func TestReal_DotaSaleFallsBackToLongerWindows(t *testing.T) {
	file := dataFile(t, "dota2_steam_prices_2024-11-09.json.gz")
	got := &collector{}
	if _, _, err := fetchFile(t, dotaSteam, file, got); err != nil {
		t.Fatal(err)
	}
	var items map[string]struct {
		Steam map[string]json.RawMessage `json:"steam"`
	}
	if err := json.Unmarshal(open(t, file), &items); err != nil {
		t.Fatal(err)
	}
	want := map[quoteKey]provider.Quote{}
	for name, item := range items {
		var sale money.Micro
		for _, window := range []string{"last_24h", "last_7d", "last_30d", "last_90d"} {
			if sale = micro(t, string(item.Steam[window]), 1); sale != 0 {
				break
			}
		}
		want[quoteKey{"steam", name, ""}] = plain(0, 0, sale)
	}
	if len(items) != 8957 {
		t.Fatalf("the file has %d names, want 8957", len(items))
	}
	compare(t, got, want)
}

func TestReal_RustMarketsNestedInItems(t *testing.T) {
	file := dataFile(t, "rust_15market_sample34_2026-09-29.json")
	got := &collector{}
	result, _, err := fetchFile(t, rustMarkets, file, got)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Items map[string]struct {
			Prices []struct {
				Name            string
				Price, Listings json.Number
			}
		}
	}
	if err := json.Unmarshal(open(t, file), &doc); err != nil {
		t.Fatal(err)
	}
	keys := map[string]string{}
	for i := range compileOne(t, rustMarkets).quotes {
		q := &compileOne(t, rustMarkets).quotes[i]
		keys[q.value] = q.market.Key
	}
	stamp := time.Date(2026, 9, 29, 18, 51, 33, 0, time.UTC)
	want := map[quoteKey]provider.Quote{}
	for name, item := range doc.Items {
		for _, p := range item.Prices {
			if keys[p.Name] == "" {
				continue // not configured
			}
			q := plain(micro(t, p.Price.String(), 100), 0, 0)
			q.MarketTime = stamp
			if q.Listings, err = p.Listings.Int64(); err != nil {
				t.Fatal(err)
			}
			want[quoteKey{keys[p.Name], name, ""}] = q
		}
	}
	if len(doc.Items) != 34 {
		t.Fatalf("the file has %d items, want 34", len(doc.Items))
	}
	if len(result.Silent) != 1 || result.Silent[0] != "nowhere" || !result.ProviderTime.Equal(stamp) {
		t.Errorf("got silent markets %v and time %v, want [nowhere] and %v", result.Silent, result.ProviderTime, stamp)
	}
	compare(t, got, want)
}
