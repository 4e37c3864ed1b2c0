package view

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"assay/internal/fault"
	"assay/internal/money"
	"assay/internal/pricing"
)

// ConversionRate is the price of one unit of a currency in the currency of a response.
type ConversionRate struct {
	Currency money.Currency `json:"currency"`
	Rate     money.Rate     `json:"rate"`
	Date     time.Time      `json:"date"` // of the older rate, if it is a ratio of two
	Old      bool           `json:"old"`  // more than three days old
}

// converter converts amounts to the currency of a response by the exchange rates in force.
type converter struct {
	base, to money.Currency
	rates    pricing.Rates // into base
	now      time.Time
	known    map[money.Currency]ConversionRate // rates used so far
}

// converter returns a converter to a currency. It returns a fault.Unprocessable if there is no
// rate of that currency. It sends no request for rates.
func (o *Options) converter(ctx context.Context, to money.Currency, now time.Time) (*converter, error) {
	c := &converter{base: o.Currency, to: to, now: now, known: map[money.Currency]ConversionRate{}}
	if o.Rates != nil {
		var err error
		if c.rates, _, err = o.Rates.Known(ctx); err != nil {
			return nil, err
		}
	}
	if _, ok := c.rates.Of(to); !ok && to != c.base {
		all := []string{string(c.base)}
		for _, currency := range c.rates.Currencies() {
			all = append(all, string(currency))
		}
		return nil, fault.New(fault.Unprocessable, "no_exchange_rate", "There is no exchange rate of %s in force. Use one of: %s.", to, strings.Join(all, ", "))
	}
	return c, nil
}

// amount converts an amount. It returns nil for no amount, and for one that cannot be
// converted.
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

func (c *converter) rate(from money.Currency) (money.Rate, bool) {
	if known, ok := c.known[from]; ok {
		return known.Rate, true
	}
	// A unit of the base currency costs one unit at any date.
	own := pricing.Rate{Value: money.RateScale, Date: c.now.UTC().Truncate(24 * time.Hour)}
	foreign, target := own, own
	ok, there := true, true
	if from != c.base {
		foreign, ok = c.rates.Of(from)
	}
	if c.to != c.base {
		target, there = c.rates.Of(c.to)
	}
	if !ok || !there {
		return 0, false
	}
	rate, ok := money.CrossRate(foreign.Value, target.Value)
	if !ok {
		return 0, false
	}
	older := foreign
	if target.Date.Before(foreign.Date) {
		older = target
	}
	c.known[from] = ConversionRate{Currency: from, Rate: rate, Date: older.Date, Old: older.Old(c.now)}
	return rate, true
}

// used returns the rates that were used, by currency.
func (c *converter) used() []ConversionRate {
	out := []ConversionRate{}
	for _, currency := range slices.Sorted(maps.Keys(c.known)) {
		out = append(out, c.known[currency])
	}
	return out
}
