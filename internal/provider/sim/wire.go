package sim

import (
	"strconv"

	"assay/internal/catalog"
)

// Each response is one JSON object.
//
// GET /v1/markets/{market}/prices.json returns all quotes of one market:
//
//	{"market":"sim-amber","currency":"USD","unit":1,"salesDays":30,"time":1790000000,
//	 "items":[{"name":"★ Karambit","phase":"Ruby","ask":912.00,"bid":850.00,"sale":900.00,
//	           "listings":4,"sales":9,"seen":1789990000}]}
//
// POST /v1/prices/batch with {"names":["..."]} and GET /v1/prices?name=... return the
// quotes of all markets for the requested names:
//
//	{"time":1790000000,
//	 "markets":[{"market":"sim-amber","currency":"USD","unit":1,"salesDays":30}],
//	 "items":[{"name":"★ Karambit","quotes":{"sim-amber":[{"ask":912.00}]}}],
//	 "unknown":["No Such Item | At All (Factory New)"]}
//
// The members always have this order. An amount is a number or a string. It counts units,
// and "unit" is their number per dollar: 100 means cents. A missing amount is null or
// omitted. If "ask" is missing, the market does not offer the item. "sales" counts the last
// "salesDays" days. Markets without "salesDays" do not report sales. Times are Unix seconds.

// encoder appends the responses of one tick.
type encoder struct {
	model *model
	tick  int64
	time  int64 // Unix seconds
}

// terms appends the members that apply to all amounts of a market.
func (e *encoder) terms(b []byte, v *market) []byte {
	b = appendString(append(b, `"market":`...), v.key)
	b = append(b, `,"currency":"USD","unit":`...)
	b = strconv.AppendInt(b, int64(v.style.unit()), 10)
	if v.days > 0 {
		b = strconv.AppendInt(append(b, `,"salesDays":`...), int64(v.days), 10)
	}
	return b
}

// stamp appends the time of the response.
func (e *encoder) stamp(b []byte) []byte {
	return strconv.AppendInt(append(b, `"time":`...), e.time, 10)
}

// fileRows appends a market's rows for the i-th item, each followed by a comma. There is
// one row per phase if the market distinguishes phases. There are no rows if the market
// does not quote the item.
func (e *encoder) fileRows(b []byte, v *market, i int) []byte {
	return e.rows(b, v, i, func(b []byte) []byte {
		b = append(b, `"name":`...)
		return append(e.appendName(b, i), ',')
	})
}

// rows appends a market's rows for the i-th item, each followed by a comma. It calls
// begin to append the first members of each row.
func (e *encoder) rows(b []byte, v *market, i int, begin func([]byte) []byte) []byte {
	s := e.model.subject(i)
	phaseSet := e.model.cat.items[i%len(e.model.cat.items)].phases
	if phaseSet == 0 || !v.phases {
		return e.row(b, v, &s, "", begin)
	}
	for n := range catalog.Phases {
		if phased, name, ok := e.model.phase(s, phaseSet, n); ok {
			b = e.row(b, v, &phased, name, begin)
		}
	}
	return b
}

func (e *encoder) row(b []byte, v *market, s *subject, phase string, begin func([]byte) []byte) []byte {
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
	if r.age >= 0 {
		b = strconv.AppendInt(append(b, `"seen":`...), e.time-r.age, 10)
		b = append(b, ',')
	}
	b = strconv.AppendInt(append(b, `"listings":`...), r.listings, 10)
	return append(b, '}', ',')
}

// amount appends a member followed by a comma. The market's nulls field determines
// whether a missing amount is written as null or omitted.
func (v *market) amount(b []byte, member string, m mil) []byte {
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

// response appends the complete response to a request for names.
func (e *encoder) response(b []byte, names []string) []byte {
	b = append(e.stamp(append(b, '{')), `,"markets":[`...)
	for i := range e.model.markets {
		b = append(e.terms(append(b, '{'), &e.model.markets[i]), '}', ',')
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

// item appends the quotes of all markets for the i-th item, followed by a comma.
func (e *encoder) item(b []byte, i int, name string) []byte {
	b = appendString(append(b, `{"name":`...), name)
	b = append(b, `,"quotes":{`...)
	bare := func(b []byte) []byte { return b }
	for n := range e.model.markets {
		v := &e.model.markets[n]
		before := len(b)
		b = append(appendString(b, v.key), ':', '[')
		start := len(b)
		b = e.rows(b, v, i, bare)
		if len(b) == start {
			b = b[:before] // the market does not quote the item
			continue
		}
		b = append(closeList(b, ']'), ',')
	}
	return append(closeList(b, '}'), '}', ',')
}

// closeList removes the trailing comma of a list and appends its closing bracket.
func closeList(b []byte, end byte) []byte {
	if last := len(b) - 1; b[last] == ',' {
		b = b[:last]
	}
	return append(b, end)
}
