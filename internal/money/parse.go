package money

import (
	"errors"
	"math"
)

// ErrSyntax, ErrRange and ErrUnit are the reasons why a text is no amount.
var (
	ErrSyntax = errors.New("not a decimal number")
	ErrRange  = errors.New("amount out of range")
	ErrUnit   = errors.New("unit is not a power of ten from 1 to 1000000")
)

// Parse reads a decimal number that counts 1/unit of a currency (unit 1: whole
// units, 100: cents, 1000: mills) and rounds it half to even to micro-units.
// The result is exact: no float is involved, however long the number.
//
// The grammar is JSON's, for text that was quoted or came from a CSV file, too:
// "12.345", "-4", "1e-3", "-0". There is no "+1", ".5", "1.", "007", "0x1",
// "1_000", "1,000" or "NaN", no space and no sign of a currency: a list that
// has them is not what its reader takes it for. Those are ErrSyntax. Amounts
// beyond 2^63-1 micro-units in either direction are ErrRange.
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

// CheckUnit reports whether Parse takes unit.
func CheckUnit(unit int64) error {
	if _, ok := unitShift(unit); !ok {
		return ErrUnit
	}
	return nil
}

// unitShift returns the power of ten that turns 1/unit into micro-units.
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

// number is a decimal number taken apart; it holds parts of the text.
type number struct {
	negative bool
	whole    []byte // digits before the point
	fraction []byte // digits after it
	exp      int64  // written behind the e
}

// maxExp bounds exponents, so that sums with the length of any text cannot
// overflow. A greater one means the same: the value is zero or out of range.
const maxExp = 1 << 40

// scan takes text apart by JSON's grammar of numbers.
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

// exponent reads what follows the e.
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

// digits splits off the digits that text begins with.
func digits(text []byte) (head, tail []byte) {
	i := 0
	for i < len(text) && '0' <= text[i] && text[i] <= '9' {
		i++
	}
	return text[:i], text[i:]
}

// round returns the magnitude of n * 10^shift, rounded half to even to a whole
// number. It is false where that exceeds a Micro.
func (n *number) round(shift int64) (Micro, bool) {
	var (
		amount uint64                                    // of the digits worth one or more
		tenths byte                                      // the digit worth tenths
		beyond bool                                      // any digit worth less is not 0
		place  = int64(len(n.whole)) - 1 + n.exp + shift // the next digit is worth 10^place
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
