package view

import (
	"context"
	"time"

	"assay/internal/admission"
	"assay/internal/catalog"
	"assay/internal/exchange"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/refresh"
	"assay/internal/view/metadata"
	"assay/internal/view/prices"
)

// ItemPrice is an item with its price.
type ItemPrice struct {
	AppID               int32         `json:"appId"`
	MarketHashName      string        `json:"marketHashName"`
	Phase               string        `json:"phase"`
	CurrentPrice        money.Micro   `json:"currentPrice"`
	CurrentPriceDecimal money.Decimal `json:"currentPriceDecimal"`
	Status              string        `json:"status"`
	PriceUpdatedAt      *time.Time    `json:"priceUpdatedAt"`
}

// ItemDetail explains a price. It lists the quote of every market, and why a quote is not
// used.
type ItemDetail struct {
	ItemPrice
	Metadata       *metadata.Description `json:"metadata,omitempty"`
	Currency       money.Currency        `json:"currency"`
	Rates          []ConversionRate      `json:"rates,omitempty"`
	PriceCheckedAt *time.Time            `json:"priceCheckedAt"`
	AgeSeconds     *int64                `json:"ageSeconds"` // seconds since priceCheckedAt
	EstimatedAt    *time.Time            `json:"estimatedAt"`
	Method         string                `json:"method"` // consensus, average or median
	MethodVersion  int64                 `json:"methodVersion"`
	Average        money.Micro           `json:"average"`
	Median         money.Micro           `json:"median"`
	Consensus      money.Micro           `json:"consensus"`
	Interval       *Interval             `json:"interval"` // range around the consensus
	Min            money.Micro           `json:"min"`
	Max            money.Micro           `json:"max"`
	Spread         *money.Micro          `json:"spread"` // max / min
	Markets        int64                 `json:"markets"`
	UsedMarkets    int64                 `json:"usedMarkets"`
	CandidatePrice *money.Micro          `json:"candidatePrice"`
	CandidateAt    *time.Time            `json:"candidateAt"`
	NoSalesSince   *time.Time            `json:"noSalesSince"`
	RetryAt        *time.Time            `json:"retryAt"`  // end of a no-sales pause, or next attempt of a queued item
	Failures       int64                 `json:"failures"` // consecutive runs without a quote
	Queued         bool                  `json:"queued"`   // in the missing-price queue
	RateSet        int64                 `json:"rateSet"`  // rates used by the estimate; 0: none
	LevelSet       int64                 `json:"levelSet"` // levels used by the estimate; 0: none learned yet
	LevelMarket    *string               `json:"levelMarket"`
	Explanation    *Explanation          `json:"explanation"` // null: no estimate yet
	Snapshots      []MarketSnapshot      `json:"snapshots"`
}

// MarketSnapshot is the last quote of an item on one market.
type MarketSnapshot struct {
	Provider           string         `json:"provider"`
	Market             string         `json:"market"`
	Title              string         `json:"title"`
	Currency           money.Currency `json:"currency"` // currency of the quote
	LowestAsk          *money.Micro   `json:"lowestAsk"`
	HighestBid         *money.Micro   `json:"highestBid"`
	Sale               *money.Micro   `json:"sale"`
	Listings           *int64         `json:"listings"`
	Sales              *int64         `json:"sales"`
	SalesWindowSeconds *int64         `json:"salesWindowSeconds"`
	MarketTime         *time.Time     `json:"marketTime"`
	FetchedAt          time.Time      `json:"fetchedAt"`
	Price              *money.Micro   `json:"price"` // in the base currency
	Basis              string         `json:"basis"` // ask or sale
	Rate               *money.Rate    `json:"rate"`  // null: the quote is in the base currency
	RateDate           *time.Time     `json:"rateDate"`
	RateOld            bool           `json:"rateOld"`  // more than three days older than the estimate
	Level              *money.Micro   `json:"level"`    // factor of the market at this price; null: not compared
	Levelled           *money.Micro   `json:"levelled"` // price ÷ level
	Noise              *money.Micro   `json:"noise"`    // usual distance of this market from the others, as a factor
	FarShare           *money.Micro   `json:"farShare"` // share of the market's quotes that differ from the other markets by more than 2x
	Used               bool           `json:"used"`
	Reason             string         `json:"reason"`      // why the quote is not used
	Explanation        string         `json:"explanation"` // reason as a sentence
}

