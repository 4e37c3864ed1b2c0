package view_test

import (
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/exchange"
	"assay/internal/fault"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/randtest"
	"assay/internal/view"
)

// halfEven returns a * b / c, rounded half to even.
func halfEven(a, b, c int64) int64 {
	q, rest := new(big.Int).QuoRem(new(big.Int).Mul(big.NewInt(a), big.NewInt(b)), big.NewInt(c), new(big.Int))
	if d := rest.Lsh(rest, 1).Cmp(big.NewInt(c)); d > 0 || d == 0 && q.Bit(0) == 1 {
		q.Add(q, big.NewInt(1))
	}
	return q.Int64()
}

// TestCurrency_EveryReadConverts reads prices in euros with every read method. The rate of the
// history differs from the current rate.
func TestCurrency_EveryReadConverts(t *testing.T) {
	w := newWorld(t, false)
	r := randtest.New(t)
	today := w.now.Truncate(day)
	euro := func(rate money.Rate, date time.Time) pricing.Rates {
		return pricing.Rates{"EUR": {Value: rate, Date: date}}
	}
	random := func() money.Rate { return money.RateScale/2 + money.Rate(r.Int64N(money.RateScale)) }
	past, now := random(), random()
	inForce := euro(now, today)
	w.read(view.Options{
		Store: w.store, Currency: "USD", Now: func() time.Time { return w.now },
		Rates: exchange.New(exchange.Options{Base: "USD", Fixed: inForce, Store: w.store, Now: func() time.Time { return w.now }}),
	})
	prices := map[string]money.Micro{}
	var names []string
	for i := range 40 {
		names = append(names, fmt.Sprintf("item %02d", i))
		prices[names[i]] = 1 + money.Micro(r.Int64N(1<<(5+r.IntN(35))))
	}
	w.own("u", names...)
	setRates := func(rates pricing.Rates) {
		w.tx(func(tx *db.Tx) (err error) {
			w.rateSet, err = exchange.RateSet(tx, rates)
			return err
		})
	}
	setRates(euro(past, today.Add(-9*day)))
	started := w.now
	w.price(prices)
	w.now = w.now.Add(time.Hour)

	rateThen := money.Rate(halfEven(money.RateScale, money.RateScale, int64(past)))
	rateNow := money.Rate(halfEven(money.RateScale, money.RateScale, int64(now)))
	convert := func(m money.Micro, rate money.Rate) money.Micro {
		return money.Micro(halfEven(int64(m), int64(rate), money.RateScale))
	}
	named := []view.ConversionRate{{Currency: "USD", Rate: rateNow, Date: today, Origin: "fixed"}}
	stored := view.ConversionRate{Currency: "USD", Rate: rateThen, Date: today.Add(-9 * day), Old: true, Origin: "history"}

	items, err := w.Items(w.Context(), view.ItemFilter{AppID: catalog.CS2, Currency: "EUR"}, "", 100)
	w.must(err)
	w.is("rates of the list", items.Rates, named)
	w.is("currency of the list", items.Currency, money.Currency("EUR"))
	var keys []catalog.Key
	for i := range items.Items {
		p := &items.Items[i]
		keys = append(keys, catalog.Key{AppID: p.AppID, Name: p.MarketHashName})
		w.is("listed price of "+p.MarketHashName, p.CurrentPrice, convert(prices[p.MarketHashName], rateNow))
	}
	w.is("number of items", len(keys), len(prices))
	found, err := w.Lookup(w.Context(), keys, 0, "EUR")
	w.must(err)
	w.is("rates of the lookup", found.Rates, named)
	for i := range found.Items {
		w.is("price of a lookup", found.Items[i].CurrentPriceDecimal, money.Decimal(convert(prices[keys[i].Name], rateNow)))
	}
	exported := 0
	w.must(w.Export(w.Context(), 0, 0, "EUR", func(e view.Export) func(*view.PublishedPrice) error {
		w.is("rates of the export", e.Rates, named)
		return func(p *view.PublishedPrice) error {
			exported++
			w.is("exported price", p.CurrentPrice, convert(prices[p.MarketHashName], rateNow))
			return nil
		}
	}))
	w.is("number of exported prices", exported, len(prices))
	changes, err := w.Changes(w.Context(), 0, 100, 0, 0, "EUR")
	w.must(err)
	w.is("rates of the changes", changes.Rates, named)
	w.is("number of changes", len(changes.Items), len(prices))
	for i := range changes.Items {
		w.is("changed price", changes.Items[i].CurrentPrice, convert(prices[changes.Items[i].MarketHashName], rateNow))
	}
	manifest, err := w.Manifest(w.Context(), 0, "EUR")
	w.must(err)
	w.is("rates of the manifest", manifest.Rates, named)

	key, price := keys[0], prices[keys[0].Name]
	detail, err := w.Item(w.Context(), key, "EUR")
	w.must(err)
	w.is("price of the item", detail.CurrentPrice, convert(price, rateNow))
	w.is("rates of the item", detail.Rates, named)
	figures, err := w.Figures(w.Context(), key, "EUR")
	w.must(err)
	w.is("mean of the figures", figures.Periods[0].Mean, convert(price, rateNow))
	history, err := w.History(w.Context(), key, view.HistoryFilter{Currency: "EUR"}, "", 10)
	w.must(err)
	w.is("price of a point", *history.Points[0].Price, convert(price, rateThen))
	w.is("rate of a point", *history.Points[0].Rate, stored)
	candles, err := w.History(w.Context(), key, view.HistoryFilter{Currency: "EUR", Interval: time.Hour}, "", 10)
	w.must(err)
	w.is("close of a candle", candles.Candles[0].Close, convert(price, rateNow))
	w.is("rates of the candles", candles.Rates, named)
	then, err := w.PriceAt(w.Context(), key, started, true, "EUR")
	w.must(err)
	w.is("price at a time", then.CurrentPrice, convert(price, rateThen))
	w.is("rates of that time", then.Rates, []view.ConversionRate{stored})

	var total int64
	for _, p := range prices {
		total += int64(p)
	}
	w.own("v", names...) // a sync copies the known prices
	inventory, err := w.Inventory(w.Context(), "v", 0, 0, "EUR", "", 100)
	w.must(err)
	w.is("value of the inventory", inventory.TotalValueDecimal, convert(money.Micro(total), rateNow).String())
	w.is("value of a row", *inventory.Items[0].EstimatedValue, convert(prices[inventory.Items[0].MarketHashName], rateNow))

	// Limits are in the currency of the response.
	for range 50 {
		low := 1 + money.Micro(r.Int64N(1<<(3+r.IntN(35))))
		high := low + money.Micro(r.Int64N(1<<(3+r.IntN(35))))
		var want, got []string
		for _, name := range names {
			if p := convert(prices[name], rateNow); low <= p && p <= high {
				want = append(want, name)
			}
		}
		list, err := w.Items(w.Context(), view.ItemFilter{AppID: catalog.CS2, Currency: "EUR", Min: low, Max: high}, "", 100)
		w.must(err)
		for i := range list.Items {
			got = append(got, list.Items[i].MarketHashName)
		}
		w.is(fmt.Sprintf("items from %v to %v", low, high), strings.Join(got, ","), strings.Join(want, ","))
	}
}

