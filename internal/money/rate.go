package money

import (
	"fmt"
	"strings"
)

// RateScale is the Rate of a currency that costs one unit of the base currency.
const RateScale = 1_000_000_000_000

// Rate is the price of one unit of a foreign currency in the base currency, in units of
// 10^-12. Micro-units are too coarse for rates. A rupiah costs less than a ten-thousandth of
// a dollar, so micro-units would keep only two digits of its rate.
type Rate int64

// ParseRate parses a decimal number with the grammar of Parse and rounds it half to even
// to 10^-12. It returns ErrRange unless the result is greater than zero and at most
// 9,223,372.036854775807.
func ParseRate(text []byte) (Rate, error) {
	n, ok := scan(text)
	if !ok {
		return 0, ErrSyntax
	}
	const shift = 12
	rate, ok := n.round(shift)
	if !ok || n.negative || rate == 0 {
		return 0, ErrRange
	}
	return Rate(rate), nil
}

// CrossRate returns base / foreign, rounded half to even once. Both are prices of one
// unit of the same third currency: one in the base currency, one in the foreign currency.
// The result is the price of the foreign currency in the base currency. ok is false if
// the result is zero or overflows a Rate.
func CrossRate(base, foreign Rate) (rate Rate, ok bool) {
	r, ok := mulDiv(Micro(base), RateScale, Micro(foreign))
	return Rate(r), ok && r > 0
}

// Convert converts an amount of a foreign currency to the base currency. It returns
// amount * rate, rounded half to even. ok is false if the result overflows a Micro.
func Convert(amount Micro, rate Rate) (converted Micro, ok bool) {
	return mulDiv(amount, Micro(rate), RateScale)
}

// String returns the rate as a decimal number without trailing zeros.
func (r Rate) String() string {
	text := fmt.Sprintf("%d.%012d", int64(r)/RateScale, magnitude(Micro(r))%RateScale)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// MarshalJSON encodes the rate as a JSON number.
func (r Rate) MarshalJSON() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalJSON decodes a JSON number like ParseRate.
func (r *Rate) UnmarshalJSON(text []byte) (err error) {
	*r, err = ParseRate(text)
	return err
}
