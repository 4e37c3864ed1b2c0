package sim

import (
	"errors"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"assay/internal/catalog"
	"assay/internal/money"
	"assay/internal/provider"
)

// reader decodes one answer into a sink, as a stream: it keeps one row.
type reader struct {
	decoder
	source  *Source
	sink    provider.Sink
	quote   provider.Quote
	refused error // what the sink refused the answer with
}

// terms is what holds for all amounts of a market.
type terms struct {
	market   string
	currency money.Currency
	unit     int64
	window   time.Duration // of its sales; 0: it counts none
}

func newReader(s *Source, body io.Reader, sink provider.Sink) *reader {
	return &reader{decoder: decoder{dec: jsontext.NewDecoder(body)}, source: s, sink: sink}
}

// Why a row is rejected.
const (
	rejectNoName   = "name is missing"
	rejectNameKind = "name is not a text"
	rejectName     = "name is not 1 to 512 bytes of utf-8 without nul"
	rejectPhase    = "phase is unknown"
	rejectSyntax   = "amount is not a number"
	rejectSign     = "amount is not positive"
	rejectRange    = "amount is out of range"
	rejectCount    = "count is not a whole number"
	rejectTime     = "time is out of range"
)

// What is wrong with an answer as a whole.
var (
	errOrder    = errors.New("members are not in their order")
	errTerms    = errors.New("a market's currency or unit is missing or impossible")
	errMarket   = errors.New("a market that the source does not offer")
	errOther    = errors.New("not the market that was asked for")
	errUnquoted = errors.New("no quotes in it")
	errTime     = errors.New("the time is missing or out of range")
)

// file decodes what one market says of everything.
func (r *reader) file(market string) (provider.Answer, error) {
	var answer provider.Answer
	var t terms
	var seen bool
	err := r.object(func(member []byte) error {
		var err error
		switch string(member) {
		case `"time"`:
			answer.ProviderTime, err = r.stamp()
		case `"items"`:
			seen = true
			if t.market != market && t.market != "" {
				return errOther
			}
			return r.fileRows(&t)
		default:
			return r.term(&t, member)
		}
		return err
	})
	return r.finish(answer, seen, err)
}

func (r *reader) fileRows(t *terms) error {
	if err := t.check(); err != nil {
		return err
	}
	return r.array('{', func() error { return r.row(t, "", true) })
}

// names decodes what every market says of the names that were asked for.
func (r *reader) names() (provider.Answer, error) {
	var answer provider.Answer
	markets := make(map[string]*terms, len(r.source.markets))
	var seen bool
	err := r.object(func(member []byte) error {
		var err error
		switch string(member) {
		case `"time"`:
			answer.ProviderTime, err = r.stamp()
			return err
		case `"markets"`:
			return r.array('{', func() error { return r.market(markets) })
		case `"items"`:
			seen = true
			return r.array('{', func() error { return r.item(markets) })
		default:
			return r.dec.SkipValue()
		}
	})
	for _, m := range r.source.description.Markets {
		if markets[m.Key] == nil {
			answer.Silent = append(answer.Silent, m.Key)
		}
	}
	return r.finish(answer, seen, err)
}

// market decodes one market's terms.
func (r *reader) market(markets map[string]*terms) error {
	t := new(terms)
	if err := r.object(func(member []byte) error { return r.term(t, member) }); err != nil {
		return err
	}
	if err := t.check(); err != nil {
		return err
	}
	markets[t.market] = t
	return nil
}

// item decodes what all markets say of one name.
func (r *reader) item(markets map[string]*terms) error {
	var name string
	return r.object(func(member []byte) error {
		var err error
		switch string(member) {
		case `"name"`:
			name, err = r.text()
			return err
		case `"quotes"`:
			return r.object(func(member []byte) error {
				t := markets[string(r.unquote(member))]
				if t == nil {
					return errOrder
				}
				return r.array('{', func() error { return r.row(t, name, false) })
			})
		default:
			return r.dec.SkipValue()
		}
	})
}

// finish ends the document. Whatever was wrong with it is an error of
// KindProtocol, but for what the sink refused.
func (r *reader) finish(answer provider.Answer, seen bool, err error) (provider.Answer, error) {
	if r.refused != nil {
		return provider.Answer{}, r.refused
	}
	if err == nil {
		err = r.end()
	}
	switch {
	case err != nil:
	case !seen:
		err = errUnquoted
	case answer.ProviderTime.IsZero():
		err = errTime
	default:
		return answer, nil
	}
	e := provider.Protocol(Name, "malformed answer: %.200v", err)
	e.Err = err
	return provider.Answer{}, e
}

// term decodes one member of a market's terms; others are passed over.
func (r *reader) term(t *terms, member []byte) error {
	var err error
	switch string(member) {
	case `"market"`:
		var raw []byte
		if raw, err = r.scalar('"'); err != nil {
			return err
		}
		var ok bool
		if t.market, ok = r.source.markets[string(r.unquote(raw))]; !ok {
			return errMarket
		}
	case `"currency"`:
		var code string
		if code, err = r.text(); err == nil {
			t.currency, err = money.ParseCurrency(code)
		}
	case `"unit"`:
		t.unit, err = r.integer()
	case `"salesDays"`:
		var days int64
		days, err = r.integer()
		t.window = time.Duration(min(max(days, 0), 365)) * 24 * time.Hour
	default:
		return r.dec.SkipValue()
	}
	return err
}

