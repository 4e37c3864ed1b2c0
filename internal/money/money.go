// Package money holds exact amounts. Market prices are whole micro-units
// (10^-6) of one currency; nothing here, or anywhere else in Assay, keeps
// money in binary floating point.
package money

import (
	"errors"
	"fmt"
	"math/bits"
	"strconv"
)

// Scale is how many micro-units make one unit of a currency.
const Scale = 1_000_000

// Micro is an amount in micro-units of a currency. What a zero means is the
// holder's to say; for market prices it is "none".
type Micro int64

// ErrSyntax and ErrRange tell why a text is no amount.
var (
	ErrSyntax = errors.New("not a decimal number")
	ErrRange  = errors.New("amount out of range")
)

// Parse reads a JSON-style decimal number ("12.345", "1e-3", "-4"), given in
// 1/unit of the currency (unit 100: cents), and rounds it half to even to
// micro-units. It takes no spaces, signs of currencies or thousands marks, no
// NaN and no infinity. The result is exact: no float is involved.
func Parse(text []byte, unit int64) (Micro, error) {
	if unit <= 0 || unit > Scale {
		return 0, fmt.Errorf("unit %d: %w", unit, ErrRange)
	}
	digits, exp, negative, err := scan(text)
	if err != nil {
		return 0, err
	}
	// value = digits * 10^exp * Scale / unit
	hi, lo := bits.Mul64(digits, Scale)
	divisor := uint64(unit)
	for ; exp > 0 && hi == 0; exp-- {
		hi, lo = bits.Mul64(lo, 10)
	}
	if exp > 0 && (hi != 0 || lo != 0) {
		return 0, ErrRange
	}
	for ; exp < 0; exp++ {
		if divisor > 1<<59 {
			// The divisor already exceeds every numerator that could still
			// round up to one micro-unit.
			return 0, nil
		}
		divisor *= 10
	}
	if hi >= divisor {
		return 0, ErrRange
	}
	quotient, rest := bits.Div64(hi, lo, divisor)
	if half := divisor - rest; rest > half || (rest == half && quotient&1 == 1) {
		quotient++
	}
	if quotient > 1<<63-1 {
		return 0, ErrRange
	}
	if negative {
		return -Micro(quotient), nil
	}
	return Micro(quotient), nil
}

// maxDigits is how many significant digits are kept exactly; 19 always fit a
// uint64.
const maxDigits = 19

// scan splits a number into at most maxDigits significant digits and a power
// of ten. Digits beyond those are dropped: they are worth less than one part in 10^18, but for
// a tie they would break; see sticky.
func scan(text []byte) (digits uint64, exp int, negative bool, err error) {
	i := 0
	if i < len(text) && text[i] == '-' {
		negative = true
		i++
	}
	seen, kept, fraction := 0, 0, false
	sticky := false
	for ; i < len(text); i++ {
		c := text[i]
		if c == '.' && !fraction && seen > 0 {
			fraction = true
			continue
		}
		if c < '0' || c > '9' {
			break
		}
		seen++
		switch {
		case kept < maxDigits:
			if kept > 0 || c != '0' {
				digits = digits*10 + uint64(c-'0')
				kept++
			}
			if fraction {
				exp--
			}
		default:
			sticky = sticky || c != '0'
			if !fraction {
				exp++
			}
		}
	}
	if seen == 0 || text[i-1] == '.' {
		return 0, 0, false, ErrSyntax
	}
	// A nonzero tail lifts an exact half above it.
	if sticky && digits%10 == 0 {
		digits++
	} else if sticky && digits%10 == 5 {
		digits++
	}
	if i == len(text) {
		return digits, exp, negative, nil
	}
	if text[i] != 'e' && text[i] != 'E' {
		return 0, 0, false, ErrSyntax
	}
	power, err := strconv.Atoi(string(text[i+1:]))
	if errors.Is(err, strconv.ErrRange) || power > 1000 || power < -1000 {
		if digits == 0 || power < 0 {
			return 0, 0, false, nil
		}
		return 0, 0, false, ErrRange
	}
	if err != nil {
		return 0, 0, false, ErrSyntax
	}
	return digits, exp + power, negative, nil
}

// String writes the amount as a decimal number without needless zeros:
// "12.345", "0.000001", "-4".
func (m Micro) String() string { return string(m.AppendText(nil)) }

// AppendText appends what String returns.
func (m Micro) AppendText(b []byte) []byte {
	u := uint64(m)
	if m < 0 {
		b = append(b, '-')
		u = -u
	}
	b = strconv.AppendUint(b, u/Scale, 10)
	rest := u % Scale
	if rest == 0 {
		return b
	}
	b = append(b, '.')
	for place := uint64(Scale / 10); rest > 0; place /= 10 {
		b = append(b, byte('0'+rest/place))
		rest %= place
	}
	return b
}

// MarshalJSON writes the amount as a JSON number.
func (m Micro) MarshalJSON() ([]byte, error) { return m.AppendText(nil), nil }

// UnmarshalJSON reads a JSON number exactly.
func (m *Micro) UnmarshalJSON(text []byte) error {
	v, err := Parse(text, 1)
	if err != nil {
		return err
	}
	*m = v
	return nil
}

// Currency is an ISO 4217 code in upper case, such as "USD".
type Currency string

// ParseCurrency checks that text has the form of a currency code.
func ParseCurrency(text string) (Currency, error) {
	if len(text) != 3 {
		return "", fmt.Errorf("currency %q: want three upper-case letters, such as USD", text)
	}
	for i := range len(text) {
		if text[i] < 'A' || text[i] > 'Z' {
			return "", fmt.Errorf("currency %q: want three upper-case letters, such as USD", text)
		}
	}
	return Currency(text), nil
}
