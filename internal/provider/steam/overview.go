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

// readOverview reads the priceoverview response for a name: the lowest ask, and the median
// and count of a day's sales. For unknown names, and for some known ones without offers,
// all three are missing: then nothing is known. A failure without a reason means the same.
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
			q.Currency = dollars // there is no amount
		}
		return r.Quote(&q)
	})
}

// readPrices reads prices and sales. A non-empty reason means that they are invalid.
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

// succeeded reads the member success. Any value except yes and no is an error: removed
// endpoints return 104.
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
