package view_test

import (
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/exchange"
	"assay/internal/fault"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/provider"
	"assay/internal/refresh"
	"assay/internal/view"
	"assay/internal/view/metadata"
)

const day = 24 * time.Hour

// newQuotesWorld returns a world with an item x. The item has one of the given quotes on each of
// the markets a, b, c and so on of the provider sim. The last market is not configured.
func newQuotesWorld(t *testing.T, fees map[string]int64, quotes ...refresh.MarketSnapshot) *world {
	t.Helper()
	w := newWorld(t, false)
	var names []refresh.MarketName
	var markets []provider.Market
	for i := range quotes {
		key := string(rune('a' + i))
		names = append(names, refresh.MarketName{Provider: "sim", Key: key, Title: "Market " + key})
		markets = append(markets, provider.Market{Key: key, Title: "Market " + key})
	}
	markets[0].MaxAge = 3 * day
	var ids map[refresh.MarketName]int64
	w.tx(func(tx *db.Tx) (err error) {
		ids, err = refresh.MarketIDs(tx, names)
		return err
	})
	for i := range quotes {
		quotes[i].MarketID = ids[names[i]]
	}
	w.quotes = func() []refresh.MarketSnapshot { return quotes }
	w.own("u", "x")
	w.price(map[string]money.Micro{"x": 10_000_000})
	rates := pricing.Rates{
		"EUR": {Value: 1_250_000_000_000, Date: w.now.Truncate(day)}, "CNY": {Value: 125_000_000_000, Date: w.now.Truncate(day).Add(-9 * day)},
	}
	w.read(view.Options{
		Store: w.store, Currency: "USD", Now: func() time.Time { return w.now }, MarketFees: fees,
		Rates:     exchange.New(exchange.Options{Base: "USD", Fixed: rates, Store: w.store, Now: func() time.Time { return w.now }}),
		Providers: []provider.Provider{described{provider.Description{Name: "sim", Markets: markets[:len(markets)-1]}}},
	})
	return w
}

// quotesOf returns the quotes of x.
func (w *world) quotesOf(to money.Currency, markets ...string) view.Quotes {
	w.Helper()
	got, err := w.Quotes(w.Context(), []catalog.Key{{AppID: 730, Name: "x"}}, markets, to)
	w.must(err)
	return got
}

func usd(ask, bid money.Micro, listings, sales int64) refresh.MarketSnapshot {
	return refresh.MarketSnapshot{Currency: "USD", Ask: ask * money.Scale, Bid: bid * money.Scale, Listings: listings, Sales: sales, SalesWindow: 10 * day}
}

func TestQuotes_SumTheCountedQuotes(t *testing.T) {
	unknown := usd(12, 0, -1, -1)
	euro := refresh.MarketSnapshot{Currency: "EUR", Ask: 8_000_000, Bid: 7_600_000, Listings: 30, Sales: 20, SalesWindow: 2 * day, Reason: pricing.Outlier}
	w := newQuotesWorld(t, map[string]int64{"b": 500, "sim/b": 1_000, "a": 250}, usd(11, 9, 10, 40), euro, unknown, usd(1, 99, 1, 1))
	got := w.quotesOf("")
	x := got.Items[0]
	w.is("price", x.CurrentPriceDecimal, money.Decimal(10_000_000))
	w.is("best ask", *x.BestAsk, view.Offer{Provider: "sim", Market: "b", Price: 10_000_000, FeeBasisPoints: 1_000, AfterFee: 11_000_000})
	w.is("best bid", *x.BestBid, view.Offer{Provider: "sim", Market: "b", Price: 9_500_000, FeeBasisPoints: 1_000, AfterFee: 8_550_000})
	w.is("spread", *x.Spread, money.Micro(500_000))
	w.is("spread after fees", *x.SpreadAfterFees, money.Micro(2_450_000))
	w.is("listings", *x.Listings, int64(40))
	w.is("sales", *x.Sales, int64(60))
	w.is("sales per day", *x.SalesPerDay, money.Micro(14_000_000))
	w.is("liquidity", *x.Liquidity, money.Micro(350_000))
	w.is("number of quotes", len(x.Quotes), 4)
	w.is("the quote of a market that is not configured is counted", x.Quotes[3].Counted, false)
	w.is("rates", got.Rates, []view.ConversionRate{{Currency: "EUR", Rate: 1_250_000_000_000, Date: w.now.Truncate(day), Origin: "fixed"}})
}

// A quote is not counted if it is too old for its market or no longer an offer.
func TestQuotes_LeaveOutOldAndEndedOffers(t *testing.T) {
	gone, repeated, outdated := usd(1, 1, 1, 1), usd(1, 1, 1, 1), usd(1, 1, 1, 1)
	gone.Reason, repeated.Reason = pricing.NotOffered, pricing.Duplicate
	bidOnly := usd(0, 7, -1, -1)
	bidOnly.Reason = pricing.NotOffered
	outdated.MarketTime = time.Date(2026, 2, 20, 0, 0, 0, 0, time.UTC)
	w := newQuotesWorld(t, nil, usd(5, 4, 2, -1), usd(4, 3, 3, -1), gone, repeated, bidOnly, outdated, usd(1, 1, 1, 1))
	now := w.quotesOf("").Items[0]
	w.is("price of the best ask", now.BestAsk.Price, money.Micro(4_000_000))
	w.is("price of the best bid", now.BestBid.Price, money.Micro(7_000_000))
	w.is("spread", *now.Spread, money.Micro(-3_000_000))
	w.is("listings", *now.Listings, int64(5))
	w.is("liquidity and sales are missing", now.Liquidity == nil && now.Sales == nil && now.SalesPerDay == nil, true)
	w.now = w.now.Add(2 * day)
	later := w.quotesOf("").Items[0]
	w.is("markets of the best ask and bid two days later", later.BestAsk.Market+later.BestBid.Market, "aa")
	w.is("age of the first quote", later.Quotes[0].AgeSeconds, int64(2*day/time.Second))
	w.is("status two days later", later.Status+" "+later.PriceStatus, "stale stale")
	w.now = w.now.Add(2 * day)
	w.is("the best ask is missing without fresh quotes", w.quotesOf("").Items[0].BestAsk == nil, true)
}