func TestCurrency_WithoutRateIsRefused(t *testing.T) {
	w := newQuotesWorld(t, nil, usd(11, 9, 10, 40), usd(11, 9, 10, 40))
	key := catalog.Key{AppID: catalog.CS2, Name: "x"}
	for name, read := range map[string]func() error{
		"item": func() error { _, err := w.Item(t.Context(), key, "CHF"); return err },
		"list": func() error {
			_, err := w.Items(t.Context(), view.ItemFilter{AppID: catalog.CS2, Currency: "CHF"}, "", 1)
			return err
		},
		"lookup":   func() error { _, err := w.Lookup(t.Context(), []catalog.Key{key}, 0, "CHF"); return err },
		"changes":  func() error { _, err := w.Changes(t.Context(), 0, 1, 0, 0, "CHF"); return err },
		"manifest": func() error { _, err := w.Manifest(t.Context(), 0, "CHF"); return err },
		"export":   func() error { return w.Export(t.Context(), 0, 0, "CHF", nil) },
		"history": func() error {
			_, err := w.History(t.Context(), key, view.HistoryFilter{Currency: "CHF"}, "", 1)
			return err
		},
		"at":        func() error { _, err := w.PriceAt(t.Context(), key, w.now, false, "CHF"); return err },
		"figures":   func() error { _, err := w.Figures(t.Context(), key, "CHF"); return err },
		"inventory": func() error { _, err := w.Inventory(t.Context(), "u", 0, 0, "CHF", "", 1); return err },
		"values":    func() error { _, err := w.Values(t.Context(), "u", time.Time{}, time.Time{}, "CHF", "", 1); return err },
	} {
		f := fault.Of(read())
		if f == nil || f.Kind != fault.Unprocessable || f.Code != "no_exchange_rate" || !strings.Contains(f.Detail, "EUR") {
			t.Errorf("%s: got %v, want no_exchange_rate with the known currencies", name, f)
		}
	}
}
