package pricelist

import (
	"cmp"
	"errors"
	"hash/maphash"
	"math/bits"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"assay/internal/catalog"
	"assay/internal/money"
	"assay/internal/provider"
)

// rows turns the rows of one list into quotes, in the order in which they come.
// Of rows that quote the same item on the same market the first one counts: no
// later one may replace it unseen.
type rows struct {
	list *list
	sink provider.Sink
	q    provider.Quote

	seed maphash.Seed
	seen seenSet
	item *uint64 // markets on which the item of q was quoted; nil: not looked up yet

	byValue map[string]int // markets by what the market field holds

	priced   []int // quotes with an ask or a sale, by market
	rows     int
	quotes   int
	rejected int
	reasons  map[string]int
	unknown  []string // values of the market field that are not configured

	time     time.Time      // of the whole list, as far as it is known yet
	currency money.Currency // the last one read from a field
}

func newRows(l *list, sink provider.Sink) *rows {
	r := &rows{
		list: l, sink: sink, seed: maphash.MakeSeed(), byValue: map[string]int{}, priced: make([]int, len(l.quotes)), reasons: map[string]int{},
	}
	for i := range l.quotes {
		r.byValue[l.quotes[i].value] = i
	}
	return r
}

// errTooManyItems ends a list with more than maxItems items.
var errTooManyItems = errors.New("more items than maxItems")

// reject counts a row, or one market's part of it, that is no quote.
func (r *rows) reject(market string, name []byte, reason string) {
	r.rejected++
	r.reasons[reason]++
	r.sink.Reject(market, clip(name), reason)
}

// begin takes what a row says of its item. It reports false for a row that
// gives no quote. key is the member name of a row within an object.
func (r *rows) begin(key []byte, cells []cell) bool {
	r.rows++
	for _, w := range r.list.where {
		if c := cells[w.field]; c.kind <= null || string(c.text) != w.value {
			return false
		}
	}
	name := cell{kind: text, text: key}
	if r.list.name != none {
		name = cells[r.list.name]
	}
	switch {
	case name.kind <= null:
		r.reject("", nil, rejectNoName)
		return false
	case name.kind != text:
		r.reject("", name.text, rejectNameKind)
		return false
	case len(name.text) > catalog.MaxName:
		r.reject("", name.text, rejectName)
		return false
	}
	r.q.Name = string(name.text)
	r.setPhase("")
	if r.list.phase.suffix || r.list.phase.infix {
		name, phase := splitPhase(r.q.Name, r.list.phase)
		r.q.Name = name
		r.setPhase(phase)
	}
	if catalog.CheckName(r.q.Name) != nil {
		r.reject("", name.text, rejectName)
		return false
	}
	if f := r.list.phase.field; f != none && !cells[f].empty() {
		r.setPhase(internPhase(cells[f].text))
		if r.q.Phase == "" {
			r.reject("", name.text, rejectPhase)
			return false
		}
	}
	return true
}

// setPhase makes q one of another item.
func (r *rows) setPhase(phase string) { r.q.Phase, r.item = phase, nil }

// quote takes what a row, or an element of it, says of prices.
func (r *rows) quote(cells []cell) error {
	if r.list.market == none {
		for i := range r.list.quotes {
			if err := r.market(i, cells); err != nil {
				return err
			}
		}
		return nil
	}
	value := cells[r.list.market]
	if value.kind <= null {
		return nil
	}
	i, ok := r.byValue[string(value.text)]
	if !ok {
		r.note(value.text)
		return nil
	}
	return r.market(i, cells)
}

// note remembers a few of the markets that nobody configured, for the message
// of a list of which nothing else is left.
func (r *rows) note(value []byte) {
	const most = 20
	if v := clip(value); len(r.unknown) < most && !slices.Contains(r.unknown, v) {
		r.unknown = append(r.unknown, v)
	}
}

