package view

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"assay/internal/catalog"
	"assay/internal/fault"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/refresh"
)

// HistoryFilter selects a part of an item's history.
type HistoryFilter struct {
	Market   string         // key or provider/key of a market; empty: the price itself
	From, To time.Time      // a zero From is the first point; a zero or future To is now
	Interval time.Duration  // length of a candle; 0: points
	Currency money.Currency // of all amounts; empty: the base currency, or the market's currency
}

// History is a part of an item's history, oldest first. It has points or candles.
type History struct {
	Currency   money.Currency   `json:"currency"`        // base currency, or the currency of the market's last quote
	Rates      []ConversionRate `json:"rates,omitempty"` // only for candles; each point has its own rate
	Points     []HistoryPoint   `json:"points"`
	Candles    []Candle         `json:"candles"`
	PointsFrom *time.Time       `json:"pointsFrom"` // before this time, only daily candles are stored; null: all changes are stored
	NextCursor *string          `json:"nextCursor"`
}

// HistoryPoint is a price, or a market's quote, that is valid from At until the next point.
type HistoryPoint struct {
	At           time.Time       `json:"at"`
	Price        *money.Micro    `json:"price"` // null: the market has no price
	PriceDecimal *money.Decimal  `json:"priceDecimal"`
	PriceStatus  *string         `json:"priceStatus,omitempty"` // only for the item's price
	Interval     *Interval       `json:"interval,omitempty"`
	UsedMarkets  []string        `json:"usedMarkets,omitempty"` // provider/market
	Quote        *HistoryQuote   `json:"quote,omitempty"`       // only for a market
	Rate         *ConversionRate `json:"rate,omitempty"`        // rate that the amounts are converted at
}

// HistoryQuote is a quote of a market at a point of the history.
type HistoryQuote struct {
	Currency   money.Currency `json:"currency"`
	LowestAsk  *money.Micro   `json:"lowestAsk"`
	HighestBid *money.Micro   `json:"highestBid"`
	Sale       *money.Micro   `json:"sale"`
	Listings   *int64         `json:"listings"`
	Sales      *int64         `json:"sales"`
	Used       bool           `json:"used"`
	Reason     string         `json:"reason"`
}

// Candle summarizes the prices in a period that begins at At. If no price changes in the period,
// all four prices are the close of the previous period.
type Candle struct {
	At      time.Time   `json:"at"`
	Open    money.Micro `json:"open"`
	High    money.Micro `json:"high"`
	Low     money.Micro `json:"low"`
	Close   money.Micro `json:"close"`
	Changes int64       `json:"changes"` // number of new prices
}

// sample is the price at a point of the history, or a market's quote.
type sample struct {
	at    time.Time
	price money.Micro // 0: none
	point *storedPoint
	quote *refresh.MarketSnapshot // the market's quote; nil: none, or a sample of the item's price
}

// maxSamples is the maximum number of stored points that one page reads.
const maxSamples = 20_000

// History returns points or candles, up to limit. It converts points at the exchange rates of
// their time, which are stored with them. It converts candles at the rates in force, so that a
// move of a rate does not look like a move of the price.
func (r *HistoryReader) History(ctx context.Context, key catalog.Key, f HistoryFilter, after string, limit int) (History, error) {
	out := History{Currency: r.o.Currency, Points: []HistoryPoint{}, Candles: []Candle{}}
	item, markets, err := r.historyOf(ctx, key)
	if err != nil {
		return out, err
	}
	market, err := marketOf(markets, f.Market)
	if err != nil {
		return out, err
	}
	now := r.o.Now()
	if err := f.limit(now); err != nil {
		return out, err
	}
	convert, err := r.o.converter(ctx, f.Currency, now)
	if err != nil {
		return out, err
	}
	if out.PointsFrom, err = pointsFrom(ctx, r.o.Store, item); err != nil {
		return out, err
	}
	if after != "" {
		var from int64
		if err := readCursor(after, "history", &from); err != nil {
			return out, err
		}
		if f.From = time.UnixMicro(from).UTC(); !f.From.Before(f.To) {
			return out, nil // a cursor of a longer period
		}
	}
	if f.Interval > 0 {
		return r.candles(ctx, out, item, market, f, limit, convert)
	}
	return r.points(ctx, out, item, market, markets, f, limit, convert)
}

