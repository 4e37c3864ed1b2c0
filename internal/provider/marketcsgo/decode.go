package marketcsgo

import (
	"cmp"
	"context"
	"io"
	"maps"
	"time"

	"assay/internal/money"
	"assay/internal/provider"
	"assay/internal/provider/feed"
)

// week is the period of popularity_7d.
const week = 7 * 24 * time.Hour

// itemTrades combines all instances of a name.
type itemTrades struct {
	ask, bid money.Micro // lowest ask and highest bid; 0: none
	sales    int64       // sales in a week; provider.Unknown if no instance reports them
}

// trades holds the bids and sales of each name.
type trades struct {
	names map[string]*itemTrades
	at    time.Time // time of the file; zero: not reported
}

// headNames are the members of both files except the rows.
var headNames = []string{"time", "currency"}

// read reads a file, calls row for each of its rows and returns the time of the file.
func (s *Provider) read(r *feed.Reader, row func() error) (time.Time, error) {
	head := make([]feed.Cell, len(headNames))
	if err := r.Wrapped("items", row, headNames, head); err != nil {
		return time.Time{}, err
	}
	if in := head[1]; !in.Empty() && string(in.Text) != string(s.currency) {
		return time.Time{}, feed.Malformed("the prices are in %s, expected %s", feed.Clip(in.Text), s.currency)
	}
	return feed.Stamp(head[0], feed.TimeUnix)
}

var instanceNames = []string{"market_hash_name", "price", "buy_order", "popularity_7d"}

// readInstances reads class_instance. Each row is a Steam class and instance, and an item has
// many of them. readInstances keeps the best prices and the sum of sales of each item.
func (s *Provider) readInstances(ctx context.Context, body io.Reader) (trades, error) {
	all := trades{names: map[string]*itemTrades{}}
	cells := make([]feed.Cell, len(instanceNames))
	err := feed.Read(ctx, Name, body, nil, func(r *feed.Reader) error {
		var err error
		all.at, err = s.read(r, func() error {
			ok, err := r.Row(instanceNames, cells)
			if !ok || err != nil {
				return err
			}
			return all.add(r, cells)
		})
		return err
	})
	return all, err
}

// add adds an instance to its name.
func (all *trades) add(r *feed.Reader, cells []feed.Cell) error {
	ask, reason := cells[1].Amount(1)
	bid, why := cells[2].Amount(1)
	sales, wrong := cells[3].Count()
	if reason = cmp.Or(reason, why, wrong); reason != "" {
		r.Reject(Name, cells[0].Text, reason)
		return nil
	}
	t := all.names[string(cells[0].Text)]
	if t == nil || cells[0].Kind != feed.Text {
		name, ok := r.Name(Name, cells[0])
		if !ok {
			return nil
		}
		if len(all.names) == maxNames {
			return feed.TooManyItems(maxNames)
		}
		t = &itemTrades{sales: provider.Unknown}
		all.names[name] = t
	}
	if t.ask == 0 || ask > 0 && ask < t.ask {
		t.ask = ask
	}
	t.bid = max(t.bid, bid)
	if sales >= 0 {
		t.sales = max(t.sales, 0) + min(sales, maxSales)
	}
	r.Count(1)
	return nil
}

// maxNames is the maximum number of names in memory. CS2 has 40,000.
const maxNames = 100_000

// maxSales limits the sales of one instance, so that sums cannot overflow.
const maxSales = 1_000_000_000

var priceNames = []string{"market_hash_name", "price", "volume"}

// readPrices reads the offers and adds the bids and sales of each name. It then adds a quote
// for each name that only class_instance has. If both files have a price for a name, it uses
// the price of the offer. The time of the result is the time of the older file.
func (s *Provider) readPrices(ctx context.Context, body io.Reader, all trades, sink provider.Sink) (provider.Result, error) {
	result := provider.Result{ProviderTime: all.at}
	cells := make([]feed.Cell, len(priceNames))
	unlisted := maps.Clone(all.names) // copied, because a retry reads the response again
	err := feed.Read(ctx, Name, body, sink, func(r *feed.Reader) error {
		at, err := s.read(r, func() error {
			ok, err := r.Row(priceNames, cells)
			if !ok || err != nil {
				return err
			}
			return s.addPrice(r, cells, all.names, unlisted)
		})
		if err == nil {
			err = r.CheckRejectRate()
		}
		if err != nil {
			return err
		}
		for name, t := range unlisted {
			if err := r.Quote(s.quote(name, t.ask, provider.Unknown, t)); err != nil {
				return err
			}
		}
		if all.at.IsZero() || !at.IsZero() && at.Before(all.at) {
			result.ProviderTime = at
		}
		return nil
	})
	return result, err
}

// addPrice reads an offer, adds its quote and removes its name from unlisted. It also removes
// the name of an invalid row, so that the price in class_instance is not used instead.
func (s *Provider) addPrice(r *feed.Reader, cells []feed.Cell, all, unlisted map[string]*itemTrades) error {
	name, ok := r.Name(Name, cells[0])
	if !ok {
		return nil
	}
	delete(unlisted, name)
	ask, reason := cells[1].Amount(1)
	listings, why := cells[2].Count()
	if reason = cmp.Or(reason, why); reason != "" {
		r.Reject(Name, cells[0].Text, reason)
		return nil
	}
	return r.Quote(s.quote(name, ask, listings, all[name]))
}

// quote returns the quote of an offer with its bids and sales, if known.
func (s *Provider) quote(name string, ask money.Micro, listings int64, t *itemTrades) *provider.Quote {
	q := &provider.Quote{Market: Name, Name: name, Currency: s.currency, Ask: ask, Listings: listings, Sales: provider.Unknown}
	if t != nil {
		q.Bid, q.Sales = t.bid, t.sales
	}
	if q.Sales >= 0 {
		q.SalesWindow = week
	}
	return q
}
