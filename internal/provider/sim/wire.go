package sim

import (
	"strconv"

	"assay/internal/catalog"
)

// The responses, of which each is one JSON object. A file, GET
// /v1/markets/{market}/prices.json, holds all quotes of a market:
//
//	{"market":"sim-amber","currency":"USD","unit":1,"salesDays":30,"time":1790000000,
//	 "items":[{"name":"★ Karambit","phase":"Ruby","ask":912.00,"bid":850.00,"sale":900.00,
//	           "listings":4,"sales":9,"seen":1789990000}]}
//
// A response about names, POST /v1/prices/batch with {"names":["..."]} or GET
// /v1/prices?name=..., holds all markets' quotes of those:
//
//	{"time":1790000000,
//	 "markets":[{"market":"sim-amber","currency":"USD","unit":1,"salesDays":30}],
//	 "items":[{"name":"★ Karambit","quotes":{"sim-amber":[{"ask":912.00}]}}],
//	 "unknown":["No Such Item | At All (Factory New)"]}
//
// What comes before "items" here does so always, and "name" before "quotes".
// Amounts are numbers or strings in 1/unit of the currency; null, or no member,
// is none. Without "ask" the market does not offer the item. Only a market with
// "salesDays" counts sales, within so many days. Times are Unix seconds.

// encoder appends responses as of one moment.
type encoder struct {
	model *model
	tick  int64
	time  int64 // Unix seconds
}

// terms appends what holds for all amounts of a venue.
func (e *encoder) terms(b []byte, v *venue) []byte {
	b = appendString(append(b, `"market":`...), v.key)
	b = append(b, `,"currency":"USD","unit":`...)
	b = strconv.AppendInt(b, int64(v.style.unit()), 10)
	if v.days > 0 {
		b = strconv.AppendInt(append(b, `,"salesDays":`...), int64(v.days), 10)
	}
	return b
}

func (e *encoder) stamp(b []byte) []byte {
	return strconv.AppendInt(append(b, `"time":`...), e.time, 10)
}

// fileRows appends a venue's rows of the i-th item: one for each phase where
// the venue distinguishes phases, none where it does not know the item. Each has
// a comma behind it.
func (e *encoder) fileRows(b []byte, v *venue, i int) []byte {
	return e.rows(b, v, i, func(b []byte) []byte {
		b = append(b, `"name":`...)
		return append(e.appendName(b, i), ',')
	})
}

// rows appends a venue's rows of the i-th item, each begun by what begin
// appends and with a comma behind it.
func (e *encoder) rows(b []byte, v *venue, i int, begin func([]byte) []byte) []byte {
	s := e.model.subject(i)
	comesIn := e.model.cat.items[i%len(e.model.cat.items)].phases
	if comesIn == 0 || !v.phases {
		return e.row(b, v, &s, "", begin)
	}
	for n := range catalog.Phases {
		if phased, name, ok := e.model.phase(s, comesIn, n); ok {
			b = e.row(b, v, &phased, name, begin)
		}
	}
	return b
}

func (e *encoder) row(b []byte, v *venue, s *subject, phase string, begin func([]byte) []byte) []byte {
	r, ok := e.model.quote(v, s, e.tick)
	if !ok {
		return b
	}
	b = begin(append(b, '{'))
	if phase != "" {
		b = append(append(append(b, `"phase":"`...), phase...), `",`...)
	}
	b = v.amount(b, `"ask":`, r.ask)
	if v.bids {
		b = v.amount(b, `"bid":`, r.bid)
	}
	if v.days > 0 {
		b = v.amount(b, `"sale":`, r.sale)
		b = strconv.AppendInt(append(b, `"sales":`...), r.sales, 10)
		b = append(b, ',')
	}
	if r.polled >= 0 {
		b = strconv.AppendInt(append(b, `"seen":`...), e.time-r.polled, 10)
		b = append(b, ',')
	}
	b = strconv.AppendInt(append(b, `"listings":`...), r.listings, 10)
	return append(b, '}', ',')
}

// amount appends a member with a comma behind it. A missing amount is written in the
// venue's own way.
func (v *venue) amount(b []byte, member string, m mil) []byte {
	if m == 0 && !v.nulls {
		return b
	}
	b = append(b, member...)
	if m == 0 {
		return append(b, "null,"...)
	}
	return append(v.style.append(b, m), ',')
}

// appendName appends the i-th name as a JSON string.
func (e *encoder) appendName(b []byte, i int) []byte {
	items := e.model.cat.items
	if i < len(items) {
		return appendString(b, items[i].name)
	}
	b = appendString(b, items[i%len(items)].name)
	b = append(b[:len(b)-1], lotSuffix...)
	return append(strconv.AppendInt(b, int64(i/len(items)), 10), '"')
}

// response appends a whole response about names.
func (e *encoder) answer(b []byte, names []string) []byte {
	b = append(e.stamp(append(b, '{')), `,"markets":[`...)
	for i := range e.model.venues {
		b = append(e.terms(append(b, '{'), &e.model.venues[i]), '}', ',')
	}
	b = append(closeList(b, ']'), `,"items":[`...)
	var unknown []string
	for _, name := range names {
		i, ok := e.model.cat.find(name)
		if !ok {
			unknown = append(unknown, name)
			continue
		}
		b = e.item(b, i, name)
	}
	b = append(closeList(b, ']'), `,"unknown":[`...)
	for _, name := range unknown {
		b = append(appendString(b, name), ',')
	}
	return append(closeList(b, ']'), '}')
}

// item appends the quotes of all venues of the i-th item, with a comma behind it.
func (e *encoder) item(b []byte, i int, name string) []byte {
	b = appendString(append(b, `{"name":`...), name)
	b = append(b, `,"quotes":{`...)
	bare := func(b []byte) []byte { return b }
	for n := range e.model.venues {
		v := &e.model.venues[n]
		before := len(b)
		b = append(appendString(b, v.key), ':', '[')
		begun := len(b)
		b = e.rows(b, v, i, bare)
		if len(b) == begun {
			b = b[:before] // it does not know the item
			continue
		}
		b = append(closeList(b, ']'), ',')
	}
	return append(closeList(b, '}'), '}', ',')
}

// closeList ends a list of which each element has a comma behind it.
func closeList(b []byte, end byte) []byte {
	if last := len(b) - 1; b[last] == ',' {
		b = b[:last]
	}
	return append(b, end)
}
