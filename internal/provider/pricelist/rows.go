package pricelist

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"assay/internal/catalog"
	"assay/internal/money"
	"assay/internal/provider"
	"assay/internal/provider/feed"
)

// rows converts the rows of one list into quotes, in order. It passes all rows for the
// same item and market to the sink, which detects duplicates and conflicts.
type rows struct {
	*feed.CountingSink
	list *list
	q    provider.Quote

	byValue map[string]int // index of the market by value of the market field

	priced  []int    // number of quotes with an ask or a sale, by market
	rows    int      // number of rows read
	unknown []string // some values of the market field that are not configured

	time     time.Time      // time of the whole list; zero until it is read
	currency money.Currency // last valid currency from a currency field
}

func newRows(l *list, sink provider.Sink) *rows {
	r := &rows{
		CountingSink: feed.NewCountingSink(sink, l.maxItems), list: l, byValue: map[string]int{}, priced: make([]int, len(l.quotes)),
	}
	for i := range l.quotes {
		r.byValue[l.quotes[i].value] = i
	}
	return r
}

// errTooManyItems is the error for a list with more than maxItems items.
var errTooManyItems = errors.New("the list has more items than maxItems: raise maxItems in PRICELIST_CONFIG")

// begin reads the item of a row. It returns false if the row must be skipped. key is the
// key of the row in an object.
func (r *rows) begin(key []byte, cells []feed.Cell) bool {
	r.rows++
	for _, w := range r.list.where {
		if c := cells[w.field]; c.Kind <= feed.Null || string(c.Text) != w.value {
			return false
		}
	}
	name := feed.Cell{Kind: feed.Text, Text: key}
	if r.list.name != none {
		name = cells[r.list.name]
	}
	switch {
	case name.Kind <= feed.Null:
		r.Reject("", nil, feed.RejectNoName)
		return false
	case name.Kind != feed.Text:
		r.Reject("", name.Text, feed.RejectNameKind)
		return false
	case len(name.Text) > catalog.MaxName:
		r.Reject("", name.Text, feed.RejectName)
		return false
	}
	r.q.Name = string(name.Text)
	r.q.Phase = ""
	if r.list.phase.suffix || r.list.phase.infix {
		r.q.Name, r.q.Phase = splitPhase(r.q.Name, r.list.phase)
	}
	if catalog.CheckName(r.q.Name) != nil {
		r.Reject("", name.Text, feed.RejectName)
		return false
	}
	if f := r.list.phase.field; f != none && !cells[f].Empty() {
		r.q.Phase = feed.Phase(cells[f].Text)
		if r.q.Phase == "" {
			r.Reject("", name.Text, feed.RejectPhase)
			return false
		}
	}
	return true
}

// row reads the prices of a row, or of one element of its array of quotes.
func (r *rows) row(cells []feed.Cell) error {
	if r.list.market == none {
		for i := range r.list.quotes {
			if err := r.market(i, cells); err != nil {
				return err
			}
		}
		return nil
	}
	value := cells[r.list.market]
	if value.Kind <= feed.Null {
		return nil
	}
	i, ok := r.byValue[string(value.Text)]
	if !ok {
		r.addUnknown(value.Text)
		return nil
	}
	return r.market(i, cells)
}

// addUnknown stores a few markets that are not configured. The error message uses them if
// no row has a configured market.
func (r *rows) addUnknown(value []byte) {
	const most = 20
	if v := feed.Clip(value); len(r.unknown) < most && !slices.Contains(r.unknown, v) {
		r.unknown = append(r.unknown, v)
	}
}

// market emits the quotes of one market: one for the item, and one for each phase that
// has prices.
func (r *rows) market(i int, cells []feed.Cell) error {
	m := &r.list.quotes[i]
	if !m.stated(cells) {
		return nil
	}
	if reason := r.common(m, cells); reason != "" {
		r.Reject(m.market.Key, []byte(r.q.Name), reason)
		return nil
	}
	ask, reason1 := first(m.ask, cells, m.unit)
	bid, reason2 := first(m.bid, cells, m.unit)
	sale, reason3 := first(m.sale, cells, m.unit)
	if m.statesItem(cells) {
		if err := r.emit(i, ask, bid, sale, cmp.Or(reason1, reason2, reason3)); err != nil {
			return err
		}
	}
	if len(m.phases) == 0 || r.q.Phase != "" {
		return nil
	}
	defer func() { r.q.Phase = "" }()
	// Counts are totals of all phases, so they are unknown for a single phase.
	r.q.Listings, r.q.Sales, r.q.SalesWindow = provider.Unknown, provider.Unknown, 0
	for j := range m.phases {
		p := &m.phases[j]
		if !p.stated(cells) {
			continue
		}
		r.q.Phase = p.phase
		ask, reason1 := amountOf(p.ask, cells, m.unit)
		bid, reason2 := amountOf(p.bid, cells, m.unit)
		sale, reason3 := amountOf(p.sale, cells, m.unit)
		if err := r.emit(i, ask, bid, sale, cmp.Or(reason1, reason2, reason3)); err != nil {
			return err
		}
	}
	return nil
}

