package pricelist

import (
	"reflect"
	"testing"
	"time"

	"assay/internal/provider"
)

// presetSamples has, for each preset, a response in the publisher's documented format and
// one of its quotes. The values are invented.
var presetSamples = map[string]struct {
	body string
	want provider.Quote
}{
	"lis-skins": {
		`[{"name":"AK-47 | Redline (Field-Tested)","price":27.85,"count":12,"url":"https://example.invalid/"}]`,
		quoteOf("lisskins", "", 27_850_000, 0, 0, 12),
	},
	"bitskins": {
		`{"list":[{"skin_id":1,"name":"AK-47 | Redline Doppler Ruby (Field-Tested)","price_min":26350,"price_avg":27000,"quantity":3}]}`,
		named("AK-47 | Redline Doppler (Field-Tested)", quoteOf("bitskins", "Ruby", 26_350_000, 0, 0, 3)),
	},
	"shadowpay": {
		`{"status":"success","data":[{"steam_market_hash_name":"AK-47 | Redline (Field-Tested)","price":"27.5","volume":4}]}`,
		quoteOf("shadowpay", "", 27_500_000, 0, 0, 4),
	},
	"steamapis": {
		`{"appID":730,"data":[{"nameID":"1","market_hash_name":"AK-47 | Redline (Field-Tested)","prices":{"latest":30,"safe":28.25,
		"sold":{"last_24h":1,"last_30d":604}},"updated_at":1763690112000}]}`,
		sold(604, timed(quoteOf("steam", "", 0, 0, 28_250_000, -1))),
	},
	"skinstrack": {
		`[{"market_hash_name":"AK-47 | Redline (Field-Tested)","slug":"ak","prices":[
		{"price":26.01,"count":1450,"volume":3,"meta":{"buy_order":25.5},"provider":"buff","updated_at":"2025-11-21T01:55:12Z"},
		{"price":26.5,"count":10,"provider":"elsewhere","updated_at":null}]}]`,
		timed(quoteOf("buff163", "", 26_010_000, 25_500_000, 0, 1450)),
	},
	"bymykel": {
		`{"metadata":{"updated_at":"2025-11-21T01:55:12.000Z","currency":"USD","item_count":1},"prices":{"AK-47 | Redline (Field-Tested)":2785}}`,
		timed(quoteOf("steam", "", 27_850_000, 0, 0, -1)),
	},
	"csgotrader-steam":      {`{"AK-47 | Redline (Field-Tested)":{"last_24h":0,"last_7d":27.5,"last_30d":30,"last_90d":31}}`, quoteOf("steam", "", 0, 0, 27_500_000, -1)},
	"csgotrader-skinport":   {`{"AK-47 | Redline (Field-Tested)":{"suggested_price":31.4,"starting_at":27.5}}`, quoteOf("skinport", "", 27_500_000, 0, 0, -1)},
	"csgotrader-bitskins":   {`{"AK-47 | Redline (Field-Tested)":{"price":"27.5","instant_sale_price":"20.5"}}`, quoteOf("bitskins", "", 27_500_000, 20_500_000, 0, -1)},
	"csgotrader-lootfarm":   {`{"AK-47 | Redline (Field-Tested)":27.5,"x":null}`, quoteOf("lootfarm", "", 27_500_000, 0, 0, -1)},
	"csgotrader-csgotm":     {`{"AK-47 | Redline (Field-Tested)":"27.5","x":"null"}`, quoteOf("marketcsgo", "", 27_500_000, 0, 0, -1)},
	"csgotrader-csgoempire": {`{"AK-47 | Redline (Field-Tested)":27.5}`, quoteOf("csgoempire", "", 27_500_000, 0, 0, -1)},
	"csgotrader-swapgg":     {`{"AK-47 | Redline (Field-Tested)":27.5}`, quoteOf("swapgg", "", 27_500_000, 0, 0, -1)},
	"csgotrader-youpin":     {`{"AK-47 | Redline (Field-Tested)":27.5}`, quoteOf("youpin", "", 27_500_000, 0, 0, -1)},
	"csgotrader-csmoney":    {`{"AK-47 | Redline (Field-Tested)":{"price":1,"doppler":{"Phase 2":27.5}}}`, quoteOf("csmoney", "Phase 2", 27_500_000, 0, 0, -1)},
	"csgotrader-cstrade":    {`{"AK-47 | Redline (Field-Tested)":{"price":27.5}}`, quoteOf("cstrade", "", 27_500_000, 0, 0, -1)},
	"csgotrader-csfloat":    {`{"AK-47 | Redline (Field-Tested)":{"price":27.5}}`, quoteOf("csfloat", "", 27_500_000, 0, 0, -1)},
	"csgotrader-lisskins":   {`{"AK-47 | Redline (Field-Tested)":{"price":27.5}}`, quoteOf("lisskins", "", 27_500_000, 0, 0, -1)},
	"csgotrader-csgotrader": {`{"AK-47 | Redline (Field-Tested)":{"price":27.5,"doppler":{"Ruby":30}}}`, quoteOf("csgotrader", "Ruby", 0, 0, 30_000_000, -1)},
	"csgotrader-buff163": {
		`{"AK-47 | Redline (Field-Tested)":{"starting_at":{"price":27.5,"doppler":{"Ruby":30,"Emerald":"null"}},"highest_order":{"price":25,"doppler":{"Ruby":29.5}}}}`,
		quoteOf("buff163", "Ruby", 30_000_000, 29_500_000, 0, -1),
	},
}

func quoteOf(market, phase string, ask, bid, sale, listings int64) provider.Quote {
	return provider.Quote{
		Market: market, Name: "AK-47 | Redline (Field-Tested)", Phase: phase, Currency: "USD",
		Ask: microOf(ask), Bid: microOf(bid), Sale: microOf(sale), Listings: listings, Sales: provider.Unknown,
	}
}

func named(name string, q provider.Quote) provider.Quote { q.Name = name; return q }

func sold(n int64, q provider.Quote) provider.Quote {
	q.Sales, q.SalesWindow = n, 720*time.Hour
	return q
}

func timed(q provider.Quote) provider.Quote {
	q.MarketTime = time.Date(2025, 11, 21, 1, 55, 12, 0, time.UTC)
	return q
}

func TestPresets_ReadTheirPublishersFormat(t *testing.T) {
	if len(presetSamples) != len(presets()) {
		t.Errorf("got %d samples, want one for each of %d presets", len(presetSamples), len(presets()))
	}
	for _, name := range PresetNames() {
		t.Run(name, func(t *testing.T) {
			sample, ok := presetSamples[name]
			if !ok {
				t.Fatal("got no sample of the preset, want one")
			}
			l := compileOne(t, `{"key":"p","preset":"`+name+`","minItems":1}`)
			if l.location.url == "" {
				t.Error("got no URL of the preset, want one")
			}
			got := mustRead(t, l, sample.body)
			if len(got.rejects) != 0 {
				t.Errorf("got rejects %+v, want none", got.rejects)
			}
			if q := got.find(t, sample.want.Market, sample.want.Name, sample.want.Phase); !reflect.DeepEqual(q, sample.want) {
				t.Errorf("got quote %+v, want %+v", q, sample.want)
			}
		})
	}
}
