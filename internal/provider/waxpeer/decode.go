package waxpeer

import (
	"cmp"
	"context"
	"io"

	"assay/internal/money"
	"assay/internal/provider"
	"assay/internal/provider/feed"
)

// unit is the number of price units per dollar. Prices are in thousandths of a dollar.
const unit = 1000

// item is a name and its phase, if any.
type item struct{ name, phase string }

// offers summarises the listings of an item.
type offers struct {
	ask   money.Micro // lowest ask
	count int64
}

type phases map[item]offers

// maxDopplers is the maximum number of items with a phase. A few hundred exist.
const maxDopplers = 50_000

var dopplerNames = []string{"name", "phase", "price"}

// readDopplers reads the Doppler list. Each row is a single listing.
func readDopplers(ctx context.Context, body io.Reader) (phases, error) {
	all := phases{}
	cells := make([]feed.Cell, len(dopplerNames))
	err := feed.Read(ctx, Name, body, nil, func(r *feed.Reader) error {
		return r.Wrapped("items", func() error {
			ok, err := r.Row(dopplerNames, cells)
			if !ok || err != nil {
				return err
			}
			return all.add(r, cells)
		}, nil, nil)
	})
	return all, err
}

// add adds a listing to its item.
func (all phases) add(r *feed.Reader, cells []feed.Cell) error {
	name, ok := r.Name(Name, cells[0])
	if !ok {
		return nil
	}
	phase := feed.Phase(cells[1].Text)
	ask, reason := cells[2].Amount(unit)
	if phase == "" {
		reason = feed.RejectPhase
	}
	if reason != "" {
		r.Reject(Name, cells[0].Text, reason)
		return nil
	}
	r.Count(1)
	if ask == 0 {
		return nil // listed but not for sale
	}
	key := item{name, phase}
	o := all[key]
	if o.count == 0 && len(all) == maxDopplers {
		return feed.TooManyItems(maxDopplers)
	}
	if o.count == 0 || ask < o.ask {
		o.ask = ask
	}
	o.count++
	all[key] = o
	return nil
}

// priceNames are the members of a row of prices. steam_price is not used, because its age is
// unknown.
var priceNames = []string{"name", "min", "count"}

// readPrices reads the offers and then adds the phases. In this list, the price of a Doppler
// covers all its phases, so it becomes the quote without a phase.
func readPrices(ctx context.Context, body io.Reader, dopplers phases, sink provider.Sink) error {
	cells := make([]feed.Cell, len(priceNames))
	return feed.Read(ctx, Name, body, sink, func(r *feed.Reader) error {
		err := r.Wrapped("items", func() error {
			ok, err := r.Row(priceNames, cells)
			if !ok || err != nil {
				return err
			}
			return addPrice(r, cells)
		}, nil, nil)
		if err == nil {
			err = r.CheckRejectRate()
		}
		if err != nil {
			return err
		}
		for key, o := range dopplers {
			if err := r.Quote(quote(key, o)); err != nil {
				return err
			}
		}
		return nil
	})
}

// addPrice reads a row of prices and adds its quote.
func addPrice(r *feed.Reader, cells []feed.Cell) error {
	name, ok := r.Name(Name, cells[0])
	if !ok {
		return nil
	}
	ask, reason := cells[1].Amount(unit)
	count, why := cells[2].Count()
	if reason = cmp.Or(reason, why); reason != "" {
		r.Reject(Name, cells[0].Text, reason)
		return nil
	}
	return r.Quote(quote(item{name: name}, offers{ask, count}))
}

func quote(key item, o offers) *provider.Quote {
	return &provider.Quote{
		Market: Name, Name: key.name, Phase: key.phase, Currency: "USD", Ask: o.ask, Listings: o.count, Sales: provider.Unknown,
	}
}
