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

// window is a period of reported sales.
type window struct {
	length time.Duration
	cell   int // index in saleNames
}

const day = 24 * time.Hour

// saleNames are the members of a row of sales/history.
var saleNames = []string{"market_hash_name", "version", "currency", "last_24_hours", "last_7_days", "last_30_days", "last_90_days"}

// windows are in the order of the response, shortest first.
var windows = [...]window{{day, 3}, {7 * day, 4}, {30 * day, 5}, {90 * day, 6}}

// windowFor returns the shortest window of at least length, or else the longest.
func windowFor(length time.Duration) window {
	for _, w := range windows {
		if w.length >= length {
			return w
		}
	}
	return windows[len(windows)-1]
}

// item is a name in one of its versions.
type item struct{ name, phase string }

// sold holds the sales of an item.
type sold struct {
	median   money.Micro // of the newest window with enough sales; 0: none
	count    int64       // in the provider's window, or provider.Unknown
	currency money.Currency
}

type sales map[item]sold

// errEmpty rejects an empty array: it is no evidence that all offers have ended, or that
// there were no sales.
var errEmpty = feed.Malformed("the list is empty")

// enough is the number of sales in 7 days from which their median is preferred to that of
// 30 days.
const enough = 3

// maxSold bounds the items whose sales are held, and with them the memory. No game has half
// as many.
const maxSold = 100_000

// readSales reads sales/history. The sales of a missing name are unknown, not 0.
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
			sale := sold{count: provider.Unknown, currency: currency}
			for _, w := range windows {
				median, count, ok := s.readWindow(r, cells[w.cell], inner)
				if !ok {
					return nil
				}
				if w == s.window {
					sale.count = count
				}
				// Take the newest window with enough sales, up to 90 days.
				if sale.median == 0 && (w.length > 7*day || w.length == 7*day && count >= enough) {
					sale.median = median
				}
			}
			switch first, twice := all[key]; {
			case twice && first != sale:
				all[key] = sold{} // contradicting rows: the sales are unknown
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

// readWindow reads the median and the number of sales of a window.
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

// item reads the name of a row and, for a Doppler-like finish, its version.
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
		return key, s.currency, true // the usual case
	}
	in, err := money.ParseCurrency(string(currency.Text))
	if err != nil {
		r.Reject(Name, name.Text, feed.RejectCurrency)
	}
	return key, in, err == nil
}

// itemNames are the members of a row of items that are read. Mean and median cover offers
// with stickers and rare patterns, so they are not used.
var itemNames = []string{"market_hash_name", "version", "currency", "min_price", "quantity", "updated_at"}

// readItems reads items, adds the sales of each, and then passes on the items with sales
// and without offers.
func (s *Provider) readItems(ctx context.Context, body io.Reader, all sales, sink provider.Sink) (provider.Result, error) {
	var answer provider.Result
	cells := make([]feed.Cell, len(itemNames))
	left := maps.Clone(all) // copied, because a response may be read again
	err := feed.Read(ctx, Name, body, sink, func(r *feed.Reader) error {
		err := r.Array(func() error {
			q, ok, err := s.offer(r, cells)
			if err != nil {
				return err
			}
			if !ok { // an invalid row is no evidence that the item is not offered
				delete(left, item{string(cells[0].Text), feed.Phase(cells[1].Text)})
				return nil
			}
			if q.MarketTime.After(answer.ProviderTime) {
				answer.ProviderTime = q.MarketTime
			}
			key := item{q.Name, q.Phase}
			s.addSales(&q, all[key])
			delete(left, key)
			return r.Quote(&q)
		})
		if err != nil {
			return err
		}
		if err := r.CheckRejectRate(); err != nil {
			return err // check this before passing on items of the other response, which would outweigh rejected rows
		}
		if r.Quotes() == 0 {
			return errEmpty
		}
		for key, sale := range left {
			if sale == (sold{}) {
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
	return answer, err
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
		reason = feed.RejectNoPrice // there are offers
	}
	if reason != "" {
		r.Reject(Name, cells[0].Text, reason)
		return q, false, nil
	}
	return q, true, nil
}

// addSales adds the sales of the item. It drops an amount in another currency than the
// offer's, because a quote has one currency.
func (s *Provider) addSales(q *provider.Quote, sale sold) {
	if sale.currency == "" {
		return // unknown
	}
	if q.Sales = sale.count; q.Sales >= 0 {
		q.SalesWindow = s.window.length
	}
	if sale.currency == q.Currency {
		q.Sale = sale.median
	}
}
