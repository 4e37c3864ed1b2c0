package pricelist

import (
	"strings"
	"time"

	"assay/internal/catalog"
	"assay/internal/money"
)

// quoteMembers returns the members that define quotes, in "quote" and in a market.
func quoteMembers() []string {
	return []string{
		"ask", "bid", "sale", "listings", "sales", "salesWindow", "time", "phases", "currency", "unit", "maxAge",
	}
}

// readMarket reads the rule for the quotes of one market.
func (c *compiler) readMarket(o *object) {
	q := quoteRule{listings: none, sales: none, time: none}
	q.market.Key = o.required("key")
	if q.market.Key != "" && !marketKey.MatchString(q.market.Key) {
		o.fault("key", "must be 1 to 64 lower-case letters, digits, dashes and underscores")
	}
	if q.market.Title = o.text("title"); q.market.Title == "" {
		q.market.Title = q.market.Key
	}
	q.market.Pool = o.text("pool")
	q.value = o.text("value")
	if q.value != "" && c.market == none {
		o.fault("value", "requires \"market\" in the list")
	} else if q.value == "" {
		q.value = q.market.Key
	}
	if c.base.quote != nil {
		o.overlay(c.base.quote)
	}
	c.readAmounts(o, &q)
	c.readCounts(o, &q)
	q.market.MaxAge = o.duration("maxAge", 0)
	if t := o.object("time"); t != nil {
		if text := t.required("field"); text != "" {
			q.time = c.field(t, "field", text)
		}
		q.timeFormat = c.timeFormat(t)
		t.done()
	}
	for _, other := range c.quotes {
		if other.market.Key == q.market.Key {
			o.fault("key", "another market of the list has the key %q: keys must be unique", q.market.Key)
		} else if c.market != none && other.value == q.value {
			o.fault("value", "another market of the list has the value %q: values must be unique", q.value)
		}
	}
	o.done()
	c.quotes = append(c.quotes, q)
}

// readAmounts reads the fields of a market's prices, their unit and their currency.
func (c *compiler) readAmounts(o *object, q *quoteRule) {
	q.unit = c.unit(o, c.base.unit)
	q.currency, q.currencyField = c.currency(o)
	if !o.has("currency") {
		q.currency, q.currencyField = c.base.currency, c.base.currencyField
	}
	if q.currency == "" && q.currencyField == none && !o.has("currency") && !c.o.has("currency") {
		o.fault("currency", "is missing: set it here or in the list")
	}
	if q.currency != "" {
		q.market.Currencies = []money.Currency{q.currency}
	}
	q.ask = c.alternatives(o, "ask")
	q.bid = c.alternatives(o, "bid")
	q.sale = c.alternatives(o, "sale")
	if p := o.object("phases"); p != nil {
		q.phases = c.readPhases(p)
	}
	if !o.has("ask") && !o.has("sale") && len(q.phases) == 0 {
		o.faults.add(o.at, "must set \"ask\" or \"sale\"")
	}
}

func (c *compiler) alternatives(o *object, name string) []int {
	var all []int
	for _, text := range o.texts(name) {
		all = append(all, c.field(o, name, text))
	}
	return all
}

// readPhases reads the paths of objects that contain a price for each phase.
func (c *compiler) readPhases(o *object) []phaseFields {
	if c.format == formatCSV {
		o.faults.add(o.at, "is not supported for format csv")
		return nil
	}
	at := map[string]string{"ask": o.text("ask"), "bid": o.text("bid"), "sale": o.text("sale")}
	o.done()
	if at["ask"] == "" && at["sale"] == "" {
		o.faults.add(o.at, "must set \"ask\" or \"sale\"")
		return nil
	}
	phases := make([]phaseFields, len(catalog.Phases))
	for i, phase := range catalog.Phases {
		sub := func(name string) int {
			if at[name] == "" {
				return none
			}
			return c.field(o, name, inPath(at[name], phase))
		}
		phases[i] = phaseFields{phase: phase, ask: sub("ask"), bid: sub("bid"), sale: sub("sale")}
	}
	return phases
}

// inPath appends a member to the path text. The member's name must not contain a dot or a
// slash.
func inPath(text, member string) string {
	switch {
	case text == ".":
		return member
	case strings.HasPrefix(strings.TrimPrefix(text, "^"), "/"):
		return text + "/" + member
	default:
		return text + "." + member
	}
}

// readCounts reads the fields of a market's listings and sales.
func (c *compiler) readCounts(o *object, q *quoteRule) {
	if text := o.text("listings"); text != "" {
		q.listings = c.field(o, "listings", text)
	}
	if text := o.text("sales"); text != "" {
		q.sales = c.field(o, "sales", text)
	}
	q.salesWindow = o.duration("salesWindow", 0)
	if q.salesWindow > 0 && q.salesWindow < time.Hour {
		o.fault("salesWindow", "must be at least \"1h\"")
	}
	if o.has("sales") != o.has("salesWindow") {
		o.fault("sales", "set \"sales\" and \"salesWindow\" together")
	}
	q.market.SalesWindow = q.salesWindow
}
