package view

import (
	"cmp"
	"context"
	"slices"
	"time"

	"assay/internal/catalog"
	"assay/internal/exchange"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/refresh"
)

// GameMarket is a configured market of a game.
type GameMarket struct {
	Name  string // provider/key
	Key   string
	Title string // with the provider's title if several providers carry the market
}

// MarketsOf returns the configured markets of a game, sorted by title.
func (r *ItemReader) MarketsOf(app int32) []GameMarket {
	providers := map[string]int{} // by key
	var out []GameMarket
	var of []string // title of the provider of each market
	for _, p := range r.o.Providers {
		d := p.Describe()
		for _, m := range d.Markets {
			if slices.Contains(m.AppIDs, app) {
				out, of = append(out, GameMarket{Name: d.Name + "/" + m.Key, Key: m.Key, Title: m.Title}), append(of, d.Title)
				providers[m.Key]++
			}
		}
	}
	for i := range out {
		if m := &out[i]; providers[m.Key] > 1 {
			m.Title += " (" + of[i] + ")"
		}
	}
	slices.SortFunc(out, func(a, b GameMarket) int { return cmp.Or(cmp.Compare(a.Title, b.Title), cmp.Compare(a.Name, b.Name)) })
	return out
}

// MarketLine is the price of an item on one market over time, in the base currency.
type MarketLine struct {
	Title  string
	Points []LinePoint
}

// LinePoint is a price that is valid from At until the next point. The price 0 means that the
// market did not offer the item, or that there was no rate for the market's currency.
type LinePoint struct {
	At    time.Time
	Price money.Micro
}

// MarketLines returns the prices of an item on each market in a period, sorted by title. It
// reads at most one point of the history per step, because each point contains the quotes of all
// markets.
func (r *HistoryReader) MarketLines(ctx context.Context, key catalog.Key, from, to time.Time, step time.Duration) ([]MarketLine, error) {
	item, markets, err := r.historyOf(ctx, key)
	if err != nil {
		return nil, err
	}
	points, err := steppedPoints(ctx, r.o.Store, item, from, to, step)
	if err != nil {
		return nil, err
	}
	sets := map[int64]pricing.Rates{}
	lines := map[int64]*MarketLine{}
	for _, p := range points {
		rates, known := sets[p.rateSet]
		if !known {
			if rates, err = exchange.ReadRates(ctx, r.o.Store, p.rateSet); err != nil {
				return nil, err
			}
			sets[p.rateSet] = rates
		}
		quotes, err := refresh.DecodeQuotes(p.quotes)
		if err != nil {
			return nil, err
		}
		found := map[int64]money.Micro{}
		for k := range quotes {
			found[quotes[k].MarketID] = r.linePrice(&quotes[k], rates)
		}
		for id, price := range found {
			if lines[id] == nil && price > 0 {
				lines[id] = &MarketLine{Title: markets[id].Title}
			}
		}
		for id, l := range lines {
			if last := len(l.Points) - 1; last < 0 || l.Points[last].Price != found[id] {
				l.Points = append(l.Points, LinePoint{p.at, found[id]})
			}
		}
	}
	out := make([]MarketLine, 0, len(lines))
	for _, l := range lines {
		out = append(out, *l)
	}
	slices.SortFunc(out, func(a, b MarketLine) int { return cmp.Compare(a.Title, b.Title) })
	return out, nil
}

// linePrice returns the price of a quote in the base currency. It returns 0 if the market does not
// offer the item, or if the amount is invalid or cannot be converted.
func (r *HistoryReader) linePrice(q *refresh.MarketSnapshot, rates pricing.Rates) money.Micro {
	price, _ := pricing.Quoted(q.Ask, q.Sale)
	switch q.Reason {
	case pricing.NotOffered, pricing.NotConfigured, pricing.InvalidAmount:
		return 0
	}
	if q.Currency == r.o.Currency {
		return price
	}
	rate, ok := rates.Of(q.Currency)
	if !ok {
		return 0
	}
	converted, ok := money.Convert(price, rate.Value)
	if !ok {
		return 0
	}
	return converted
}
