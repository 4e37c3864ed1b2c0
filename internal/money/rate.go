package money

import (
	"fmt"
	"strings"
)

// RateScale is how many units of a Rate make one unit of the base currency.
const RateScale = 1_000_000_000_000

// Rate is what one unit of a foreign currency costs in the base currency, in
// units of 10^-12: where a unit is worth a ten-thousandth, as of the rupiah in
// dollars, micro-units would leave two digits of it.
type Rate int64

// ParseRate reads a decimal number by the grammar of Parse, rounded half to even
// to 10^-12. A rate is greater than zero and less than 9,223,372.
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

// CrossRate returns what one unit of a currency costs in the base currency, from
// how many units of each of the two one unit of a third currency costs: base /
// foreign, rounded half to even once. It is false where that is no Rate.
func CrossRate(base, foreign Rate) (Rate, bool) {
	r, ok := mulDiv(Micro(base), RateScale, Micro(foreign))
	return Rate(r), ok && r > 0
}

// Convert returns amount * rate, rounded half to even: an amount of a foreign
// currency in the base currency. It is false where the result exceeds a Micro.
func Convert(amount Micro, rate Rate) (Micro, bool) {
	return mulDiv(amount, Micro(rate), RateScale)
}

// String writes the rate as a decimal number without needless zeros.
func (r Rate) String() string {
	text := fmt.Sprintf("%d.%012d", int64(r)/RateScale, magnitude(Micro(r))%RateScale)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// MarshalJSON writes the rate as a JSON number.
func (r Rate) MarshalJSON() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalJSON reads a JSON number as ParseRate does.
func (r *Rate) UnmarshalJSON(text []byte) (err error) {
	*r, err = ParseRate(text)
	return err
}