func TestQuotes_SelectMarketsAndConvert(t *testing.T) {
	yuan := refresh.MarketSnapshot{Currency: "CNY", Ask: 80_000_000, Listings: -1, Sales: -1}
	yen := refresh.MarketSnapshot{Currency: "JPY", Ask: 1_000_000, Listings: 4, Sales: -1}
	w := newQuotesWorld(t, nil, usd(11, 9, 1, -1), yuan, yen, usd(1, 1, 1, 1))
	got := w.quotesOf("EUR", "a", "sim/b", "c")
	x := got.Items[0]
	w.is("currency", got.Currency, money.Currency("EUR"))
	w.is("price", x.CurrentPrice, money.Micro(8_000_000))
	w.is("ask in dollars", *x.Quotes[0].Ask, money.Micro(8_800_000))
	w.is("ask in yuan", *x.Quotes[1].Ask, money.Micro(8_000_000))
	w.is("the quote without a rate has no amounts", x.Quotes[2].Ask == nil && x.Quotes[2].Price == nil && x.Quotes[2].QuotedIn == "JPY", true)
	w.is("market of the best ask", x.BestAsk.Market, "b")
	w.is("rates", got.Rates, []view.ConversionRate{
		{Currency: "CNY", Rate: 100_000_000_000, Date: w.now.Truncate(day).Add(-9 * day), Old: true, Origin: "fixed"},
		{Currency: "USD", Rate: 800_000_000_000, Date: w.now.Truncate(day), Origin: "fixed"},
	})
	w.is("number of quotes with the filter of one market", len(w.quotesOf("", "a").Items[0].Quotes), 1)

	_, err := w.Quotes(t.Context(), nil, nil, "CHF")
	if f := fault.Of(err); f == nil || f.Kind != fault.Unprocessable || f.Code != "no_exchange_rate" {
		t.Errorf("currency without a rate: got error %v, want no_exchange_rate", err)
	}
	_, err = w.Quotes(t.Context(), nil, []string{"a", "d", "no"}, "")
	if f := fault.Of(err); f == nil || f.Kind != fault.Invalid || len(f.Fields) != 2 || f.Fields[0].Pointer != "/markets/1" {
		t.Errorf("unknown markets: got error %v, want two faults, the first at /markets/1", err)
	}
}

func TestQuotes_KeepTheOrderAndReportUnknownItems(t *testing.T) {
	w := newQuotesWorld(t, nil, usd(11, 9, 1, -1), usd(1, 1, 1, 1))
	w.own("v", "unpriced")
	keys := []catalog.Key{{AppID: 730, Name: "no"}, {AppID: 440, Name: "x"}, {AppID: 730, Name: "x"}, {AppID: 730, Name: "unpriced"}, {AppID: 730, Name: "x"}}
	got, err := w.Quotes(t.Context(), keys, nil, "")
	w.must(err)
	for i, want := range []struct {
		status, priceStatus string
		quotes              int
	}{{"unknown", "noPrice", 0}, {"unknown", "noPrice", 0}, {"ok", "ok", 2}, {"noPrice", "noPrice", 0}, {"ok", "ok", 2}} {
		v := got.Items[i]
		w.is("key of the item", catalog.Key{AppID: v.AppID, Name: v.MarketHashName}, keys[i])
		w.is("status of the item", v.Status, want.status)
		w.is("status of its price", v.PriceStatus, want.priceStatus)
		w.is("number of quotes of the item", len(v.Quotes), want.quotes)
	}
}

func TestMetadata_IsShownWithItemsAndQuotes(t *testing.T) {
	w := newQuotesWorld(t, nil, usd(11, 9, 1, -1), usd(1, 1, 1, 1))
	w.own("v", "plain")
	want := &metadata.Description{Type: "Rifle", Rarity: "Classified"}
	key, plain := catalog.Key{AppID: 730, Name: "x"}, catalog.Key{AppID: 730, Name: "plain"}
	w.read(view.Options{Store: w.store, Currency: "USD", Now: func() time.Time { return w.now }, Metadata: metadata.Items{key: want}})
	list, err := w.Items(t.Context(), view.ItemFilter{AppID: 730}, "", 10)
	w.must(err)
	w.is("metadata of the list", []*metadata.Description{list.Items[0].Metadata, list.Items[1].Metadata}, []*metadata.Description{nil, want})
	item, err := w.Item(t.Context(), key, "")
	w.must(err)
	w.is("metadata of the item", item.Metadata, want)
	quotes, err := w.Quotes(t.Context(), []catalog.Key{plain, key}, nil, "")
	w.must(err)
	w.is("metadata of the quotes", []*metadata.Description{quotes.Items[0].Metadata, quotes.Items[1].Metadata}, []*metadata.Description{nil, want})
}
