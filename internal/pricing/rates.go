package pricing

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"assay/internal/money"
)

// Rate is the price of one unit of a foreign currency in the base currency.
// Without a date it is not valid.
type Rate struct {
	Value money.Rate
	Date  time.Time // the day that the rate is of, UTC midnight
}

// maxRateAge is how many days of the calendar a rate may be old before it is
// flagged: on a Monday that of Friday is not.
const maxRateAge = 3

// Old reports whether at such a time the rate is of more than three days before.
func (r Rate) Old(now time.Time) bool {
	today := now.UTC().Truncate(24 * time.Hour)
	return today.Sub(r.Date.UTC().Truncate(24*time.Hour)) > maxRateAge*24*time.Hour
}

// Rates holds the rate of each foreign currency that can be converted.
type Rates map[money.Currency]Rate

// Of returns the rate of a currency, if there is a valid one.
func (r Rates) Of(currency money.Currency) (Rate, bool) {
	rate, ok := r[currency]
	return rate, ok && rate.Value > 0 && !rate.Date.IsZero()
}

// Currencies returns those that have a rate, in order.
func (r Rates) Currencies() []money.Currency { return slices.Sorted(maps.Keys(r)) }

// Old returns the currencies whose rates are old at such a time, in order.
func (r Rates) Old(now time.Time) []money.Currency {
	return slices.DeleteFunc(r.Currencies(), func(c money.Currency) bool { return !r[c].Old(now) })
}

// Add reads EUR=1.0834@2026-11-20 and adds that rate. A second one of the same
// currency is an error.
func (r Rates) Add(text string) error {
	code, rest, hasRate := strings.Cut(text, "=")
	value, day, hasDay := strings.Cut(rest, "@")
	if !hasRate || !hasDay {
		return fmt.Errorf("%.60q is not a rate: write EUR=1.0834@2026-11-20", text)
	}
	currency, err := money.ParseCurrency(code)
	if err != nil {
		return err
	}
	rate, err := money.ParseRate([]byte(value))
	if err != nil {
		return fmt.Errorf("%.60q is not a rate of %s: write a decimal number above 0 and below 9,000,000", value, currency)
	}
	date, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return fmt.Errorf("%.60q is not a date: write it like 2026-11-20", day)
	}
	if _, twice := r[currency]; twice {
		return fmt.Errorf("has two rates of %s: remove one", currency)
	}
	r[currency] = Rate{Value: rate, Date: date}
	return nil
}

// Dollar returns what one US dollar costs in a base currency; without a rate of it,
// one unit: price bands are then those of the base currency.
func (r Rates) Dollar(base money.Currency) money.Micro {
	const dollars = "USD"
	if rate, ok := r.Of(dollars); ok && base != dollars {
		if price, ok := money.Convert(money.Scale, rate.Value); ok && price > 0 {
			return price
		}
	}
	return money.Scale
}
