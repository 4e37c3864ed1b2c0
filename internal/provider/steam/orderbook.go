package steam

import (
	"context"
	"io"
	"strconv"

	"assay/internal/money"
	"assay/internal/provider"
	"assay/internal/provider/feed"
)

// bookNames are the members of an orderbook response. dataNames are the members of its
// data.
var (
	bookNames = []string{"success", "data"}
	dataNames = []string{"eCurrency", "amtMinSellOrder", "amtMaxBuyOrder", "cSellOrders"}
)

// readBook reads an orderbook response in its original or its wrapped form.
func (s *Provider) readBook(ctx context.Context, name string, body io.Reader, sink provider.Sink) error {
	return feed.Read(ctx, Name, body, sink, func(r *feed.Reader) error {
		cells := make([]feed.Cell, len(bookNames))
		ok, err := r.Row(bookNames, cells)
		if !ok || err != nil {
			return err
		}
		if cells[0].Kind == feed.Absent && cells[1].Kind == feed.Other && !r.Within(cells[1], bookNames, cells) {
			return nil
		}
		if ok, err := succeeded(cells[0]); !ok || err != nil {
			return err
		}
		if cells[1].Kind != feed.Other {
			return feed.Malformed("response without data")
		}
		data := make([]feed.Cell, len(dataNames))
		if !r.Within(cells[1], dataNames, data) {
			return nil
		}
		q := provider.Quote{Market: Name, Name: name, Sales: provider.Unknown}
		if reason := readOrders(&q, data); reason != "" {
			r.Reject(Name, []byte(name), reason)
			return nil
		}
		return r.Quote(&q)
	})
}

// hundredth is the unit of all numeric amounts. It also applies to yen, although Steam's
// pages show yen without a fraction.
const hundredth = 100

// readOrders reads the best ask and bid. It returns a reason if they are invalid.
func readOrders(q *provider.Quote, data []feed.Cell) (reason string) {
	if q.Currency = currencyByID(data[0]); q.Currency == "" {
		return feed.RejectCurrency
	}
	if q.Ask, reason = data[1].Amount(hundredth); reason != "" {
		return reason
	}
	if q.Bid, reason = data[2].Amount(hundredth); reason != "" {
		return reason
	}
	q.Listings, reason = data[3].Count()
	return reason
}

// currencyByID returns the currency with Steam's number, or "" if it is unknown.
func currencyByID(c feed.Cell) money.Currency {
	for i := range formats {
		if c.Kind == feed.Number && string(c.Text) == strconv.Itoa(formats[i].id) {
			return formats[i].code
		}
	}
	return ""
}
