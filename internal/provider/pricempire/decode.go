package pricempire

import (
	"context"
	"io"
	"time"

	"assay/internal/provider"
	"assay/internal/provider/feed"
)

var (
	rowNames   = []string{"market_hash_name", "trades_30d", "steam_last_30d", "prices"}
	priceNames = []string{"provider_key", "price", "count", "last_checked_at", "updated_at"}
)

// read reads the items of a game. A market without rows is silent, because Pricempire omits
// unknown markets without an error.
func (s *Provider) read(ctx context.Context, body io.Reader, sink provider.Sink) (provider.Result, error) {
	var result provider.Result
	quoted := make([]bool, len(s.describe.Markets))
	cells, inner := make([]feed.Cell, len(rowNames)), make([]feed.Cell, len(priceNames))
	err := feed.Read(ctx, Name, body, sink, func(r *feed.Reader) error {
		err := r.Array(func() error {
			ok, err := r.Row(rowNames, cells)
			if !ok || err != nil {
				return err
			}
			q, ok := s.subject(r, cells)
			if !ok {
				return nil
			}
			return r.EachRow(cells[3], priceNames, inner, func() error {
				at, requested := s.markets[string(inner[0].Text)]
				if !requested {
					return nil
				}
				quoted[at] = true
				q.Market = s.describe.Markets[at].Key
				return price(r, &q, inner)
			})
		})
		if err == nil && r.Quotes() == 0 {
			err = feed.Malformed("response without any of the requested markets")
		}
		return err
	})
	for i, ok := range quoted {
		if !ok {
			result.Silent = append(result.Silent, s.describe.Markets[i].Key)
		}
	}
	return result, err
}

// subject reads the item of a row and its sales.
func (s *Provider) subject(r *feed.Reader, cells []feed.Cell) (q provider.Quote, ok bool) {
	q.Currency = s.currency
	if q.Name, ok = r.Name("", cells[0]); !ok {
		return q, false
	}
	q.Name, q.Phase = feed.CutSuffix(q.Name)
	trades, reason := cells[1].Count()
	steam := int64(provider.Unknown)
	if reason == "" {
		steam, reason = cells[2].Count()
	}
	if reason != "" {
		r.Reject("", cells[0].Text, reason)
		return q, false
	}
	if q.Sales = totalSales(trades, steam); q.Sales >= 0 {
		q.SalesWindow = window
	}
	return q, true
}

// totalSales adds the sales on Steam and on other markets. The total is 0 only if both counts
// are 0.
func totalSales(trades, steam int64) int64 {
	if total := max(trades, 0) + max(steam, 0); total > 0 || trades == 0 && steam == 0 {
		return total
	}
	return provider.Unknown
}

// price adds the quote of one market. q holds the item and its sales.
func price(r *feed.Reader, q *provider.Quote, cells []feed.Cell) error {
	var reason string
	if q.Ask, reason = cells[1].Amount(100); reason == "" {
		q.Listings, reason = cells[2].Count()
	}
	if reason == "" {
		q.MarketTime, reason = polled(cells[3], cells[4])
	}
	if reason != "" {
		r.Reject(q.Market, []byte(q.Name), reason)
		return nil
	}
	return r.Quote(q)
}

// placeholder is the time in many rows that were never updated.
var placeholder = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

// polled returns the time when Pricempire last checked a market. If that is missing, it
// returns the time of the last price update.
func polled(checked, updated feed.Cell) (t time.Time, reason string) {
	for _, c := range [...]feed.Cell{checked, updated} {
		if t, reason = c.Time(feed.TimeRFC3339); reason != "" || !t.IsZero() && !t.Equal(placeholder) {
			return t, reason
		}
	}
	return time.Time{}, ""
}
