package sim

import (
	"cmp"
	"context"
	"io"
	"slices"
	"time"

	"assay/internal/money"
	"assay/internal/provider"
	"assay/internal/provider/feed"
)

// reader decodes one response into a sink.
type reader struct {
	*feed.Reader
	provider *Provider
	result   provider.Result
	listed   bool        // whether the items were read
	cells    []feed.Cell // cells of the current row, in the order of rowNames
	quote    provider.Quote
}

// terms holds the members that apply to all amounts of a market.
type terms struct {
	market   string
	currency money.Currency
	unit     int64
	window   time.Duration // window of sales counts; 0 if the market reports none
}

// Names of the members that the reader uses.
var (
	termNames = []string{"market", "currency", "unit", "salesDays"}
	itemNames = []string{"name", "quotes"}
	rowNames  = []string{"name", "phase", "ask", "bid", "sale", "listings", "sales", "seen"}
)

// read calls decode to decode a response into sink. It returns the errors of feed.Read.
func (s *Provider) read(ctx context.Context, body io.Reader, sink provider.Sink, decode func(*reader) error) (provider.Result, error) {
	r := reader{provider: s, cells: make([]feed.Cell, len(rowNames))}
	err := feed.Read(ctx, Name, body, sink, func(in *feed.Reader) error {
		r.Reader = in
		err := decode(&r)
		switch {
		case err != nil:
			return err
		case !r.listed:
			return feed.Malformed("response without quotes")
		case r.result.ProviderTime.IsZero():
			return errTime
		}
		return nil
	})
	if err != nil {
		return provider.Result{}, err
	}
	return r.result, nil
}

// file decodes all quotes of one market.
func (r *reader) file(market string) error {
	var t terms
	return r.Object(func(member []byte) error {
		switch name := string(member); name {
		case "time":
			return r.time()
		case "items":
			if err := t.check(); err != nil {
				return err
			}
			if t.market != market {
				return feed.Malformed("response for another market")
			}
			return r.items(func() error {
				if ok, err := r.Row(rowNames, r.cells); !ok || err != nil {
					return err
				}
				if name, ok := r.Name(t.market, r.cells[0]); ok {
					return r.row(&t, name)
				}
				return nil
			})
		default:
			if !slices.Contains(termNames, name) {
				return r.Skip()
			}
			c, err := r.Cell()
			if err != nil {
				return err
			}
			return r.term(&t, name, c)
		}
	})
}

// names decodes the quotes of all markets for the requested names.
func (r *reader) names() error {
	markets := make(map[string]*terms, len(r.provider.markets))
	err := r.Object(func(member []byte) error {
		switch string(member) {
		case "time":
			return r.time()
		case "markets":
			return r.Array(func() error { return r.market(markets) })
		case "items":
			return r.items(func() error { return r.item(markets) })
		default:
			return r.Skip()
		}
	})
	for _, m := range r.provider.description.Markets {
		if markets[m.Key] == nil {
			r.result.Silent = append(r.result.Silent, m.Key)
		}
	}
	return err
}

// items decodes the list of items. It returns an error if the response has a second list.
func (r *reader) items(item func() error) error {
	if r.listed {
		return feed.Malformed("member items given twice")
	}
	r.listed = true
	return r.Array(item)
}

// time decodes the time of the response.
func (r *reader) time() error {
	c, err := r.Cell()
	if err != nil {
		return err
	}
	if r.result.ProviderTime, err = feed.Stamp(c, feed.TimeUnix); err == nil && r.result.ProviderTime.IsZero() {
		err = errTime
	}
	return err
}

// market decodes one market's terms.
func (r *reader) market(markets map[string]*terms) error {
	cells := make([]feed.Cell, len(termNames))
	if ok, err := r.Row(termNames, cells); !ok || err != nil {
		return err
	}
	t := new(terms)
	for i, name := range termNames {
		if cells[i].Kind == feed.Absent {
			continue
		}
		if err := r.term(t, name, cells[i]); err != nil {
			return err
		}
	}
	markets[t.market] = t
	return t.check()
}

// item decodes the quotes of all markets for one name.
func (r *reader) item(markets map[string]*terms) error {
	var cells [2]feed.Cell
	if ok, err := r.Row(itemNames, cells[:]); !ok || err != nil {
		return err
	}
	name, ok := r.Name("", cells[0])
	if !ok {
		return nil
	}
	return r.Members(cells[1], func(market []byte, rows feed.Cell) error {
		t := markets[string(market)]
		if t == nil {
			return errOrder
		}
		return r.EachRow(rows, rowNames, r.cells, func() error { return r.row(t, name) })
	})
}

// term reads one member of a market's terms.
func (r *reader) term(t *terms, name string, c feed.Cell) error {
	reason := ""
	switch name {
	case "market":
		var ok bool
		if t.market, ok = r.provider.markets[string(c.Text)]; !ok {
			return feed.Malformed("unknown market in the response")
		}
	case "currency":
		var err error
		if t.currency, err = money.ParseCurrency(string(c.Text)); err != nil {
			reason = feed.RejectCurrency
		}
	case "unit":
		t.unit, reason = c.Count()
	case "salesDays":
		var days int64
		days, reason = c.Count()
		t.window = time.Duration(min(max(days, 0), 365)) * 24 * time.Hour
	}
	if reason != "" {
		return feed.Malformed("member %s: %s", name, reason)
	}
	return nil
}

// Faults of a whole response.
var (
	errOrder = feed.Malformed("members are in the wrong order")
	errTime  = feed.Malformed("the time is missing")
)

// check returns an error if a market's terms are incomplete or invalid.
func (t *terms) check() error {
	switch {
	case t.market == "":
		return errOrder
	case t.currency == "" || t.unit != 1 && t.unit != 100 && t.unit != 1000:
		return feed.Malformed("a market's currency or unit is missing or invalid")
	default:
		return nil
	}
}

// row passes the quote in the current cells to the sink. If a cell is invalid, it rejects
// the row with the first reason.
func (r *reader) row(t *terms, name string) error {
	q, c := &r.quote, r.cells
	*q = provider.Quote{Market: t.market, Name: name, Currency: t.currency, Sales: provider.Unknown}
	var reasons [7]string
	if !c[1].Empty() {
		if q.Phase = feed.Phase(c[1].Text); q.Phase == "" {
			reasons[0] = feed.RejectPhase
		}
	}
	q.Ask, reasons[1] = c[2].Amount(t.unit)
	q.Bid, reasons[2] = c[3].Amount(t.unit)
	q.Sale, reasons[3] = c[4].Amount(t.unit)
	q.Listings, reasons[4] = c[5].Count()
	if t.window > 0 {
		if q.Sales, reasons[5] = c[6].Count(); q.Sales >= 0 {
			q.SalesWindow = t.window
		}
	}
	q.MarketTime, reasons[6] = c[7].Time(feed.TimeUnix)
	if reason := cmp.Or(reasons[:]...); reason != "" {
		r.Reject(q.Market, []byte(name), reason)
		return nil
	}
	return r.Quote(q)
}
