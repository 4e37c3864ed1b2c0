package cs2cap

import (
	"context"
	"io"

	"assay/internal/provider"
	"assay/internal/provider/feed"
)

// Reasons for rejecting a quote.
const (
	rejectName   = "name that was not requested"
	rejectMarket = "market that was not requested"
)

var (
	itemNames  = []string{"market_hash_name", "phase", "quotes"}
	quoteNames = []string{"provider", "lowest_ask", "lowest_ask_decimal", "quantity", "last_updated"}
	rowNames   = []string{"provider", "lowest_ask", "lowest_ask_decimal", "quantity", "last_updated", "market_hash_name", "phase"}
)

// expected is what a response must cover.
type expected struct {
	names  map[string]bool // nil: all names are accepted
	sold   sales           // known sales of the item
	answer provider.Result
	stated bool   // the response stated its contents
	heard  []bool // by market, as described: it has a quote
}

func (s *Provider) about(names ...string) expected {
	a := expected{names: make(map[string]bool, len(names)), heard: make([]bool, len(s.describe.Markets))}
	for _, name := range names {
		a.names[name] = true
	}
	return a
}

// readBatch reads the response for many names. A name that cs2cap does not know or does not
// quote still counts as covered: no market offers it.
func (s *Provider) readBatch(ctx context.Context, body io.Reader, names []string, sink provider.Sink) (provider.Result, error) {
	a := s.about(names...)
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
		case !a.stated || !seen:
			return feed.Malformed("response without meta or items")
		case items == 0 && !none:
			return feed.Malformed("empty response: neither items nor names that were not found")
		}
		return nil
	})
	return a.answer, err
}

// readItem passes on the quotes of one item.
func (s *Provider) readItem(r *feed.Reader, a *expected, cells, inner []feed.Cell) error {
	q, ok := s.subject(r, a, cells[0], cells[1])
	if !ok {
		return nil
	}
	return r.EachRow(cells[2], quoteNames, inner, func() error { return s.quote(r, a, &q, inner) })
}

// subject reads the item of a row.
func (s *Provider) subject(r *feed.Reader, a *expected, name, phase feed.Cell) (q provider.Quote, ok bool) {
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
	if n, ok := a.sold[item{q.Name, q.Phase}]; ok {
		q.Sales, q.SalesWindow = n, month
	}
	return q, true
}

// quote passes on one market's quote. q holds what the quotes of an item share. The decimal
// price has places that the amount in cents cannot have.
func (s *Provider) quote(r *feed.Reader, a *expected, q *provider.Quote, cells []feed.Cell) error {
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
	a.heard[at] = true
	return r.Quote(q)
}

// readMeta reads the response's description of itself. A requested market that cs2cap did
// not query is silent; another currency than requested makes the response invalid.
func (s *Provider) readMeta(r *feed.Reader, a *expected) error {
	names := []string{"currency", "providers_queried", "generated_at"}
	cells := make([]feed.Cell, len(names))
	if ok, err := r.Row(names, cells); err != nil {
		return err
	} else if !ok {
		return feed.Malformed("meta is not an object, or has a duplicate member")
	}
	a.stated = true
	if currency := string(cells[0].Text); currency != string(s.currency) {
		return feed.Malformed("expected currency %s: %s", s.currency, feed.Clip(cells[0].Text))
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
		a.answer.Silent = nil
		for _, m := range s.describe.Markets {
			if silent[m.Key] {
				a.answer.Silent = append(a.answer.Silent, m.Key)
			}
		}
	}
	var err error
	a.answer.ProviderTime, err = feed.Stamp(cells[2], feed.TimeRFC3339)
	return err
}

// readPage reads one page of rows for a name. If another page follows, it returns the
// offset of that page.
func (s *Provider) readPage(ctx context.Context, body io.Reader, name string, sink provider.Sink) (_ provider.Result, before int, _ error) {
	a := s.about(name)
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
					before++
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
		if err == nil && (!a.stated || !seen) {
			err = feed.Malformed("response without meta or items")
		}
		return err
	})
	if !more {
		before = 0
	}
	return a.answer, before, err
}
