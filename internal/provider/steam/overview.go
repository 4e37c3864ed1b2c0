package steam

import (
	"context"
	"io"

	"assay/internal/money"
	"assay/internal/provider"
	"assay/internal/provider/feed"
)

// overviewNames are the members of a priceoverview response.
var overviewNames = []string{"success", "lowest_price", "median_price", "volume"}

// readOverview reads a priceoverview response: the lowest ask, and the median and number of
// the sales in a day. It adds no quote if all three are missing or if success is false.
// Steam sends such responses for unknown names and for some names without offers.
func (s *Provider) readOverview(ctx context.Context, name string, body io.Reader, sink provider.Sink) error {
	return feed.Read(ctx, Name, body, sink, func(r *feed.Reader) error {
		cells := make([]feed.Cell, len(overviewNames))
		if ok, err := r.Row(overviewNames, cells); !ok || err != nil {
			return err
		}
		if ok, err := succeeded(cells[0]); !ok || err != nil {
			return err
		}
		q := provider.Quote{Market: Name, Name: name, Listings: provider.Unknown}
		if reason := readPrices(&q, cells); reason != "" {
			r.Reject(Name, []byte(name), reason)
			return nil
		}
		if q.Currency == "" {
			if q.Sales < 0 {
				return nil
			}
			q.Currency = dollars // the currency is irrelevant without an amount
		}
		return r.Quote(&q)
	})
}

// readPrices reads the prices and sales. It returns a reason if they are invalid.
func readPrices(q *provider.Quote, cells []feed.Cell) (reason string) {
	var offered, sold money.Currency
	if q.Ask, offered, reason = price(cells[1], dollars); reason != "" {
		return reason
	}
	if q.Sale, sold, reason = price(cells[2], dollars); reason != "" {
		return reason
	}
	if q.Currency = offered; offered == "" {
		q.Currency = sold
	}
	if sold != "" && sold != q.Currency {
		return rejectMixed
	}
	if q.Sales, reason = count(cells[3]); q.Sales >= 0 {
		q.SalesWindow = day
	}
	return reason
}

// succeeded returns the member success. It accepts true, 1 and false. Other values are
// errors: endpoints that Steam has removed return 104.
func succeeded(c feed.Cell) (bool, error) {
	switch text := string(c.Text); {
	case c.Kind <= feed.Null:
		return false, feed.Malformed("member success is missing")
	case c.Kind != feed.Text && (text == "true" || text == "1"):
		return true, nil
	case c.Kind == feed.Other && text == "false":
		return false, nil
	}
	return false, feed.Malformed("unexpected value of success: %s", feed.Clip(c.Text))
}
