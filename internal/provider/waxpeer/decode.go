package waxpeer

import (
	"cmp"
	"context"
	"io"

	"assay/internal/money"
	"assay/internal/provider"
	"assay/internal/provider/feed"
)

// unit is one dollar in the unit of prices: thousandths.
const unit = 1000

// item is a name in one of its phases.
type item struct{ name, phase string }

// offers are the listings of an item.
type offers struct {
	ask   money.Micro // the lowest
	count int64
}

type phases map[item]offers

// maxDopplers bounds the phases of all knives; there are some hundreds.
const maxDopplers = 50_000

var dopplerNames = []string{"name", "phase", "price"}

// readDopplers reads a list whose rows are single listings.
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
		return nil // listed, but not for sale
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

// priceNames are the members of a row of prices that are read. steam_price is of unknown
// age, so it is not used.
var priceNames = []string{"name", "min", "count"}

// readPrices reads the offers and then passes on the phases. The price of a Doppler in this
// list covers all its phases; it counts for the plain name.
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

// addPrice passes on a row of prices.
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
