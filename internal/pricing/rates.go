package pricing

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"assay/internal/money"
)

// Rate is the price of one unit of a foreign currency in the base currency. A rate without
// a date is invalid.
type Rate struct {
	Value money.Rate
	Date  time.Time // day of the rate, at midnight UTC
}

// maxRateAge is the number of calendar days after which a rate is old. On Monday, the rate
// of Friday is not old.
const maxRateAge = 3

// Old reports whether the rate is more than three days old at the time now.
func (r Rate) Old(now time.Time) bool {
	today := now.UTC().Truncate(24 * time.Hour)
	return today.Sub(r.Date.UTC().Truncate(24*time.Hour)) > maxRateAge*24*time.Hour
}

// Rates maps foreign currencies to their rates.
type Rates map[money.Currency]Rate

// Of returns the rate of a currency. It returns false if there is no valid rate.
func (r Rates) Of(currency money.Currency) (Rate, bool) {
	rate, ok := r[currency]
	return rate, ok && rate.Value > 0 && !rate.Date.IsZero()
}

// Currencies returns the currencies with a rate, sorted by code.
func (r Rates) Currencies() []money.Currency { return slices.Sorted(maps.Keys(r)) }

// Old returns the currencies with rates that are old at the time now, sorted by code.
func (r Rates) Old(now time.Time) []money.Currency {
	return slices.DeleteFunc(r.Currencies(), func(c money.Currency) bool { return !r[c].Old(now) })
}

// Add parses a rate such as "EUR=1.0834@2026-11-20" and adds it. It returns an error if
// the currency already has a rate.
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
		return fmt.Errorf("%.60q is not a rate for %s: write a decimal number above 0 and below 9,000,000", value, currency)
	}
	date, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return fmt.Errorf("%.60q is not a date: write it like 2026-11-20", day)
	}
	if _, twice := r[currency]; twice {
		return fmt.Errorf("two rates for %s: remove one", currency)
	}
	r[currency] = Rate{Value: rate, Date: date}
	return nil
}

// Dollar returns the price of one US dollar in a base currency. Without a rate for USD it
// returns one unit, so the limits of price bands are then in the base currency.
func (r Rates) Dollar(base money.Currency) money.Micro {
	const dollars = "USD"
	if rate, ok := r.Of(dollars); ok && base != dollars {
		if price, ok := money.Convert(money.Scale, rate.Value); ok && price > 0 {
			return price
		}
	}
	return money.Scale
}
