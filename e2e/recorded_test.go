package e2e

import (
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// world contains the recorded files, read by the second implementation.
type world struct {
	dir    string
	files  []string // names of the files: six, weekly, buff and rust
	quotes map[key][]quoteOf
	prices map[key]expectation // result of expectations
}

type key struct {
	app         int
	name, phase string
}

func (w *world) add(k key, market string, price *big.Rat) {
	if price != nil {
		w.quotes[k] = append(w.quotes[k], quoteOf{market, price})
	}
}

// rustMarkets maps the market names of the Rust file to market keys.
var rustMarkets = map[string]string{
	"CS.Deals": "csdeals", "DMarket": "dmarket", "Lis-Skins": "lisskins", "Mannco": "mannco", "Rust.tm": "rusttm",
	"Skinport": "skinport", "Steam": "steam-rust", "Swap.gg": "swapgg", "Waxpeer": "waxpeer", "Avan Market": "avan",
	"ShadowPay": "shadowpay", "CS.Trade": "cstrade", "Tradeit.gg": "tradeit", "RapidSkins": "rapidskins", "SkinSwap": "skinswap",
}

var sixMarkets = []string{"steam", "bitskins", "lootfarm", "csgotm", "csmoney", "skincay"}

// readWorld reads recorded files. The weekly file is read as of the given date.
func readWorld(t *testing.T, dir, date string, files ...string) *world {
	t.Helper()
	w := &world{dir: dir, files: files, quotes: map[key][]quoteOf{}}
	for _, f := range files {
		switch f {
		case "six":
			for _, r := range columns(t, filepath.Join(dir, "csgo_6market_2020-05_usd.csv.gz")) {
				for _, m := range sixMarkets {
					w.add(key{730, r["market_hash_name"], ""}, m, amount(t, r[m], 1))
				}
			}
		case "weekly":
			for _, r := range columns(t, filepath.Join(dir, "cs2_steam_weekly_2026_usd_cents.csv.gz")) {
				w.add(key{730, r["market_hash_name"], ""}, "weekly", amount(t, r[date], 100))
			}
		case "buff":
			w.addBuff(t)
		case "rust":
			w.addRust(t)
		}
	}
	return w
}

func (w *world) addBuff(t *testing.T) {
	t.Helper()
	var buff map[string]struct {
		StartingAt struct {
			Price   json.RawMessage
			Doppler map[string]json.RawMessage
		} `json:"starting_at"`
	}
	parseJSON(t, filepath.Join(w.dir, "buff163_csgotrader_format_2021-06-06.json.gz"), &buff)
	for name, item := range buff {
		w.add(key{730, name, ""}, "buff163", amount(t, strings.Trim(string(item.StartingAt.Price), `"`), 1))
		for phase, price := range item.StartingAt.Doppler {
			w.add(key{730, name, phase}, "buff163", amount(t, strings.Trim(string(price), `"`), 1))
		}
	}
}

func (w *world) addRust(t *testing.T) {
	t.Helper()
	var rust struct {
		Items map[string]struct {
			Prices []struct {
				Name  string
				Price json.Number
			}
		}
	}
	parseJSON(t, filepath.Join(w.dir, "rust_15market_sample34_2026-09-29.json"), &rust)
	for name, item := range rust.Items {
		for _, p := range item.Prices {
			market := rustMarkets[p.Name]
			if market == "" {
				t.Fatalf("unknown Rust market %q", p.Name)
			}
			w.add(key{252490, name, ""}, market, amount(t, p.Price.String(), 100))
		}
	}
}

// lists writes a price list configuration for the recorded files.
func (w *world) lists(t *testing.T, path, date string) {
	t.Helper()
	type m = map[string]any
	var six, rust []m
	for _, k := range sixMarkets {
		six = append(six, m{"key": k, "ask": k})
	}
	for value, k := range rustMarkets {
		rust = append(rust, m{"key": k, "value": value})
	}
	file := func(name string) string { return filepath.Join(w.dir, name) }
	all := []m{
		{
			"key": "six", "location": file("csgo_6market_2020-05_usd.csv.gz"), "format": "csv", "appId": 730, "currency": "USD",
			"name": "market_hash_name", "minItems": 1000, "markets": six,
		},
		{
			"key": "weekly", "location": file("cs2_steam_weekly_2026_usd_cents.csv.gz"), "format": "csv", "appId": 730, "currency": "USD",
			"unit": 100, "name": "market_hash_name", "markets": []m{{"key": "weekly", "ask": date}},
		},
		{
			"key": "buff", "location": file("buff163_csgotrader_format_2021-06-06.json.gz"), "format": "jsonObject", "appId": 730, "currency": "USD",
			"markets": []m{{"key": "buff163", "ask": "starting_at.price", "bid": "highest_order.price", "phases": m{"ask": "starting_at.doppler"}}},
		},
		{
			"key": "rust", "location": file("rust_15market_sample34_2026-09-29.json"), "format": "jsonObject", "appId": 252490, "currency": "USD",
			"unit": 100, "root": "items", "each": "prices", "market": "name", "quote": m{"ask": "price", "listings": "listings"}, "markets": rust,
		},
	}
	lists := slices.DeleteFunc(all, func(list m) bool { return !slices.Contains(w.files, list["key"].(string)) })
	b, err := json.Marshal(m{"lists": lists})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// pushWorld gives users every name that a recorded market quotes, including phases.
func pushWorld(s *server, w *world) {
	byApp := map[int][]map[string]any{}
	for k := range w.quotes {
		a := map[string]any{"assetId": fmt.Sprint(len(byApp[k.app])), "marketHashName": k.name}
		if k.phase != "" {
			a["phase"] = k.phase
		}
		byApp[k.app] = append(byApp[k.app], a)
	}
	for app, items := range byApp {
		s.pushRaw("collector", app, items)
	}
}

func (s *server) pushRaw(user string, app int, items any) {
	s.t.Helper()
	body, err := json.Marshal(map[string]any{"appId": app, "contextId": "2", "snapshotAt": time.Now().UTC(), "items": items})
	if err != nil {
		s.t.Fatal(err)
	}
	code, response, err := s.call(http.MethodPost, "/api/inventory/"+url.PathEscape(user)+"/sync", strings.NewReader(string(body)))
	if err != nil || code != http.StatusOK {
		s.t.Fatalf("push: got %d %s, %v, want 200", code, response, err)
	}
}

// pushRecordedInventory pushes the recorded inventory. It returns the name of each asset.
func pushRecordedInventory(t *testing.T, s *server, dir string) map[string]string {
	t.Helper()
	var rec struct {
		Assets       []struct{ AssetID, ClassID, InstanceID, Amount string }
		Descriptions []struct {
			ClassID        string
			InstanceID     string
			MarketHashName string `json:"market_hash_name"`
			Marketable     int
			Tradable       int
		}
	}
	parseJSON(t, filepath.Join(dir, "steam_inventory_730_2024-07_sanitised.json.gz"), &rec)
	names := map[string]string{}
	owned := map[string]string{}
	for _, d := range rec.Descriptions {
		names[d.ClassID+"_"+d.InstanceID] = d.MarketHashName
	}
	var items []map[string]any
	distinct := map[string]bool{}
	for _, a := range rec.Assets {
		name := names[a.ClassID+"_"+a.InstanceID]
		owned[a.AssetID] = name
		distinct[name] = true
		items = append(items, map[string]any{
			"assetId": a.AssetID, "classId": a.ClassID, "instanceId": a.InstanceID, "marketHashName": name,
		})
	}
	if len(owned) != 810 || len(distinct) != 566 {
		t.Fatalf("the recording: got %d assets of %d names, want 810 of 566", len(owned), len(distinct))
	}
	s.pushRaw("recorded", 730, items)
	return owned
}
