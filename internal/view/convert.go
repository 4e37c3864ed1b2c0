package view

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"assay/internal/db"
	"assay/internal/exchange"
	"assay/internal/fault"
	"assay/internal/money"
	"assay/internal/pricing"
)

// ConversionRate is the price of one unit of a currency in the currency of a response.
type ConversionRate struct {
	Currency money.Currency `json:"currency"`
	Rate     money.Rate     `json:"rate"`
	Date     time.Time      `json:"date"`   // date of the rate; if Rate combines two rates, the older date
	Old      bool           `json:"old"`    // more than three days old
	Origin   string         `json:"origin"` // ecb, file, fixed or history
}

// storedRate is the Origin of a rate that is stored with a point of the price history.
const storedRate = "history"

// converter converts amounts to the currency of a response.
type converter struct {
	base, to money.Currency
	rates    pricing.Rates // into base
	origin   func(money.Currency) string
	now      time.Time                         // when the rates are used
	known    map[money.Currency]ConversionRate // rates used so far
	sets     map[int64]pricing.Rates           // rates of the history that were read
}

// converter returns a converter to a currency ("": the base currency). It uses the exchange rates
// in force and sends no request for new ones. It returns a fault.Unprocessable if there is no rate
// for the currency.
func (o *Options) converter(ctx context.Context, to money.Currency, now time.Time) (*converter, error) {
	c := &converter{base: o.Currency, to: to, now: now, known: map[money.Currency]ConversionRate{}}
	if to == "" {
		c.to = c.base
		return c, nil
	}
	if o.Rates != nil {
		var err error
		if c.rates, _, err = o.Rates.Known(ctx); err != nil {
			return nil, err
		}
		c.origin = o.Rates.OriginOf
	}
	if _, ok := c.rate(c.base); !ok {
		all := []string{string(c.base)}
		for _, currency := range c.rates.Currencies() {
			all = append(all, string(currency))
		}
		return nil, fault.New(fault.Unprocessable, "no_exchange_rate", "There is no exchange rate for %s. Use one of: %s.", to, strings.Join(all, ", "))
	}
	return c, nil
}

// at returns a converter that uses the rate set stored with a point of the price history. If
// the set has no rate for the currency, it returns c, which uses the rates in force.
func (c *converter) at(ctx context.Context, s *db.DB, set int64, from money.Currency, at time.Time) (*converter, error) {
	if from == c.to {
		return c, nil
	}
	rates, known := c.sets[set]
	if !known {
		var err error
		if rates, err = exchange.ReadRates(ctx, s, set); err != nil {
			return nil, err
		}
		if c.sets == nil {
			c.sets = map[int64]pricing.Rates{}
		}
		c.sets[set] = rates
	}
	past := &converter{base: c.base, to: c.to, rates: rates, now: at, known: map[money.Currency]ConversionRate{}, origin: func(money.Currency) string { return storedRate }}
	if _, ok := past.rate(from); !ok {
		return c, nil
	}
	return past, nil
}

// point converts a point of the history at the rates of its time.
func (c *converter) point(ctx context.Context, s *db.DB, p *HistoryPoint, set int64) error {
	from := c.base
	if p.Quote != nil {
		from = p.Quote.Currency
	}
	past, err := c.at(ctx, s, set, from, p.At)
	if err != nil {
		return err
	}
	convert := func(m *money.Micro) *money.Micro {
		if m == nil {
			return nil
		}
		return past.amount(*m, from)
	}
	if p.Price = convert(p.Price); p.Price != nil {
		p.PriceDecimal = new(money.Decimal(*p.Price))
	} else {
		p.PriceDecimal = nil
	}
	past.interval(p.Interval)
	if q := p.Quote; q != nil {
		q.Currency, q.LowestAsk, q.HighestBid, q.Sale = c.to, convert(q.LowestAsk), convert(q.HighestBid), convert(q.Sale)
	}
	if used, ok := past.known[from]; ok {
		p.Rate = &used
	}
	return nil
}

// series converts the prices of candles. It removes days that cannot be converted.
func (c *converter) series(s *series) {
	s.days = slices.DeleteFunc(s.days, func(d storedDay) bool { return c.amount(d.close, cmp.Or(d.currency, c.base)) == nil })
	for i := range s.days {
		d := &s.days[i]
		for _, p := range []*money.Micro{&d.open, &d.high, &d.low, &d.close} {
			if converted := c.amount(*p, cmp.Or(d.currency, c.base)); converted != nil {
				*p = *converted
			}
		}
	}
	for i := range s.samples {
		p := &s.samples[i]
		from := c.base
		if p.quote != nil {
			from = p.quote.Currency
		}
		converted := c.amount(p.price, from)
		if p.price = 0; converted != nil {
			p.price = *converted
		}
	}
}