// common sets the fields that are the same for an item and its phases. It returns the
// reason if a field is invalid.
func (r *rows) common(m *quoteRule, cells []feed.Cell) (reason string) {
	r.q.Market, r.q.Currency, r.q.MarketTime = m.market.Key, m.currency, r.time
	if m.currencyField != none {
		if code := cells[m.currencyField].Text; string(code) != string(r.currency) || len(code) == 0 {
			parsed, err := money.ParseCurrency(string(code))
			if err != nil {
				return feed.RejectCurrency
			}
			r.currency = parsed
		}
		r.q.Currency = r.currency
	}
	r.q.Listings, r.q.Sales, r.q.SalesWindow = provider.Unknown, provider.Unknown, 0
	if m.listings != none {
		if r.q.Listings, reason = cells[m.listings].Count(); reason != "" {
			return reason
		}
	}
	if m.sales != none {
		if r.q.Sales, reason = cells[m.sales].Count(); reason != "" {
			return reason
		}
		if r.q.Sales >= 0 {
			r.q.SalesWindow = m.salesWindow
		}
	}
	if m.time == none {
		return ""
	}
	stated, reason := cells[m.time].Time(m.timeFormat)
	if !stated.IsZero() {
		r.q.MarketTime = stated
	}
	return reason
}

// emit passes the quote to the sink, or rejects it if there is a reason.
func (r *rows) emit(i int, ask, bid, sale money.Micro, reason string) error {
	if reason != "" {
		r.Reject(r.q.Market, []byte(r.q.Name), reason)
		return nil
	}
	r.q.Ask, r.q.Bid, r.q.Sale = ask, bid, sale
	before := r.Quotes()
	err := r.Quote(&r.q)
	if r.Quotes() > before && (ask > 0 || sale > 0) {
		r.priced[i]++
	}
	if r.Items() > r.list.maxItems {
		return errTooManyItems
	}
	return err
}

// stated reports whether the row has a value for the market.
func (m *quoteRule) stated(cells []feed.Cell) bool {
	if m.statesItem(cells) {
		return true
	}
	for i := range m.phases {
		if m.phases[i].stated(cells) {
			return true
		}
	}
	return false
}

// statesItem reports whether the row has a value for the item as a whole.
func (m *quoteRule) statesItem(cells []feed.Cell) bool {
	return anyStated(m.ask, cells) || anyStated(m.bid, cells) || anyStated(m.sale, cells) ||
		isStated(m.listings, cells) || isStated(m.sales, cells)
}

func (p *phaseFields) stated(cells []feed.Cell) bool {
	return isStated(p.ask, cells) || isStated(p.bid, cells) || isStated(p.sale, cells)
}

func anyStated(fields []int, cells []feed.Cell) bool {
	for _, f := range fields {
		if isStated(f, cells) {
			return true
		}
	}
	return false
}

func isStated(field int, cells []feed.Cell) bool {
	return field != none && cells[field].Kind != feed.Absent
}

// first returns the first amount in the fields that is not 0. It returns a reason at the
// first invalid amount.
func first(fields []int, cells []feed.Cell, unit int64) (m money.Micro, reason string) {
	for _, f := range fields {
		if m, reason = amountOf(f, cells, unit); m != 0 || reason != "" {
			return m, reason
		}
	}
	return 0, ""
}

func amountOf(field int, cells []feed.Cell, unit int64) (money.Micro, string) {
	if field == none {
		return 0, ""
	}
	return cells[field].Amount(unit)
}

// splitPhase removes the phase from a name. It returns names without a phase unchanged.
func splitPhase(name string, rule phaseRule) (rest, phase string) {
	rest = name
	if rule.suffix {
		rest, phase = feed.CutSuffix(name)
	}
	if phase == "" && rule.infix {
		rest, phase = feed.CutInfix(name)
	}
	return rest, phase
}