// historyOf returns the ID of an item, and all markets.
func (r *HistoryReader) historyOf(ctx context.Context, key catalog.Key) (int64, map[int64]refresh.MarketName, error) {
	item, err := r.ids.of(ctx, key)
	if err != nil {
		return 0, nil, err
	}
	markets, err := Markets(ctx, r.o.Store)
	return item, markets, err
}

// clockTolerance is how far in the future a requested time may be, because clocks differ.
const clockTolerance = 5 * time.Minute

// checkPast returns a fault.Invalid if the time of a parameter is in the future.
func checkPast(parameter string, at, now time.Time) error {
	if at.After(now.Add(clockTolerance)) {
		return fault.InvalidParameter(parameter, "must not be in the future: it is now %s", now.UTC().Format(time.RFC3339))
	}
	return nil
}

// limit checks the period and ends it now at the latest.
func (f *HistoryFilter) limit(now time.Time) error {
	if err := checkPast("from", f.From, now); err != nil {
		return err
	}
	if !f.To.IsZero() && f.From.After(f.To) {
		return fault.InvalidParameter("from", "must not be after to")
	}
	if f.To.IsZero() || f.To.After(now) {
		f.To = now
	}
	if f.From.After(now) {
		f.From = now // the clock of the client is ahead
	}
	return nil
}

// marketOf returns the id of the market with a name, which is a key or provider/key. It returns 0 for
// an empty name, and a fault.Invalid unless exactly one market has the name.
func marketOf(markets map[int64]refresh.MarketName, name string) (int64, error) {
	if name == "" {
		return 0, nil
	}
	var ids []int64
	var names []string
	for id, m := range markets {
		if (marketName{m.Provider, m.Key}).matches(name) {
			ids, names = append(ids, id), append(names, m.Provider+"/"+m.Key)
		}
	}
	switch len(ids) {
	case 0:
		return 0, fault.InvalidParameter("market", "must be the key of a market or provider/key, such as steam or skinport/skinport: no provider carries %q", name)
	case 1:
		return ids[0], nil
	}
	slices.Sort(names)
	return 0, fault.InvalidParameter("market", "is a market of several providers: send one of %s", strings.Join(names, ", "))
}

// points fills out with points.
func (r *HistoryReader) points(ctx context.Context, out History, item, market int64, markets map[int64]refresh.MarketName, f HistoryFilter, limit int, convert *converter) (History, error) {
	samples, next, err := r.samples(ctx, item, market, f, limit)
	if err != nil {
		return out, err
	}
	if !next.IsZero() {
		out.NextCursor = cursor("history", next.UnixMicro())
	}
	for k := range samples {
		s := &samples[k]
		p := HistoryPoint{At: s.at, Price: amount(s.price)}
		if s.price > 0 {
			p.PriceDecimal = new(money.Decimal(s.price))
		}
		switch {
		case market == 0:
			p.PriceStatus, p.Interval = new(s.point.Status.String()), intervalOf(s.point.Interval)
			for _, id := range s.point.used {
				p.UsedMarkets = append(p.UsedMarkets, markets[id].Provider+"/"+markets[id].Key)
			}
		case s.quote != nil:
			q := s.quote
			out.Currency = q.Currency
			p.Quote = &HistoryQuote{
				Currency: q.Currency, LowestAsk: amount(q.Ask), HighestBid: amount(q.Bid), Sale: amount(q.Sale), Listings: count(q.Listings), Sales: count(q.Sales),
				Used: q.Reason == pricing.Used, Reason: string(q.Reason),
			}
		}
		if f.Currency != "" {
			out.Currency = convert.to
			if err := convert.point(ctx, r.o.Store, &p, s.point.RateSet); err != nil {
				return out, err
			}
		}
		out.Points = append(out.Points, p)
	}
	return out, nil
}

// sameAs reports whether a sample of a market, or of the price (market 0), equals the previous one.
// This happens when only another market has changed.
func (s *sample) sameAs(last *sample, market int64) bool {
	switch {
	case market == 0:
		a, b := s.point, last.point
		return s.price == last.price && a.Status == b.Status && a.Interval == b.Interval && slices.Equal(a.used, b.used)
	case s.quote == nil || last.quote == nil:
		return s.quote == last.quote
	default:
		a, b := s.quote, last.quote
		return a.Currency == b.Currency && a.Ask == b.Ask && a.Bid == b.Bid && a.Sale == b.Sale && a.Reason == b.Reason
	}
}

