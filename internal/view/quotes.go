package view

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"assay/internal/admission"
	"assay/internal/catalog"
	"assay/internal/fault"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/provider"
	"assay/internal/refresh"
	"assay/internal/view/metadata"
)

// Quotes is the response of POST /api/prices/quotes, in the order of the request.
type Quotes struct {
	Items    []QuotedItem     `json:"items"`
	Currency money.Currency   `json:"currency"` // currency of all amounts
	Rates    []ConversionRate `json:"rates"`    // rates used in the response, by currency
}

// QuotedItem is an item with the quotes of markets and figures across them. The figures include
// only quotes whose Counted is true.
type QuotedItem struct {
	ItemPrice
	PriceStatus     string                `json:"priceStatus"` // noPrice if there is no price
	PriceCheckedAt  *time.Time            `json:"priceCheckedAt"`
	BestAsk         *Offer                `json:"bestAsk"`
	BestBid         *Offer                `json:"bestBid"`
	Spread          *money.Micro          `json:"spread"` // best ask - best bid
	SpreadAfterFees *money.Micro          `json:"spreadAfterFees"`
	Listings        *int64                `json:"listings"`
	Sales           *int64                `json:"sales"`
	SalesPerDay     *money.Micro          `json:"salesPerDay"`
	Liquidity       *money.Micro          `json:"liquidity"` // sales per day ÷ listings
	Quotes          []MarketQuote         `json:"quotes"`
	Metadata        *metadata.Description `json:"metadata,omitempty"`
}

// Offer is the best ask or the best bid of an item.
type Offer struct {
	Provider       string      `json:"provider"`
	Market         string      `json:"market"`
	Price          money.Micro `json:"price"`
	FeeBasisPoints int64       `json:"feeBasisPoints"`
	AfterFee       money.Micro `json:"afterFee"` // ask + fee, or bid - fee
}

// MarketQuote is the quote of a market in the currency of the response.
type MarketQuote struct {
	Provider           string         `json:"provider"`
	Market             string         `json:"market"`
	Title              string         `json:"title"`
	QuotedIn           money.Currency `json:"quotedIn"` // currency of the market
	Price              *money.Micro   `json:"price"`
	Basis              string         `json:"basis"` // ask or sale
	Ask                *money.Micro   `json:"ask"`
	Bid                *money.Micro   `json:"bid"`
	Sale               *money.Micro   `json:"sale"`
	Listings           *int64         `json:"listings"`
	Sales              *int64         `json:"sales"`
	SalesWindowSeconds *int64         `json:"salesWindowSeconds"`
	MarketTime         *time.Time     `json:"marketTime"`
	FetchedAt          time.Time      `json:"fetchedAt"`
	AgeSeconds         int64          `json:"ageSeconds"`
	Counted            bool           `json:"counted"`
	Used               bool           `json:"used"`
	Reason             string         `json:"reason"` // why the last estimate does not use the quote
}

// Quotes returns one entry per requested key, with the quotes of the item on the given markets
// (nil: all markets). A market is named by key or provider/key. The parameter to is the currency of
// the amounts ("": the base currency).
func (r *ItemReader) Quotes(ctx context.Context, keys []catalog.Key, markets []string, to money.Currency) (Quotes, error) {
	leave, err := r.o.enter(ctx, admission.Explanation)
	if err != nil {
		return Quotes{}, err
	}
	defer leave()
	now := r.o.Now()
	convert, err := r.o.converter(ctx, cmp.Or(to, r.o.Currency), now)
	if err != nil {
		return Quotes{}, err
	}
	q := quoter{now: now, convert: convert, metadata: r.o.Metadata, fees: r.o.MarketFees, configured: r.o.markets()}
	if q.only, err = q.selected(markets); err != nil {
		return Quotes{}, err
	}
	if q.names, err = Markets(ctx, r.o.Store); err != nil {
		return Quotes{}, fmt.Errorf("read markets: %w", err)
	}
	byApp := map[int32][]catalog.Key{}
	for _, key := range keys {
		byApp[key.AppID] = append(byApp[key.AppID], key)
	}
	stored := make(map[int32]map[catalog.Key]storedQuotes, len(byApp))
	for app, of := range byApp {
		if stored[app], err = readQuotes(ctx, r.o.Store, app, of); err != nil {
			return Quotes{}, fmt.Errorf("read quotes: %w", err)
		}
	}
	out := Quotes{Items: make([]QuotedItem, len(keys)), Currency: convert.to}
	for i, key := range keys {
		v, known := stored[key.AppID][key]
		out.Items[i] = q.item(key, &v, known)
	}
	out.Rates = convert.used()
	return out, nil
}

// markets returns the markets of all configured providers.
func (o *Options) markets() map[marketName]provider.Market {
	out := map[marketName]provider.Market{}
	for _, p := range o.Providers {
		d := p.Describe()
		for _, m := range d.Markets {
			out[marketName{d.Name, m.Key}] = m
		}
	}
	return out
}

