package exchange

import (
	"bufio"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"assay/internal/money"
	"assay/internal/pricing"
)

const (
	// maxBytes is the maximum size of a response.
	maxBytes = 1 << 20
	// maxRates is the maximum number of rates. There are about 180 currencies.
	maxRates = 500
	// euro is the base currency of the European Central Bank's rates.
	euro money.Currency = "EUR"
)

var errTooMany = fmt.Errorf("has more than %d rates", maxRates)

// read reads rates in the XML format of the European Central Bank or as lines.
func read(r io.Reader, base money.Currency) (pricing.Rates, error) {
	b := bufio.NewReader(io.LimitReader(r, maxBytes))
	for {
		c, err := b.ReadByte()
		switch {
		case err == io.EOF:
			return nil, errors.New("is empty")
		case err != nil:
			return nil, err
		case strings.IndexByte(" \t\r\n\xEF\xBB\xBF", c) >= 0:
			continue
		}
		_ = b.UnreadByte() // cannot fail after ReadByte
		if c == '<' {
			return readXML(b, base)
		}
		return readLines(b, base)
	}
}

// readLines reads a rate from each line. Rates are amounts of the base currency. A # starts
// a comment.
func readLines(r io.Reader, base money.Currency) (pricing.Rates, error) {
	rates := pricing.Rates{}
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		if len(rates) == maxRates {
			return nil, errTooMany
		}
		if err := rates.Add(text); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	switch _, own := rates[base]; {
	case lines.Err() != nil:
		return nil, lines.Err()
	case own:
		return nil, fmt.Errorf("has a rate of %s, which is MARKET_PRICE_CURRENCY itself; remove it", base)
	case len(rates) == 0:
		return nil, errors.New("has no rates")
	}
	return rates, nil
}

// readXML reads the rates of the newest day in the European Central Bank's format. Such a rate
// is the price of one euro in a currency.
func readXML(r io.Reader, base money.Currency) (pricing.Rates, error) {
	var newest, day time.Time
	var perEuro map[money.Currency]money.Rate
	d := xml.NewDecoder(r)
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("is not XML: %w", err)
		}
		cube, ok := token.(xml.StartElement)
		if !ok || cube.Name.Local != "Cube" {
			continue
		}
		if text := attribute(cube, "time"); text != "" {
			if day, err = time.Parse(time.DateOnly, text); err != nil {
				return nil, fmt.Errorf("has the day %.20q, which is not a date", text)
			}
			if day.After(newest) {
				newest, perEuro = day, map[money.Currency]money.Rate{}
			}
		}
		code := attribute(cube, "currency")
		if code == "" || !day.Equal(newest) {
			continue
		}
		switch {
		case day.IsZero():
			return nil, errors.New("has rates without a date")
		case len(perEuro) == maxRates:
			return nil, errTooMany
		}
		if err := add(perEuro, code, attribute(cube, "rate")); err != nil {
			return nil, err
		}
	}
	return cross(perEuro, newest, base)
}

func add(perEuro map[money.Currency]money.Rate, code, value string) error {
	currency, err := money.ParseCurrency(code)
	if err != nil {
		return err
	}
	rate, err := money.ParseRate([]byte(value))
	if err != nil {
		return fmt.Errorf("has the value %.20q, which is not a rate of %s: %w", value, currency, err)
	}
	if _, twice := perEuro[currency]; twice || currency == euro {
		return fmt.Errorf("has two rates of %s", currency)
	}
	perEuro[currency] = rate
	return nil
}

func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// cross converts the prices of one euro in each currency to rates into the base currency.
func cross(perEuro map[money.Currency]money.Rate, day time.Time, base money.Currency) (pricing.Rates, error) {
	if len(perEuro) == 0 {
		return nil, errors.New("has no rates")
	}
	perEuro[euro] = money.RateScale
	inBase, ok := perEuro[base]
	if !ok {
		return nil, fmt.Errorf("has no rate of MARKET_PRICE_CURRENCY %s", base)
	}
	rates := pricing.Rates{}
	for currency, rate := range perEuro {
		if currency == base {
			continue
		}
		value, ok := money.CrossRate(inBase, rate)
		if !ok {
			return nil, fmt.Errorf("has a rate of %s in %s that is out of range", currency, base)
		}
		rates[currency] = pricing.Rate{Value: value, Date: day}
	}
	return rates, nil
}