func itemPrice(i *StoredItem, now time.Time) ItemPrice {
	return ItemPrice{
		AppID: i.Key.AppID, MarketHashName: i.Key.Name, Phase: i.Key.Phase,
		CurrentPrice: i.Price, CurrentPriceDecimal: money.Decimal(i.Price), Status: currentStatus(i.Price, i.Status, i.CheckedAt, now).String(), PriceUpdatedAt: when(i.UpdatedAt),
	}
}

// currentStatus returns the status of the last estimate, or Stale if the price was not confirmed
// within freshFor.
func currentStatus(price money.Micro, status pricing.Status, checked, now time.Time) pricing.Status {
	return prices.Current(price, status, checked, now.Add(-freshFor))
}

// Item explains the price of an item. The parameter to is the currency of the amounts ("": the base
// currency). Item returns a fault.NotFound for an unknown item.
func (r *ItemReader) Item(ctx context.Context, key catalog.Key, to money.Currency) (ItemDetail, error) {
	leave, err := r.o.enter(ctx, admission.Explanation)
	if err != nil {
		return ItemDetail{}, err
	}
	defer leave()
	convert, err := r.o.converter(ctx, to, r.o.Now())
	if err != nil {
		return ItemDetail{}, err
	}
	d, err := r.Explain(ctx, key)
	d.Currency, d.Rates = convert.to, convert.used()
	convert.all(&d.CurrentPrice, &d.Average, &d.Median, &d.Consensus, &d.Min, &d.Max, d.CandidatePrice)
	d.CurrentPriceDecimal = money.Decimal(d.CurrentPrice)
	convert.interval(d.Interval)
	convert.explanation(d.Explanation, d.Snapshots)
	return d, err
}

// Explain is like Item, but uses the base currency and does not wait for the admission gate.
func (r *ItemReader) Explain(ctx context.Context, key catalog.Key) (ItemDetail, error) {
	i, err := ReadItem(ctx, r.o.Store, key)
	if err != nil {
		return ItemDetail{}, err
	}
	if i == nil {
		return ItemDetail{}, key.NotFound()
	}
	snaps, err := Snapshots(ctx, r.o.Store, i.ID)
	if err != nil {
		return ItemDetail{}, err
	}
	rates, err := exchange.ReadRates(ctx, r.o.Store, i.RateSet)
	if err != nil {
		return ItemDetail{}, err
	}
	now := r.o.Now()
	e, err := r.explains.of(ctx, i, snaps, rates, now)
	if err != nil {
		return ItemDetail{}, err
	}
	if e.refused, err = refresh.RefusedMarkets(ctx, r.o.Store, i.Key.AppID); err != nil {
		return ItemDetail{}, err
	}
	d := ItemDetail{
		ItemPrice: itemPrice(i, now), Metadata: r.o.Metadata.Of(i.Key), Currency: r.o.Currency,
		PriceCheckedAt: when(i.CheckedAt), EstimatedAt: when(i.EstimatedAt),
		Method: string(e.policy.Method), MethodVersion: i.MethodVersion, RateSet: i.RateSet, LevelSet: i.LevelSet,
		Average: i.Average, Median: i.Median, Consensus: i.Consensus, Interval: intervalOf(i.Interval), Min: i.Min, Max: i.Max,
		Markets: i.Markets, UsedMarkets: i.UsedMarkets,
		CandidatePrice: amount(i.Candidate), CandidateAt: when(i.CandidateAt),
		NoSalesSince: when(i.NoSalesSince), RetryAt: when(i.RetryAt), Failures: i.Failures, Queued: i.Queued,
		Snapshots: []MarketSnapshot{},
	}
	if i.Max > 0 {
		spread, _ := money.Ratio(i.Max, i.Min)
		d.Spread = &spread
	}
	if e.policy.Level != 0 {
		d.LevelMarket = text(e.marketName(e.policy.Level))
	}
	if !i.EstimatedAt.IsZero() {
		d.Explanation = e.detail()
	}
	if !i.CheckedAt.IsZero() {
		age := seconds(now.Sub(i.CheckedAt))
		d.AgeSeconds = &age
	}
	if i.Queued { // a no-sales pause does not apply to queued items
		d.RetryAt = when(nextAttempt(i.DueAt, now))
	}
	for k := range snaps {
		d.Snapshots = append(d.Snapshots, e.snapshot(&snaps[k]))
	}
	return d, nil
}
