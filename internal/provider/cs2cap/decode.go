package cs2cap

import (
	"context"
	"io"

	"assay/internal/provider"
	"assay/internal/provider/feed"
)

// Reasons for rejecting a quote.
const (
	rejectName   = "name was not requested"
	rejectMarket = "market was not requested"
)

var (
	itemNames  = []string{"market_hash_name", "phase", "quotes"}
	quoteNames = []string{"provider", "lowest_ask", "lowest_ask_decimal", "quantity", "last_updated"}
	rowNames   = []string{"provider", "lowest_ask", "lowest_ask_decimal", "quantity", "last_updated", "market_hash_name", "phase"}
)

// contents holds the requested contents of a response and the contents found in it.
type contents struct {
	names   map[string]bool // requested names; nil: all names are accepted
	sales   sales           // known sales of each item
	result  provider.Result
	hasMeta bool   // the response has meta
	quoted  []bool // whether each market has a quote, in the order of describe.Markets
}

func (s *Provider) expect(names ...string) contents {
	a := contents{names: make(map[string]bool, len(names)), quoted: make([]bool, len(s.describe.Markets))}
	for _, name := range names {
		a.names[name] = true
	}
	return a
}

// readBatch reads the response for many names. A name that cs2cap does not know or quote is
// not an error. It means that no market offers the item.
func (s *Provider) readBatch(ctx context.Context, body io.Reader, names []string, sink provider.Sink) (provider.Result, error) {
	a := s.expect(names...)
	var seen, none bool
	cells, inner := make([]feed.Cell, len(itemNames)), make([]feed.Cell, len(quoteNames))
	err := feed.Read(ctx, Name, body, sink, func(r *feed.Reader) error {
		items := 0
		err := r.Object(func(member []byte) error {
			switch string(member) {
			case "meta":
				return s.readMeta(r, &a)
			case "items":
				seen = true
				return r.Array(func() error {
					items++
					ok, err := r.Row(itemNames, cells)
					if !ok || err != nil {
						return err
					}
					return s.readItem(r, &a, cells, inner)
				})
			case "items_not_found", "names_not_found":
				return r.Array(func() error {
					none = true
					return r.Skip()
				})
			}
			return r.Skip()
		})
		switch {
		case err != nil:
			return err
		case !a.hasMeta || !seen:
			return feed.Malformed("the response contains no meta or no items")
		case items == 0 && !none:
			return feed.Malformed("the response contains neither items nor a list of unknown names")
		}
		return nil
	})
	return a.result, err
}

// readItem reads the quotes of one item.
func (s *Provider) readItem(r *feed.Reader, a *contents, cells, inner []feed.Cell) error {
	q, ok := s.subject(r, a, cells[0], cells[1])
	if !ok {
		return nil
	}
	return r.EachRow(cells[2], quoteNames, inner, func() error { return s.quote(r, a, &q, inner) })
}

// subject reads the item of a row.
func (s *Provider) subject(r *feed.Reader, a *contents, name, phase feed.Cell) (q provider.Quote, ok bool) {
	q = provider.Quote{Currency: s.currency, Sales: provider.Unknown}
	if q.Name, ok = r.Name("", name); !ok {
		return q, false
	}
	if a.names != nil && !a.names[q.Name] {
		r.Reject("", name.Text, rejectName)
		return q, false
	}
	if !phase.Empty() {
		if q.Phase = feed.Phase(phase.Text); q.Phase == "" {
			r.Reject("", name.Text, feed.RejectPhase)
			return q, false
		}
	}
	if n, ok := a.sales[item{q.Name, q.Phase}]; ok {
		q.Sales, q.SalesWindow = n, month
	}
	return q, true
}

// quote adds the quote of one market. q holds the item and its sales. The decimal price is
// preferred, because it can have more places than the price in cents.
func (s *Provider) quote(r *feed.Reader, a *contents, q *provider.Quote, cells []feed.Cell) error {
	at, ok := s.markets[string(cells[0].Text)]
	if !ok {
		r.Reject("", cells[0].Text, rejectMarket)
		return nil
	}
	q.Market = s.describe.Markets[at].Key
	var reason string
	if q.Ask, reason = cells[2].Amount(1); cells[2].Empty() {
		q.Ask, reason = cells[1].Amount(100)
	}
	if reason == "" {
		q.Listings, reason = cells[3].Count()
	}
	if reason == "" {
		q.MarketTime, reason = cells[4].Time(feed.TimeRFC3339)
	}
	if reason != "" {
		r.Reject(q.Market, []byte(q.Name), reason)
		return nil
	}
	a.quoted[at] = true
	return r.Quote(q)
}

// readMeta reads the member meta. A requested market that cs2cap did not query is silent. An
// unexpected currency makes the response invalid.
func (s *Provider) readMeta(r *feed.Reader, a *contents) error {
	names := []string{"currency", "providers_queried", "generated_at"}
	cells := make([]feed.Cell, len(names))
	if ok, err := r.Row(names, cells); err != nil {
		return err
	} else if !ok {
		return feed.Malformed("meta is not an object or has a duplicate member")
	}
	a.hasMeta = true
	if currency := string(cells[0].Text); currency != string(s.currency) {
		return feed.Malformed("the prices are in %s, expected %s", feed.Clip(cells[0].Text), s.currency)
	}
	if queried := cells[1]; queried.Kind == feed.Other {
		silent := map[string]bool{}
		for _, m := range s.describe.Markets {
			silent[m.Key] = true
		}
		_ = r.Each(queried, func(c feed.Cell) error {
			delete(silent, string(c.Text))
			return nil
		})
		a.result.Silent = nil
		for _, m := range s.describe.Markets {
			if silent[m.Key] {
				a.result.Silent = append(a.result.Silent, m.Key)
			}
		}
	}
	var err error
	a.result.ProviderTime, err = feed.Stamp(cells[2], feed.TimeRFC3339)
	return err
}

// readPage reads one page of rows for a name. It returns the number of rows if another page
// follows, and 0 after the last page.
func (s *Provider) readPage(ctx context.Context, body io.Reader, name string, sink provider.Sink) (_ provider.Result, rows int, _ error) {
	a := s.expect(name)
	var seen, more bool
	cells, end := make([]feed.Cell, len(rowNames)), make([]feed.Cell, 1)
	err := feed.Read(ctx, Name, body, sink, func(r *feed.Reader) error {
		err := r.Object(func(member []byte) error {
			switch string(member) {
			case "meta":
				return s.readMeta(r, &a)
			case "items":
				seen = true
				return r.Array(func() error {
					rows++
					ok, err := r.Row(rowNames, cells)
					if !ok || err != nil {
						return err
					}
					q, ok := s.subject(r, &a, cells[5], cells[6])
					if !ok {
						return nil
					}
					return s.quote(r, &a, &q, cells)
				})
			case "pagination":
				_, err := r.Row([]string{"has_next"}, end)
				more = string(end[0].Text) == "true"
				return err
			}
			return r.Skip()
		})
		if err == nil && (!a.hasMeta || !seen) {
			err = feed.Malformed("the response contains no meta or no items")
		}
		return err
	})
	if !more {
		rows = 0
	}
	return a.result, rows, err
}
