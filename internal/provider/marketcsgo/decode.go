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

// week is the window of popularity_7d.
const week = 7 * 24 * time.Hour

// traded combines all instances of a name.
type traded struct {
	ask, bid money.Micro // lowest and highest; 0: none
	sales    int64       // in a week; provider.Unknown if no instance states it
}

// trades are the bids and sales per name, and their time.
type trades struct {
	names map[string]*traded
	at    time.Time // zero: not stated
}

// headNames are the members besides the rows, in both files.
var headNames = []string{"time", "currency"}

// read reads a file with row and returns the file's own time.
func (s *Provider) read(r *feed.Reader, row func() error) (time.Time, error) {
	head := make([]feed.Cell, len(headNames))
	if err := r.Wrapped("items", row, headNames, head); err != nil {
		return time.Time{}, err
	}
	if in := head[1]; !in.Empty() && string(in.Text) != string(s.currency) {
		return time.Time{}, feed.Malformed("prices in %s, expected %s", feed.Clip(in.Text), s.currency)
	}
	return feed.Stamp(head[0], feed.TimeUnix)
}

var instanceNames = []string{"market_hash_name", "price", "buy_order", "popularity_7d"}

// readInstances reads class_instance. Each row is a class and instance of Steam's; many
// belong to one item. It keeps the best price and the sum of sales.
func (s *Provider) readInstances(ctx context.Context, body io.Reader) (trades, error) {
	all := trades{names: map[string]*traded{}}
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
		t = &traded{sales: provider.Unknown}
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

// maxNames bounds the names that are held, and with them the memory: CS2 has 40,000.
const maxNames = 100_000

// maxSales bounds the sales of an instance, so that sums do not overflow.
const maxSales = 1_000_000_000

var priceNames = []string{"market_hash_name", "price", "volume"}

// readPrices reads the offers, adds the bids and sales of each name, and then passes on the
// names that only the other file has. This file's price takes precedence. The response's
// time is that of the older file.
func (s *Provider) readPrices(ctx context.Context, body io.Reader, all trades, sink provider.Sink) (provider.Result, error) {
	answer := provider.Result{ProviderTime: all.at}
	cells := make([]feed.Cell, len(priceNames))
	left := maps.Clone(all.names) // copied, because a response may be read again
	err := feed.Read(ctx, Name, body, sink, func(r *feed.Reader) error {
		at, err := s.read(r, func() error {
			ok, err := r.Row(priceNames, cells)
			if !ok || err != nil {
				return err
			}
			return s.addPrice(r, cells, all.names, left)
		})
		if err == nil {
			err = r.CheckRejectRate()
		}
		if err != nil {
			return err
		}
		for name, t := range left {
			if err := r.Quote(s.quote(name, t.ask, provider.Unknown, t)); err != nil {
				return err
			}
		}
		if all.at.IsZero() || !at.IsZero() && at.Before(all.at) {
			answer.ProviderTime = at
		}
		return nil
	})
	return answer, err
}

// addPrice passes on an offer and removes its name from left. It also removes the name of
// an invalid row: the other file must not replace it.
func (s *Provider) addPrice(r *feed.Reader, cells []feed.Cell, all, left map[string]*traded) error {
	name, ok := r.Name(Name, cells[0])
	if !ok {
		return nil
	}
	delete(left, name)
	ask, reason := cells[1].Amount(1)
	listings, why := cells[2].Count()
	if reason = cmp.Or(reason, why); reason != "" {
		r.Reject(Name, cells[0].Text, reason)
		return nil
	}
	return r.Quote(s.quote(name, ask, listings, all[name]))
}

// quote returns the quote of an offer with its bids and sales, if known.
func (s *Provider) quote(name string, ask money.Micro, listings int64, t *traded) *provider.Quote {
	q := &provider.Quote{Market: Name, Name: name, Currency: s.currency, Ask: ask, Listings: listings, Sales: provider.Unknown}
	if t != nil {
		q.Bid, q.Sales = t.bid, t.sales
	}
	if q.Sales >= 0 {
		q.SalesWindow = week
	}
	return q
}
