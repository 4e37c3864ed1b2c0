package money

import (
	"math"
	"math/big"
	"math/bits"
	"strings"
)

// Sum is a total of non-negative amounts, in micro-units. It has 128 bits, so it is exact
// beyond the range of a Micro. The zero value is an empty sum. Sums can be compared
// with ==.
type Sum struct{ hi, lo uint64 }

// Add returns s + n*amount. Neither n nor amount may be negative.
func (s Sum) Add(amount Micro, n int64) Sum {
	hi, lo := bits.Mul64(uint64(amount), uint64(n))
	var carry uint64
	s.lo, carry = bits.Add64(s.lo, lo, 0)
	s.hi, _ = bits.Add64(s.hi, hi, carry)
	return s
}

// Div returns s / n, rounded half to even. ok is false if n is not positive or the result
// overflows a Micro.
func (s Sum) Div(n int64) (m Micro, ok bool) {
	if n <= 0 {
		return 0, false
	}
	return divide(s.hi, s.lo, uint64(n))
}

// Convert converts a sum of a foreign currency to the base currency. It returns s * rate,
// rounded half to even. A result beyond 128 bits becomes the largest sum.
func (s Sum) Convert(rate Rate) Sum {
	product := new(big.Int).Mul(s.big(), big.NewInt(int64(rate)))
	scale := big.NewInt(RateScale)
	var rest big.Int
	product.QuoRem(product, scale, &rest)
	up := rest.Lsh(&rest, 1).Cmp(scale)
	if up > 0 || up == 0 && product.Bit(0) == 1 {
		product.Add(product, big.NewInt(1))
	}
	if product.BitLen() > 128 {
		return Sum{math.MaxUint64, math.MaxUint64}
	}
	return sumOf(product)
}

// big returns the micro-units of the sum.
func (s Sum) big() *big.Int {
	n := new(big.Int).SetUint64(s.hi)
	return n.Lsh(n, 64).Or(n, new(big.Int).SetUint64(s.lo))
}

// sumOf returns a number of at most 128 bits as a sum.
func sumOf(n *big.Int) Sum {
	lo := new(big.Int).And(n, new(big.Int).SetUint64(math.MaxUint64))
	return Sum{new(big.Int).Rsh(n, 64).Uint64(), lo.Uint64()}
}

// String formats the sum like Micro.String.
func (s Sum) String() string {
	if s.hi == 0 && s.lo <= 1<<63-1 {
		return Micro(s.lo).String()
	}
	var rest big.Int
	n, _ := new(big.Int).QuoRem(s.big(), big.NewInt(Scale), &rest)
	return n.String() + Micro(rest.Int64()).String()[1:] // cut the 0 before the point
}

// MarshalJSON encodes the sum as a JSON number.
func (s Sum) MarshalJSON() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalJSON decodes the output of MarshalJSON.
func (s *Sum) UnmarshalJSON(text []byte) error {
	whole, part, _ := strings.Cut(string(text), ".")
	const places = 6
	if whole == "" || len(whole) > 40 || len(part) > places {
		return ErrSyntax
	}
	all := whole + part + strings.Repeat("0", places-len(part))
	if strings.Trim(all, "0123456789") != "" {
		return ErrSyntax
	}
	n, _ := new(big.Int).SetString(all, 10) // cannot fail: all consists of digits
	if n.BitLen() > 128 {
		return ErrRange
	}
	*s = sumOf(n)
	return nil
}
