package view

import (
	"context"
	"time"

	"assay/internal/catalog"
	"assay/internal/exchange"
	"assay/internal/fault"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/refresh"
)

// PastPrice is the price of an item at a time in the past.
type PastPrice struct {
	Time time.Time `json:"time"` // requested time
	PublishedPrice
	Currency      money.Currency   `json:"currency"`
	Rates         []ConversionRate `json:"rates,omitempty"`
	EstimatedAt   time.Time        `json:"estimatedAt"` // last change of the price or of one of its quotes, at or before Time
	AgeSeconds    int64            `json:"ageSeconds"`  // from EstimatedAt to Time
	Method        string           `json:"method"`
	MethodVersion int64            `json:"methodVersion"`
	RateSet       int64            `json:"rateSet"`
	LevelSet      int64            `json:"levelSet"`
	Median        money.Micro      `json:"median"`
	Consensus     money.Micro      `json:"consensus"`
	// CandidatePrice, Explanation and Snapshots are present only if the request selects them.
	CandidatePrice *money.Micro     `json:"candidatePrice,omitempty"` // price that was held at Time
	Explanation    *Explanation     `json:"explanation,omitempty"`
	Snapshots      []MarketSnapshot `json:"snapshots,omitempty"`
}

// PriceAt returns the price of an item at a past time. If explain is true, it recomputes the price
// from the quotes, rates and levels of that time. The parameter to is the currency of the amounts
// ("": the base currency), converted at the rates of that time. PriceAt returns a fault.NotFound if
// the item is unknown or had no price yet. It returns a fault.Expired if only daily candles of that
// time are stored.
func (r *HistoryReader) PriceAt(ctx context.Context, key catalog.Key, at time.Time, explain bool, to money.Currency) (PastPrice, error) {
	if err := checkPast("time", at, r.o.Now()); err != nil {
		return PastPrice{}, err
	}
	item, err := ReadItem(ctx, r.o.Store, key)
	if err == nil && item == nil {
		err = key.NotFound()
	}
	if err != nil {
		return PastPrice{}, err
	}
	markets, err := Markets(ctx, r.o.Store)
	if err != nil {
		return PastPrice{}, err
	}
	p, err := pointAt(ctx, r.o.Store, item.ID, at)
	if err != nil {
		return PastPrice{}, err
	}
	if p == nil {
		folded, err := hasDay(ctx, r.o.Store, item.ID, at)
		switch {
		case err != nil:
		case folded:
			err = fault.New(fault.Expired, "history_expired", "Prices of this time are stored only as daily candles. Read the history with interval=1d.")
		default:
			err = fault.New(fault.NotFound, "price_not_found", "The item had no price at this time.")
		}
		return PastPrice{}, err
	}
	convert, err := r.o.converter(ctx, to, at)
	if err != nil {
		return PastPrice{}, err
	}
	if convert, err = convert.at(ctx, r.o.Store, p.RateSet, convert.base, at); err != nil {
		return PastPrice{}, err
	}
	p.Key, p.UsedMarkets = key, int64(len(p.used))
	// A confirmation without a change stores no point. It counts from the time of its estimate.
	if item.CheckedAt.After(p.CheckedAt) && !at.Before(item.CheckedAt) && !at.Before(item.EstimatedAt) {
		p.CheckedAt = item.CheckedAt
	}
	method, _ := pricing.ParseLabel(p.Method)
	out := PastPrice{
		Time: at.UTC(), Currency: convert.to, Rates: convert.used(), EstimatedAt: p.EstimatedAt, AgeSeconds: seconds(at.Sub(p.EstimatedAt)),
		Method: string(method), MethodVersion: p.MethodVersion, RateSet: p.RateSet, LevelSet: p.LevelSet, Median: p.Median, Consensus: p.Consensus,
		PublishedPrice: PublishedPrice{
			AppID: key.AppID, MarketHashName: key.Name, Phase: key.Phase, CurrentPrice: p.Price, CurrentPriceDecimal: money.Decimal(p.Price),
			PriceStatus: p.Status.String(), PriceUpdatedAt: when(p.UpdatedAt), PriceCheckedAt: when(p.CheckedAt),
			Figures: &Figures{Interval: intervalOf(p.Interval), Average: amount(p.Average), UsedMarkets: new(p.UsedMarkets)},
		},
	}
	convert.published(&out.PublishedPrice)
	convert.all(&out.Median, &out.Consensus)
	if !explain {
		return out, nil
	}
	rates, err := exchange.ReadRates(ctx, r.o.Store, p.RateSet)
	if err != nil {
		return out, err
	}
	quotes, err := refresh.DecodeQuotes(p.quotes)
	if err != nil {
		return out, err
	}
	snaps := named(quotes, markets)
	e, err := r.explains.of(ctx, &p.StoredItem, snaps, rates, at)
	if err != nil {
		return out, err
	}
	out.CandidatePrice, out.Explanation, out.Snapshots = amount(p.Candidate), e.detail(), []MarketSnapshot{}
	for k := range snaps {
		out.Snapshots = append(out.Snapshots, e.snapshot(&snaps[k]))
	}
	convert.all(out.CandidatePrice)
	convert.explanation(out.Explanation, out.Snapshots)
	return out, nil
}

// named adds the names of markets to quotes.
func named(quotes []refresh.MarketSnapshot, markets map[int64]refresh.MarketName) []StoredSnapshot {
	out := make([]StoredSnapshot, len(quotes))
	for i, q := range quotes {
		m := markets[q.MarketID]
		out[i] = StoredSnapshot{MarketSnapshot: q, Provider: m.Provider, Market: m.Key, Title: m.Title}
	}
	return out
}