// check reports whether a market's terms are whole.
func (t *terms) check() error {
	switch {
	case t.market == "":
		return errOrder
	case t.currency == "" || t.unit != 1 && t.unit != 100 && t.unit != 1000:
		return errTerms
	default:
		return nil
	}
}

// row decodes one quote and hands it on; a faulty one it rejects, for its first
// fault. In a file the row itself tells its name.
func (r *reader) row(t *terms, name string, named bool) error {
	r.quote = provider.Quote{
		Market: t.market, Name: name, Currency: t.currency,
		Listings: provider.Unknown, Sales: provider.Unknown,
	}
	fault := ""
	err := r.object(func(member []byte) error {
		reason, err := r.field(t, member, named)
		if fault == "" {
			fault = reason
		}
		return err
	})
	if err != nil {
		return err
	}
	q := &r.quote
	if fault == "" {
		fault = checkName(q.Name)
	}
	if fault != "" {
		r.sink.Reject(q.Market, q.Name, fault)
		return nil
	}
	if q.Sales >= 0 {
		q.SalesWindow = t.window
	}
	r.refused = r.sink.Quote(q)
	return r.refused
}

func checkName(name string) (reason string) {
	switch {
	case name == "":
		return rejectNoName
	case catalog.CheckName(name) != nil:
		return rejectName
	default:
		return ""
	}
}

// field decodes one member of a row. A reason tells why the row is no quote, an
// error why the answer is none.
func (r *reader) field(t *terms, member []byte, named bool) (reason string, err error) {
	q := &r.quote
	switch string(member) {
	case `"name"`:
		if named {
			return r.name()
		}
		return "", r.dec.SkipValue()
	case `"phase"`:
		return r.phase()
	case `"ask"`:
		return r.amount(&q.Ask, t.unit)
	case `"bid"`:
		return r.amount(&q.Bid, t.unit)
	case `"sale"`:
		return r.amount(&q.Sale, t.unit)
	case `"listings"`:
		return r.count(&q.Listings)
	case `"sales"`:
		if t.window == 0 {
			return "", r.dec.SkipValue()
		}
		return r.count(&q.Sales)
	case `"seen"`:
		return r.seen()
	default:
		return "", r.dec.SkipValue()
	}
}

func (r *reader) name() (reason string, err error) {
	raw, err := r.dec.ReadValue()
	if err != nil {
		return "", err
	}
	if raw.Kind() != '"' {
		return rejectNameKind, nil
	}
	r.quote.Name = string(r.unquote(raw))
	return "", nil
}

// phase decodes a phase; null is none.
func (r *reader) phase() (reason string, err error) {
	raw, err := r.dec.ReadValue()
	if err != nil || raw.Kind() == 'n' {
		return "", err
	}
	if raw.Kind() != '"' {
		return rejectPhase, nil
	}
	text := r.unquote(raw)
	at := slices.IndexFunc(catalog.Phases, func(p string) bool { return p == string(text) })
	if at < 0 {
		return rejectPhase, nil
	}
	r.quote.Phase = catalog.Phases[at]
	return "", nil
}

// amount decodes an amount, a number or one within a string; null is none.
func (r *reader) amount(to *money.Micro, unit int64) (reason string, err error) {
	raw, err := r.dec.ReadValue()
	if err != nil {
		return "", err
	}
	text := []byte(raw)
	switch raw.Kind() {
	case 'n':
		return "", nil
	case '"':
		text = r.unquote(raw)
	case '0':
	default:
		return rejectSyntax, nil
	}
	m, invalid := money.Parse(text, unit)
	switch {
	case errors.Is(invalid, money.ErrRange):
		return rejectRange, nil
	case invalid != nil:
		return rejectSyntax, nil //nolint:nilerr // a bad amount rejects the row and fails nothing
	case m <= 0: // a market that has none says null, or nothing
		return rejectSign, nil
	}
	*to = m
	return "", nil
}

// count decodes a number of things; null leaves it unknown.
func (r *reader) count(to *int64) (reason string, err error) {
	n, null, reason, err := r.whole(rejectCount)
	if err != nil || null || reason != "" {
		return reason, err
	}
	if n < 0 {
		return rejectCount, nil
	}
	*to = n
	return "", nil
}

// seen decodes the time that a market states for a row.
func (r *reader) seen() (reason string, err error) {
	n, null, reason, err := r.whole(rejectTime)
	if err != nil || null || reason != "" {
		return reason, err
	}
	if !plausible(n) {
		return rejectTime, nil
	}
	r.quote.MarketTime = time.Unix(n, 0).UTC()
	return "", nil
}

// whole decodes a whole number or null; fault is the reason where it is
// neither.
func (r *reader) whole(fault string) (n int64, null bool, reason string, err error) {
	raw, err := r.dec.ReadValue()
	if err != nil || raw.Kind() == 'n' {
		return 0, true, "", err
	}
	n, invalid := strconv.ParseInt(string(raw), 10, 64)
	if invalid != nil {
		return 0, false, fault, nil //nolint:nilerr // a bad number rejects the row and fails nothing
	}
	return n, false, "", nil
}

// stamp decodes the answer's own time.
func (r *reader) stamp() (time.Time, error) {
	n, err := r.integer()
	if err != nil {
		return time.Time{}, err
	}
	if !plausible(n) {
		return time.Time{}, errTime
	}
	return time.Unix(n, 0).UTC(), nil
}

// plausible reports whether Unix seconds lie in the years 2000 to 2199.
func plausible(seconds int64) bool { return seconds >= 946_684_800 && seconds < 7_258_118_400 }
