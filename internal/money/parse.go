package money

import (
	"errors"
	"math"
)

// Errors of Parse.
var (
	ErrSyntax = errors.New("not a decimal number")
	ErrRange  = errors.New("amount out of range")
	ErrUnit   = errors.New("unit is not a power of ten from 1 to 1000000")
)

// Parse converts a decimal number to micro-units and rounds it half to even. The number
// counts fractions 1/unit of a currency. Unit 1 means whole units, 100 means cents and
// 1000 means mills. Parse uses only integers, so the result is correctly rounded for
// numbers of any length.
//
// Parse accepts the grammar of JSON numbers, also in quoted text and CSV: "12.345", "-4",
// "1e-3" or "-0". Parse returns ErrSyntax for "+1", ".5", "1.", "007", "0x1", "1_000",
// "1,000", "NaN", spaces and currency signs. A file with such values probably has another
// format than the caller expects. Parse returns ErrRange if the magnitude exceeds 2^63-1
// micro-units, and ErrUnit if unit is not a power of ten up to 10^6.
func Parse(text []byte, unit int64) (Micro, error) {
	shift, ok := unitShift(unit)
	if !ok {
		return 0, ErrUnit
	}
	n, ok := scan(text)
	if !ok {
		return 0, ErrSyntax
	}
	amount, ok := n.round(shift)
	if !ok {
		return 0, ErrRange
	}
	if n.negative {
		return -amount, nil
	}
	return amount, nil
}

// CheckUnit returns ErrUnit if Parse does not accept unit.
func CheckUnit(unit int64) error {
	if _, ok := unitShift(unit); !ok {
		return ErrUnit
	}
	return nil
}

// unitShift returns the exponent of ten that converts 1/unit to micro-units.
func unitShift(unit int64) (int64, bool) {
	shift := int64(6)
	for power := int64(1); power <= Scale; power *= 10 {
		if unit == power {
			return shift, true
		}
		shift--
	}
	return 0, false
}

// number is a parsed decimal number. Its slices refer to the parsed text.
type number struct {
	negative bool
	whole    []byte // digits before the point
	fraction []byte // digits after it
	exp      int64  // exponent after the e
}

// maxExp limits exponents, so that adding the length of the text cannot overflow. The
// limit does not change results: such values round to zero or are out of range.
const maxExp = 1 << 40

// scan parses text with the grammar of JSON numbers. ok is false on a syntax error.
func scan(text []byte) (n number, ok bool) {
	if len(text) > 0 && text[0] == '-' {
		n.negative = true
		text = text[1:]
	}
	n.whole, text = digits(text)
	if len(n.whole) == 0 || (n.whole[0] == '0' && len(n.whole) > 1) {
		return n, false
	}
	if len(text) > 0 && text[0] == '.' {
		n.fraction, text = digits(text[1:])
		if len(n.fraction) == 0 {
			return n, false
		}
	}
	if len(text) == 0 {
		return n, true
	}
	if text[0] != 'e' && text[0] != 'E' {
		return n, false
	}
	n.exp, ok = exponent(text[1:])
	return n, ok
}

// exponent parses the digits and the optional sign after the e. It limits the result to
// the range -maxExp to maxExp.
func exponent(text []byte) (exp int64, ok bool) {
	negative := false
	if len(text) > 0 && (text[0] == '-' || text[0] == '+') {
		negative = text[0] == '-'
		text = text[1:]
	}
	power, rest := digits(text)
	if len(power) == 0 || len(rest) > 0 {
		return 0, false
	}
	for _, c := range power {
		exp = min(exp*10+int64(c-'0'), maxExp)
	}
	if negative {
		exp = -exp
	}
	return exp, true
}

// digits splits text after its leading digits.
func digits(text []byte) (head, tail []byte) {
	i := 0
	for i < len(text) && '0' <= text[i] && text[i] <= '9' {
		i++
	}
	return text[:i], text[i:]
}

// round returns the magnitude of n * 10^shift, rounded half to even to an integer. ok is
// false if the result overflows a Micro.
func (n *number) round(shift int64) (m Micro, ok bool) {
	var (
		amount uint64                                    // integer part
		tenths byte                                      // first digit of the fraction
		beyond bool                                      // a later digit of the fraction is not 0
		place  = int64(len(n.whole)) - 1 + n.exp + shift // power of ten of the next digit
	)
	for _, part := range [...][]byte{n.whole, n.fraction} {
		for _, c := range part {
			d := c - '0'
			switch {
			case place >= 0:
				if amount > (math.MaxInt64-uint64(d))/10 {
					return 0, false
				}
				amount = amount*10 + uint64(d)
			case place == -1:
				tenths = d
			default:
				beyond = beyond || d != 0
			}
			place--
		}
	}
	for ; place >= 0 && amount > 0; place-- {
		if amount > math.MaxInt64/10 {
			return 0, false
		}
		amount *= 10
	}
	if tenths > 5 || (tenths == 5 && (beyond || amount%2 == 1)) {
		amount++
	}
	return Micro(amount), amount <= math.MaxInt64
}