// marketName names a market of a provider.
type marketName struct{ provider, key string }

func (m marketName) matches(name string) bool { return name == m.key || name == m.provider+"/"+m.key }

// quoter builds the quotes of a response.
type quoter struct {
	now        time.Time
	convert    *converter
	metadata   metadata.Items
	fees       map[string]int64 // basis points, by key or provider/key
	configured map[marketName]provider.Market
	names      map[int64]refresh.MarketName
	only       map[marketName]bool // nil: all markets
}

// selected returns the markets with the given names. It returns a fault.Invalid if a name matches
// no configured market.
func (q *quoter) selected(names []string) (map[marketName]bool, error) {
	if names == nil {
		return nil, nil
	}
	only := map[marketName]bool{}
	var faults []fault.Field
	for i, name := range names {
		found := false
		for m := range q.configured {
			if m.matches(name) {
				only[m], found = true, true
			}
		}
		if !found {
			faults = append(faults, fault.Field{Pointer: "/markets/" + strconv.Itoa(i), Detail: "no configured provider carries this market; write its key, or provider/key"})
		}
	}
	if faults != nil {
		f := fault.New(fault.Invalid, "invalid_body", "The body contains unknown markets. See errors.")
		f.Fields = faults
		return nil, f
	}
	return only, nil
}

// item returns the quotes of an item and the figures across them.
func (q *quoter) item(key catalog.Key, v *storedQuotes, known bool) QuotedItem {
	out := QuotedItem{
		ItemPrice: ItemPrice{AppID: key.AppID, MarketHashName: key.Name, Phase: key.Phase, Status: StatusUnknown}, PriceStatus: pricing.NoPrice.String(),
		Quotes: []MarketQuote{}, Metadata: q.metadata.Of(key),
	}
	if !known {
		return out
	}
	out.Status, out.PriceUpdatedAt, out.PriceCheckedAt = currentStatus(v.price, v.status, v.checked, q.now).String(), when(v.updated), when(v.checked)
	out.PriceStatus = out.Status
	out.CurrentPrice = q.convert.price(v.price)
	out.CurrentPriceDecimal = money.Decimal(out.CurrentPrice)
	for i := range v.quotes {
		s := &v.quotes[i]
		if s.FetchedAt.IsZero() {
			s.FetchedAt = v.quotesAt
		}
		if m := q.names[s.MarketID]; q.only == nil || q.only[marketName{m.Provider, m.Key}] {
			out.Quotes = append(out.Quotes, q.quote(s, m))
		}
	}
	slices.SortFunc(out.Quotes, func(a, b MarketQuote) int {
		return cmp.Or(cmp.Compare(a.Market, b.Market), cmp.Compare(a.Provider, b.Provider))
	})
	out.sum(q)
	return out
}

func (q *quoter) quote(s *refresh.MarketSnapshot, m refresh.MarketName) MarketQuote {
	out := MarketQuote{
		Provider: m.Provider, Market: m.Key, Title: m.Title, QuotedIn: s.Currency,
		Ask: q.convert.amount(s.Ask, s.Currency), Bid: q.convert.amount(s.Bid, s.Currency), Sale: q.convert.amount(s.Sale, s.Currency),
		Listings: count(s.Listings), Sales: count(s.Sales),
		MarketTime: when(s.MarketTime), FetchedAt: s.FetchedAt, AgeSeconds: seconds(q.now.Sub(s.FetchedAt)),
		Counted: q.counts(s, m), Used: s.Reason == pricing.Used, Reason: string(s.Reason),
	}
	if s.Sales >= 0 {
		out.SalesWindowSeconds = new(seconds(s.SalesWindow))
	}
	price, basis := pricing.Quoted(s.Ask, s.Sale)
	out.Price, out.Basis = q.convert.amount(price, s.Currency), string(basis)
	return out
}

// counts reports whether the figures across markets include a quote. The market must be configured
// and still list the item. The quote must be valid and fresh, and must not repeat another quote.
// An outlier counts, because it can be bought.
func (q *quoter) counts(s *refresh.MarketSnapshot, name refresh.MarketName) bool {
	m, configured := q.configured[marketName{name.Provider, name.Key}]
	if !configured || q.now.Sub(s.FetchedAt) > cmp.Or(m.MaxAge, freshFor) || pricing.Outdated(q.now, s.MarketTime) {
		return false
	}
	switch s.Reason {
	case pricing.NotConfigured, pricing.InvalidAmount, pricing.Duplicate, pricing.SharedListings:
		return false
	case pricing.NotOffered: // the amounts of a market that no longer lists the item are old
		return s.Ask == 0 && s.Sale == 0
	default:
		return true
	}
}