// market makes the quotes of one market: one of the item itself and, where the
// market states prices by phase, one of each phase.
func (r *rows) market(i int, cells []cell) error {
	m := &r.list.quotes[i]
	if !m.stated(cells) {
		return nil
	}
	if reason := r.common(m, cells); reason != "" {
		r.reject(m.market.Key, []byte(r.q.Name), reason)
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
	defer r.setPhase("")
	// Counts are of all phases together and say nothing of a single one.
	r.q.Listings, r.q.Sales, r.q.SalesWindow = provider.Unknown, provider.Unknown, 0
	for j := range m.phases {
		p := &m.phases[j]
		if !p.stated(cells) {
			continue
		}
		r.setPhase(p.phase)
		ask, reason1 := amountOf(p.ask, cells, m.unit)
		bid, reason2 := amountOf(p.bid, cells, m.unit)
		sale, reason3 := amountOf(p.sale, cells, m.unit)
		if err := r.emit(i, ask, bid, sale, cmp.Or(reason1, reason2, reason3)); err != nil {
			return err
		}
	}
	return nil
}

// common fills in what an item's and its phases' quotes have in common.
func (r *rows) common(m *quoteRule, cells []cell) (reason string) {
	r.q.Market, r.q.Currency, r.q.MarketTime = m.market.Key, m.currency, r.time
	if m.currencyField != none {
		if code := cells[m.currencyField].text; string(code) != string(r.currency) || len(code) == 0 {
			parsed, err := money.ParseCurrency(string(code))
			if err != nil {
				return rejectCurrency
			}
			r.currency = parsed
		}
		r.q.Currency = r.currency
	}
	r.q.Listings, r.q.Sales, r.q.SalesWindow = provider.Unknown, provider.Unknown, 0
	if m.listings != none {
		if r.q.Listings, reason = cells[m.listings].count(); reason != "" {
			return reason
		}
	}
	if m.sales != none {
		if r.q.Sales, reason = cells[m.sales].count(); reason != "" {
			return reason
		}
		if r.q.Sales >= 0 {
			r.q.SalesWindow = m.salesWindow
		}
	}
	if m.time == none {
		return ""
	}
	stated, reason := cells[m.time].when(m.timeFormat)
	if !stated.IsZero() {
		r.q.MarketTime = stated
	}
	return reason
}

// emit hands one quote on, unless it is faulty or not the first of its kind.
func (r *rows) emit(i int, ask, bid, sale money.Micro, reason string) error {
	if reason == "" && !r.firstOf(i) {
		reason = rejectDuplicate
	}
	if reason != "" {
		r.reject(r.q.Market, []byte(r.q.Name), reason)
		return nil
	}
	if r.seen.n > r.list.maxItems {
		return errTooManyItems
	}
	r.quotes++
	if ask > 0 || sale > 0 {
		r.priced[i]++
	}
	r.q.Ask, r.q.Bid, r.q.Sale = ask, bid, sale
	return r.sink.Quote(&r.q)
}

// firstOf marks the item as quoted on a market; false when it was already.
func (r *rows) firstOf(market int) bool {
	if r.item == nil {
		sum := maphash.String(r.seed, r.q.Name)
		if r.q.Phase != "" {
			// Rotated, lest an item called like its phase be all of them.
			sum ^= bits.RotateLeft64(maphash.String(r.seed, r.q.Phase), 1)
		}
		r.item = r.seen.markets(sum)
	}
	bit := uint64(1) << market
	first := *r.item&bit == 0
	*r.item |= bit
	return first
}

// stated reports whether the row says anything at all of the market.
func (m *quoteRule) stated(cells []cell) bool {
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

// statesItem reports whether it says anything of the item as a whole.
func (m *quoteRule) statesItem(cells []cell) bool {
	return anyStated(m.ask, cells) || anyStated(m.bid, cells) || anyStated(m.sale, cells) ||
		isStated(m.listings, cells) || isStated(m.sales, cells)
}

func (p *phaseFields) stated(cells []cell) bool {
	return isStated(p.ask, cells) || isStated(p.bid, cells) || isStated(p.sale, cells)
}

func anyStated(fields []int, cells []cell) bool {
	for _, f := range fields {
		if isStated(f, cells) {
			return true
		}
	}
	return false
}

func isStated(field int, cells []cell) bool { return field != none && cells[field].kind != absent }

// first returns the first amount that the fields hold.
func first(fields []int, cells []cell, unit int64) (m money.Micro, reason string) {
	for _, f := range fields {
		if m, reason = amountOf(f, cells, unit); m != 0 || reason != "" {
			return m, reason
		}
	}
	return 0, ""
}

func amountOf(field int, cells []cell, unit int64) (money.Micro, string) {
	if field == none {
		return 0, ""
	}
	return cells[field].amount(unit)
}

// splitPhase takes a phase out of a name that holds one, and leaves any other
// name as it is.
func splitPhase(name string, rule phaseRule) (rest, phase string) {
	for _, p := range catalog.Phases {
		if rule.suffix {
			if rest, ok := strings.CutSuffix(name, " - "+p); ok {
				return rest, p
			}
		}
		if !rule.infix {
			continue
		}
		if before, after, ok := strings.Cut(name, " Doppler "+p+" ("); ok {
			return before + " Doppler (" + after, p
		}
	}
	return name, ""
}

// internPhase returns the phase that b spells, or "".
func internPhase(b []byte) string {
	for _, p := range catalog.Phases {
		if string(b) == p {
			return p
		}
	}
	return ""
}

// clip makes a text from outside fit to be shown: short, and valid UTF-8.
func clip(b []byte) string {
	const most = 80
	if len(b) > most {
		cut := most
		for cut > most-utf8.UTFMax && !utf8.RuneStart(b[cut]) {
			cut--
		}
		return strings.ToValidUTF8(string(b[:cut]), "\uFFFD") + "…"
	}
	return strings.ToValidUTF8(string(b), "\uFFFD")
}
