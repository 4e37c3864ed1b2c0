package skinport

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

// window is a period with a reported sales count.
type window struct {
	length time.Duration
	cell   int // index in saleNames
}

const day = 24 * time.Hour

// saleNames are the members of a row of sales/history.
var saleNames = []string{"market_hash_name", "version", "currency", "last_24_hours", "last_7_days", "last_30_days", "last_90_days"}

// windows are sorted like the members of the response, shortest first.
var windows = [...]window{{day, 3}, {7 * day, 4}, {30 * day, 5}, {90 * day, 6}}

// windowFor returns the shortest window of at least the given length, or the longest window.
func windowFor(length time.Duration) window {
	for _, w := range windows {
		if w.length >= length {
			return w
		}
	}
	return windows[len(windows)-1]
}

// item is a name and its version, if any.
type item struct{ name, phase string }

// itemSales holds the sales of one item.
type itemSales struct {
	median   money.Micro // median of the shortest window with enough sales; 0: none
	count    int64       // in the provider's window, or provider.Unknown
	currency money.Currency
}

type sales map[item]itemSales

// errEmpty rejects an empty array. An empty array does not prove that all offers ended or that
// there were no sales.
var errEmpty = feed.Malformed("the list is empty")

// enough is the number of sales in 7 days that makes the 7-day median usable. With fewer
// sales, the 30-day median is used.
const enough = 3

// maxSold is the maximum number of items with sales. It bounds memory use. Every game has
// fewer than half as many items.
const maxSold = 100_000

// readSales reads sales/history. The sales of a missing name are unknown, which differs from
// 0.
func (s *Provider) readSales(ctx context.Context, body io.Reader) (sales, error) {
	all := sales{}
	cells := make([]feed.Cell, len(saleNames))
	inner := make([]feed.Cell, 2)
	err := feed.Read(ctx, Name, body, nil, func(r *feed.Reader) error {
		err := r.Array(func() error {
			ok, err := r.Row(saleNames, cells)
			if !ok || err != nil {
				return err
			}
			key, currency, ok := s.item(r, cells[0], cells[1], cells[2])
			if !ok {
				return nil
			}
			sale := itemSales{count: provider.Unknown, currency: currency}
			for _, w := range windows {
				median, count, ok := s.readWindow(r, cells[w.cell], inner)
				if !ok {
					return nil
				}
				if w == s.window {
					sale.count = count
				}
				// Use the shortest window with enough sales, from 7 to 90 days.
				if sale.median == 0 && (w.length > 7*day || w.length == 7*day && count >= enough) {
					sale.median = median
				}
			}
			switch first, twice := all[key]; {
			case twice && first != sale:
				all[key] = itemSales{} // the rows conflict, so the sales are unknown
				r.Reject(Name, []byte(key.name), provider.RejectConflict)
				return nil
			case twice:
				r.Reject(Name, []byte(key.name), provider.RejectRepeat)
				return nil
			case len(all) == maxSold:
				return feed.TooManyItems(maxSold)
			}
			r.Count(1)
			all[key] = sale
			return nil
		})
		if err == nil && len(all) == 0 {
			err = errEmpty
		}
		return err
	})
	return all, err
}

// readWindow reads the median and the sales count of a window.
func (s *Provider) readWindow(r *feed.Reader, c feed.Cell, inner []feed.Cell) (median money.Micro, count int64, ok bool) {
	if !r.Within(c, []string{"median", "volume"}, inner) {
		return 0, 0, false
	}
	median, reason := inner[0].Amount(1)
	if reason == "" {
		count, reason = inner[1].Count()
	}
	if reason != "" {
		r.Reject(Name, nil, reason)
		return 0, 0, false
	}
	return median, count, true
}

