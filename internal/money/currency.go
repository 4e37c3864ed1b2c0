package money

import "fmt"

// Currency is an ISO 4217 code in upper case, such as "USD".
type Currency string

// ParseCurrency returns text as a Currency. It checks only the form: three upper-case
// letters. Circulates checks that ISO 4217 has the code.
func ParseCurrency(text string) (Currency, error) {
	if len(text) != 3 {
		return "", currencyError(text)
	}
	for i := range len(text) {
		if text[i] < 'A' || text[i] > 'Z' {
			return "", currencyError(text)
		}
	}
	return Currency(text), nil
}

func currencyError(text string) error {
	// The text may have any length, so the message quotes only its start.
	return fmt.Errorf("currency %.20q: want three upper-case letters, such as USD", text)
}