// candles fills out with candles, from the first period in which the item has a price.
// Daily candles use the stored days first. Every candle covers a whole period, because a stored
// day cannot be split at f.To.
func (r *HistoryReader) candles(ctx context.Context, out History, item, market int64, f HistoryFilter, limit int, convert *converter) (History, error) {
	f.From, f.To = f.From.Truncate(f.Interval), f.To.Add(f.Interval-1).Truncate(f.Interval)
	var days []storedDay
	if f.Interval == day && out.PointsFrom != nil {
		var err error
		if days, err = readDays(ctx, r.o.Store, item, market, f.From, f.To); err != nil {
			return out, err
		}
	}
	before := f
	before.From = f.From.Add(-time.Microsecond) // the first candle opens with the price before its period
	samples, next, err := r.samples(ctx, item, market, before, maxSamples)
	if err != nil {
		return out, err
	}
	end := f.To
	if !next.IsZero() {
		end = next.Truncate(f.Interval) // the last period may be incomplete
	}
	s := series{days: days, samples: samples}
	if f.Currency != "" {
		convert.series(&s)
	}
	at := s.skipTo(f.From, f.Interval)
	switch {
	case f.Currency != "":
		out.Currency, out.Rates = convert.to, convert.used()
	case s.currency != "":
		out.Currency = s.currency
	}
	for ; s.price > 0 && at.Before(end); at = at.Add(f.Interval) {
		if len(out.Candles) == limit {
			break
		}
		out.Candles = append(out.Candles, s.candle(at, f.Interval))
	}
	if s.price > 0 && at.Before(f.To) {
		out.NextCursor = cursor("history", at.UnixMicro())
	}
	return out, nil
}

const day = 24 * time.Hour

// series holds the prices of an item in order of time: first stored days, then samples.
type series struct {
	days     []storedDay
	samples  []sample
	price    money.Micro    // the last price; 0: none yet
	currency money.Currency // of the last price of a market; empty: the base currency
}

// skipTo consumes the prices before a time. If there is none, it consumes the first later price.
// It returns the start of the first period with a price.
func (s *series) skipTo(at time.Time, period time.Duration) time.Time {
	for len(s.days) > 0 && s.days[0].at.Before(at) {
		s.price, s.currency, s.days = s.days[0].close, s.days[0].currency, s.days[1:]
	}
	if s.price == 0 && len(s.days) > 0 {
		s.price, s.currency = s.days[0].open, s.days[0].currency
		return s.days[0].at
	}
	for len(s.samples) > 0 && (s.price == 0 || s.samples[0].at.Before(at)) {
		next := &s.samples[0]
		s.samples = s.samples[1:]
		if s.price = next.price; next.quote != nil {
			s.currency = next.quote.Currency
		}
		if s.price > 0 && !next.at.Before(at) {
			return next.at.Truncate(period)
		}
	}
	return at
}

// candle returns the candle of the period that begins at a time. It consumes the prices of that
// period.
func (s *series) candle(at time.Time, period time.Duration) Candle {
	c := Candle{At: at, Open: s.price, High: s.price, Low: s.price}
	if len(s.days) > 0 && s.days[0].at.Equal(at) {
		d := s.days[0]
		c.High, c.Low, c.Changes = max(c.High, d.high), min(c.Low, d.low), d.changes
		s.price, s.days = d.close, s.days[1:]
	}
	for ; len(s.samples) > 0 && s.samples[0].at.Before(at.Add(period)); s.samples = s.samples[1:] {
		if p := s.samples[0].price; p > 0 && p != s.price {
			s.price = p
			c.High, c.Low = max(c.High, p), min(c.Low, p)
			c.Changes++
		}
	}
	c.Close = s.price
	return c
}

// idsOf parses the ids of the used markets of a point.
func idsOf(used string) (ids []int64) {
	if used == "" {
		return nil
	}
	for part := range strings.SplitSeq(used, ",") {
		id, _ := strconv.ParseInt(part, 10, 64) // the estimate writes only valid ids
		ids = append(ids, id)
	}
	return ids
}