// item reads the name of a row, its version if present, and its currency. Only finishes such
// as Doppler have a version.
func (s *Provider) item(r *feed.Reader, name, version, currency feed.Cell) (key item, in money.Currency, ok bool) {
	if key.name, ok = r.Name(Name, name); !ok {
		return key, "", false
	}
	if !version.Empty() {
		if key.phase = feed.Phase(version.Text); key.phase == "" {
			r.Reject(Name, name.Text, feed.RejectPhase)
			return key, "", false
		}
	}
	if currency.Kind == feed.Text && string(currency.Text) == string(s.currency) {
		return key, s.currency, true // the usual case, without parsing
	}
	in, err := money.ParseCurrency(string(currency.Text))
	if err != nil {
		r.Reject(Name, name.Text, feed.RejectCurrency)
	}
	return key, in, err == nil
}

// itemNames are the members of a row of items. Mean and median are not used, because they
// include offers with stickers and rare patterns.
var itemNames = []string{"market_hash_name", "version", "currency", "min_price", "quantity", "updated_at"}

// readItems reads items and adds the sales of each item. It then adds a quote for each item
// with sales but without an offer.
func (s *Provider) readItems(ctx context.Context, body io.Reader, all sales, sink provider.Sink) (provider.Result, error) {
	var result provider.Result
	cells := make([]feed.Cell, len(itemNames))
	unlisted := maps.Clone(all) // copied, because a retry reads the response again
	err := feed.Read(ctx, Name, body, sink, func(r *feed.Reader) error {
		err := r.Array(func() error {
			q, ok, err := s.offer(r, cells)
			if err != nil {
				return err
			}
			if !ok { // an invalid row is no evidence that the item has no offers
				delete(unlisted, item{string(cells[0].Text), feed.Phase(cells[1].Text)})
				return nil
			}
			if q.MarketTime.After(result.ProviderTime) {
				result.ProviderTime = q.MarketTime
			}
			key := item{q.Name, q.Phase}
			s.addSales(&q, all[key])
			delete(unlisted, key)
			return r.Quote(&q)
		})
		if err != nil {
			return err
		}
		if err := r.CheckRejectRate(); err != nil {
			return err // check now, because the quotes below would outnumber rejected rows
		}
		if r.Quotes() == 0 {
			return errEmpty
		}
		for key, sale := range unlisted {
			if sale == (itemSales{}) {
				continue
			}
			q := provider.Quote{
				Market: Name, Name: key.name, Phase: key.phase, Currency: sale.currency, Listings: 0, Sales: provider.Unknown,
			}
			s.addSales(&q, sale)
			if err := r.Quote(&q); err != nil {
				return err
			}
		}
		return nil
	})
	return result, err
}

// offer reads a row of items. It rejects an invalid row and returns false.
func (s *Provider) offer(r *feed.Reader, cells []feed.Cell) (q provider.Quote, ok bool, err error) {
	if ok, err = r.Row(itemNames, cells); !ok || err != nil {
		return q, false, err
	}
	key, currency, ok := s.item(r, cells[0], cells[1], cells[2])
	if !ok {
		return q, false, nil
	}
	q = provider.Quote{Market: Name, Name: key.name, Phase: key.phase, Currency: currency, Sales: provider.Unknown}
	var reason, why, wrong string
	q.Ask, reason = cells[3].Amount(1)
	q.Listings, why = cells[4].Count()
	q.MarketTime, wrong = cells[5].Time(feed.TimeUnix)
	if reason = cmp.Or(reason, why, wrong); reason == "" && q.Ask == 0 && q.Listings > 0 {
		reason = feed.RejectNoPrice
	}
	if reason != "" {
		r.Reject(Name, cells[0].Text, reason)
		return q, false, nil
	}
	return q, true, nil
}

// addSales adds the sales of the item to q. A quote has only one currency, so an amount in
// another currency is dropped.
func (s *Provider) addSales(q *provider.Quote, sale itemSales) {
	if sale.currency == "" {
		return // the sales are unknown
	}
	if q.Sales = sale.count; q.Sales >= 0 {
		q.SalesWindow = s.window.length
	}
	if sale.currency == q.Currency {
		q.Sale = sale.median
	}
}
