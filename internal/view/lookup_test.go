package view

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"assay/internal/catalog"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/view/prices"
)

func TestLookupJSON_EqualsMarshal(t *testing.T) {
	at := time.Date(2026, 10, 1, 14, 0, 0, 123456000, time.FixedZone("", 2*3600))
	noon := at.Truncate(time.Hour).UTC()
	l := Lookup{Currency: "USD", Items: []LookupItem{
		{ItemPrice: ItemPrice{AppID: 730, MarketHashName: "★ \"Quoted\" \\ / \n\x01 <&> \u2028", Phase: "Ruby", CurrentPrice: 27_275_000, CurrentPriceDecimal: 27_275_000, Status: "ok", PriceUpdatedAt: &at}, PriceStatus: "ok", PriceCheckedAt: &noon},
		{ItemPrice: ItemPrice{AppID: 2147483647, MarketHashName: "x", Status: StatusQueued}, RetryAt: &noon},
		{ItemPrice: ItemPrice{AppID: 1, MarketHashName: "😀 壱", CurrentPrice: 1, Status: "stale", PriceUpdatedAt: &noon}},
		{ItemPrice: ItemPrice{AppID: 1, MarketHashName: "all"}, Figures: &Figures{&Interval{1_500_000, 2_000_000}, new(money.Micro(1_750_000)), new(int64(3))}},
		{ItemPrice: ItemPrice{AppID: 1, MarketHashName: "one"}, Figures: &Figures{UsedMarkets: new(int64(3))}},
	}}
	for _, l := range []Lookup{l, {Items: []LookupItem{}, Currency: "EUR"}} {
		utc := l
		for i := range utc.Items {
			if p := utc.Items[i].PriceUpdatedAt; p != nil {
				utc.Items[i].PriceUpdatedAt = new(p.UTC())
			}
		}
		want, err := jsonv2.Marshal(utc)
		if err != nil {
			t.Fatal(err)
		}
		if got := l.JSON(); !bytes.Equal(got, want) || !json.Valid(got) {
			t.Errorf("JSON of the lookup:\ngot  %s\nwant %s", got, want)
		}
	}
}

func TestLookupItem_ReportsReasonWithoutPrice(t *testing.T) {
	now := time.Date(2026, 10, 1, 12, 0, 0, 0, time.UTC)
	key := catalog.Key{AppID: 730, Name: "x"}
	for _, c := range []struct {
		price prices.Price
		known bool
		want  string
	}{
		{prices.Price{}, false, StatusUnknown},
		{prices.Price{Status: pricing.NoPrice}, true, "noPrice"},
		{prices.Price{Status: pricing.NoPrice, Queued: true}, true, StatusQueued},
		{prices.Price{Status: pricing.NoPrice, Queued: true, DueAt: now.Add(time.Hour), SoonestAt: now.Add(time.Hour)}, true, StatusQueued},
		{prices.Price{Status: pricing.NoPrice, Queued: true, DueAt: now.Add(9 * time.Hour), SoonestAt: now.Add(time.Hour)}, true, StatusQueued},
		{prices.Price{Amount: 5, Status: pricing.Thin, CheckedAt: now.Add(-freshFor)}, true, "thin"},
		{prices.Price{Amount: 5, Status: pricing.Thin, CheckedAt: now.Add(-freshFor - 1)}, true, "stale"},
	} {
		got := lookupItem(key, &c.price, c.known, now)
		if c.price.Amount == 0 && got.PriceStatus != "noPrice" || c.price.Amount > 0 && got.PriceStatus != c.want {
			t.Errorf("%+v: got priceStatus %s, want noPrice or the status of the price, %s", c.price, got.PriceStatus, c.want)
		}
		if got.Status != c.want || got.CurrentPrice != c.price.Amount {
			t.Errorf("%+v: got status %s at %v, want %s", c.price, got.Status, got.CurrentPrice, c.want)
		}
		l := Lookup{Items: []LookupItem{got}}
		want := c.want == StatusUnknown || c.want == "noPrice" || c.price.DueAt.After(c.price.SoonestAt)
		if queue := len(l.ToQueue()) == 1; queue != want {
			t.Errorf("%+v: got ToQueue %t, want %t", c.price, queue, want)
		}
	}
}
