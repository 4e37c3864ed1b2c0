package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assay/internal/config"
	"assay/internal/exchange"
	"assay/internal/fault"
	"assay/internal/money"
)

// loadSettings loads a configuration from a file with the given settings.
func loadSettings(t *testing.T, settings ...string) *config.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "assay.conf")
	if err := os.WriteFile(path, []byte(strings.Join(settings, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(config.Options{File: path, Providers: Providers()})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCheck_RefusesACurrencyWithoutARate(t *testing.T) {
	lists := "PRICELIST_CONFIG=" + writeFile(t, "lists.json", `{"lists": [
		{"key": "tf2", "location": "tf2.csv", "format": "csv", "appId": 440, "currency": "KEY", "name": "name",
		 "markets": [{"key": "keys", "ask": "keys"}, {"key": "metal", "ask": "metal", "currency": "REF"}]},
		{"key": "any", "location": "any.csv", "format": "csv", "appId": 730, "currency": {"field": "currency"}, "name": "name",
		 "markets": [{"key": "any", "ask": "ask"}]}]}`)
	file := "MARKET_PRICE_RATES=file:" + writeFile(t, "rates.txt", "KEY=1.85@2026-11-20\n")
	for _, c := range []struct {
		settings string // separated by spaces
		want     string // part of the error; empty: no error
	}{
		{"MARKET_PRICE_PROVIDERS=waxpeer,steam,sim", ""},
		{"MARKET_PRICE_PROVIDERS=skinport,marketcsgo MARKET_PRICE_CURRENCY=EUR", ""}, // both quote in EUR
		{"MARKET_PRICE_PROVIDERS=waxpeer MARKET_PRICE_CURRENCY=EUR", "no rate for USD, the currency of waxpeer/waxpeer: "},
		{"MARKET_PRICE_PROVIDERS=sim MARKET_PRICE_CURRENCY=EUR", "no rate for USD, the currency of sim/sim-amber"},
		{"MARKET_PRICE_PROVIDERS=csfloat,steam,waxpeer MARKET_PRICE_CURRENCY=EUR", "no rate for USD, the currency of csfloat/csfloat, steam/steam, waxpeer/waxpeer: "},
		{"MARKET_PRICE_PROVIDERS=waxpeer MARKET_PRICE_CURRENCY=EUR", "add ecb, or a fixed rate such as USD="},
		{"MARKET_PRICE_PROVIDERS=waxpeer MARKET_PRICE_CURRENCY=EUR MARKET_PRICE_RATES=ecb", ""},
		{"MARKET_PRICE_PROVIDERS=waxpeer MARKET_PRICE_CURRENCY=EUR MARKET_PRICE_RATES=USD=0.92@2026-11-20", ""},
		{"MARKET_PRICE_PROVIDERS=waxpeer MARKET_PRICE_CURRENCY=RUB MARKET_PRICE_RATES=ecb", "no rate for USD, the currency of waxpeer/waxpeer: add a fixed rate such as USD="}, // the ECB publishes no rate for RUB
		{"MARKET_PRICE_PROVIDERS=pricelist MARKET_PRICE_RATES=ecb " + lists, "no rate for KEY, the currency of pricelist/keys: "},
		{"MARKET_PRICE_PROVIDERS=pricelist " + file + " " + lists, "no rate for REF, the currency of pricelist/metal: "},
		{"MARKET_PRICE_PROVIDERS=pricelist MARKET_PRICE_RATES=ecb,KEY=1.85@2026-11-20,REF=0.028@2026-11-20 " + lists, ""},
		{"MARKET_PRICE_PROVIDERS=pricelist " + file + ",REF=0.028@2026-11-20 " + lists, ""},
	} {
		err := Check(t.Context(), loadSettings(t, strings.Fields(c.settings)...))
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: got error %v, want none", c.settings, err)
			}
			continue
		}
		if f := fault.Of(err); f == nil || f.Kind != fault.Invalid || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got error %v, want one with %q", c.settings, err, c.want)
		}
	}
}

func TestCheck_RefusesAFeeOfAnUnknownMarket(t *testing.T) {
	for fees, want := range map[string]string{
		"steam=1500,waxpeer/waxpeer=600": "", "steam/waxpeer=1": `"steam/waxpeer"`, "skinport=1200": `"skinport"`,
	} {
		err := Check(t.Context(), loadSettings(t, "MARKET_PRICE_PROVIDERS=steam,waxpeer", "MARKET_PRICE_FEES="+fees))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), "MARKET_PRICE_FEES: no configured provider carries the market "+want)) {
			t.Errorf("%s: got error %v, want an error about the market %s, or none if no market is named", fees, err, want)
		}
	}
}

func TestCheck_RefusesFaultyMetadata(t *testing.T) {
	valid := writeFile(t, "items.json", `[{"marketHashName":"x","type":"Rifle"}]`)
	if err := Check(t.Context(), loadSettings(t, "ITEM_METADATA="+valid)); err != nil {
		t.Error(err)
	}
	faulty := writeFile(t, "items.ndjson", `{"marketHashName":"x"}`+"\n"+`{"type":"Rifle"}`)
	for path, want := range map[string]string{faulty: "items.ndjson: line 2: marketHashName: is required", "none.json": "none.json: no such file"} {
		err := Check(t.Context(), loadSettings(t, "ITEM_METADATA="+path))
		if f := fault.Of(err); f == nil || f.Kind != fault.Invalid || !strings.Contains(err.Error(), "ITEM_METADATA: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want one with %q", path, err, want)
		}
	}
}

func TestECBHas_AcceptsCurrenciesOnly(t *testing.T) {
	for text, want := range map[string]bool{"USD": true, "EUR": true, "ZAR": true, "RUB": false, "REF": false, "": false, "D J": false} {
		if got := exchange.ECBHas(money.Currency(text)); got != want {
			t.Errorf("ECBHas(%q) = %v, want %v", text, got, want)
		}
	}
}
