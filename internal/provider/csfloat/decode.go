package csfloat

import (
	"cmp"
	"context"
	"io"

	"assay/internal/provider"
	"assay/internal/provider/feed"
)

// unit is the number of price units per dollar. Prices are in cents.
const unit = 100

// list reads a list, which is an array or an object with an array.
func list(r *feed.Reader, row func() error) error {
	if r.Is('[') {
		return r.Rows(row)
	}
	return r.Wrapped("data", row, nil, nil)
}

var dopplerNames = []string{"market_hash_name", "min_price", "phase_name", "paint_index"}

// readDopplers reads the prices of Dopplers by phase.
func readDopplers(ctx context.Context, body io.Reader) ([]provider.Quote, error) {
	var all []provider.Quote
	cells := make([]feed.Cell, len(dopplerNames))
	err := feed.Read(ctx, Name, body, nil, func(r *feed.Reader) error {
		return list(r, func() error {
			ok, err := r.Row(dopplerNames, cells)
			if !ok || err != nil {
				return err
			}
			q, ok := quote(r, cells[0], cells[1], feed.Cell{})
			if !ok {
				return nil
			}
			q.Phase = cmp.Or(feed.Phase(cells[2].Text), feed.PhaseOfPaint(cells[3].Text))
			if q.Phase == "" {
				r.Reject(Name, cells[0].Text, feed.RejectPhase)
				return nil
			}
			if len(all) == maxDopplers {
				return feed.TooManyItems(maxDopplers)
			}
			all = append(all, q)
			r.Count(1)
			return nil
		})
	})
	return all, err
}

// maxDopplers is the maximum number of items with a phase. A few hundred exist.
const maxDopplers = 50_000

var priceNames = []string{"market_hash_name", "min_price", "quantity"}

// readPrices reads the offers and then adds the phases. In this list, the price of a Doppler
// is probably the price of its cheapest phase. It becomes the quote without a phase.
func readPrices(ctx context.Context, body io.Reader, dopplers []provider.Quote, sink provider.Sink) error {
	cells := make([]feed.Cell, len(priceNames))
	return feed.Read(ctx, Name, body, sink, func(r *feed.Reader) error {
		err := list(r, func() error {
			ok, err := r.Row(priceNames, cells)
			if !ok || err != nil {
				return err
			}
			q, ok := quote(r, cells[0], cells[1], cells[2])
			if !ok {
				return nil
			}
			return r.Quote(&q)
		})
		if err == nil {
			err = r.CheckRejectRate()
		}
		if err != nil {
			return err
		}
		for i := range dopplers {
			if err := r.Quote(&dopplers[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// quote returns the quote of a row. It rejects an invalid row and returns false.
func quote(r *feed.Reader, name, price, quantity feed.Cell) (q provider.Quote, ok bool) {
	q = provider.Quote{Market: Name, Currency: "USD", Sales: provider.Unknown}
	if q.Name, ok = r.Name(Name, name); !ok {
		return q, false
	}
	var reason, why string
	q.Ask, reason = price.Amount(unit)
	q.Listings, why = quantity.Count()
	if reason = cmp.Or(reason, why); reason != "" {
		r.Reject(Name, name.Text, reason)
	}
	return q, reason == ""
}