// amount converts an amount. It returns nil if m is not positive or cannot be converted.
func (c *converter) amount(m money.Micro, from money.Currency) *money.Micro {
	if m <= 0 || from == c.to {
		return amount(max(m, 0))
	}
	rate, ok := c.rate(from)
	if !ok {
		return nil
	}
	converted, ok := money.Convert(m, rate)
	if !ok {
		return nil
	}
	return amount(converted)
}

// price converts an amount of the base currency. It returns 0 if the result is out of range.
func (c *converter) price(m money.Micro) money.Micro {
	if c.to == c.base {
		return m
	}
	converted, _ := money.Convert(m, c.known[c.base].Rate) // 0 if out of range
	return converted
}

// all converts amounts of the base currency in place. A nil amount stays nil.
func (c *converter) all(amounts ...*money.Micro) {
	for _, m := range amounts {
		if m != nil {
			*m = c.price(*m)
		}
	}
}

func (c *converter) total(s money.Sum) money.Sum {
	if c.to == c.base {
		return s
	}
	return s.Convert(c.known[c.base].Rate)
}

func (c *converter) interval(i *Interval) {
	if i != nil {
		c.all(&i.Low, &i.High)
	}
}

func (c *converter) figures(f *Figures) {
	if f != nil {
		c.all(f.Average)
		c.interval(f.Interval)
	}
}

func (c *converter) published(p *PublishedPrice) {
	c.all(&p.CurrentPrice)
	p.CurrentPriceDecimal = money.Decimal(p.CurrentPrice)
	c.figures(p.Figures)
}

// explanation converts the amounts of an explanation and of its quotes. It does not convert
// amounts in the currency of a market.
func (c *converter) explanation(e *Explanation, quotes []MarketSnapshot) {
	if e != nil {
		c.all(e.LastPrice, e.GroupLow, e.GroupHigh)
		if e.Guard != nil {
			c.all(e.Guard.Reference, e.Guard.Earlier)
		}
	}
	for i := range quotes {
		c.all(quotes[i].Price, quotes[i].Levelled)
	}
}

// limits returns the range of base-currency amounts that convert to at least low and at most
// high. A low or high of 0 means no limit.
func (c *converter) limits(low, high money.Micro) (from, to money.Micro) {
	if c.to == c.base {
		return low, high
	}
	if low > 0 {
		low = c.lowest(low)
	}
	if 0 < high && high < math.MaxInt64 {
		if high = c.lowest(high+1) - 1; high == 0 {
			return math.MaxInt64, 1 // every amount converts to more than high
		}
	}
	return low, high
}

// lowest returns the lowest amount of the base currency that converts to at least m.
func (c *converter) lowest(m money.Micro) money.Micro {
	rate := c.known[c.base].Rate
	low, high := money.Micro(0), money.Micro(1)<<62
	for low < high {
		middle := low + (high-low)/2
		if converted, ok := money.Convert(middle, rate); !ok || converted >= m {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low
}

func (c *converter) rate(from money.Currency) (money.Rate, bool) {
	if from == c.to {
		return money.RateScale, true
	}
	if known, ok := c.known[from]; ok {
		return known.Rate, true
	}
	foreign, here := c.inBase(from)
	target, there := c.inBase(c.to)
	if !here || !there {
		return 0, false
	}
	rate, ok := money.CrossRate(foreign.Value, target.Value)
	if !ok {
		return 0, false
	}
	older, of := foreign, from
	if from == c.base || c.to != c.base && target.Date.Before(foreign.Date) {
		older, of = target, c.to
	}
	c.known[from] = ConversionRate{Currency: from, Rate: rate, Date: older.Date, Old: older.Old(c.now), Origin: c.origin(of)}
	return rate, true
}

// inBase returns the rate of a currency in the base currency.
func (c *converter) inBase(of money.Currency) (pricing.Rate, bool) {
	if of == c.base {
		return pricing.Rate{Value: money.RateScale}, true
	}
	return c.rates.Of(of)
}

// used returns the rates that were used, sorted by currency.
func (c *converter) used() []ConversionRate {
	out := []ConversionRate{}
	for _, currency := range slices.Sorted(maps.Keys(c.known)) {
		out = append(out, c.known[currency])
	}
	return out
}
