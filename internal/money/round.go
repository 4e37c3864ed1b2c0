package money

import (
	"math"
	"math/bits"
)

// Ratio returns part / whole in millionths, rounded half to even. ok is false if whole is
// zero or the result overflows a Micro.
func Ratio(part, whole Micro) (ratio Micro, ok bool) {
	return mulDiv(part, Scale, whole)
}

// Div returns amount / n, rounded half to even. It panics if n is zero or amount is
// math.MinInt64, which no function of this package returns.
func Div(amount Micro, n int64) Micro {
	q, ok := mulDiv(amount, 1, Micro(n))
	if !ok {
		panic("money: division by zero or of the smallest amount")
	}
	return q
}

// mulDiv returns a * b / c, rounded half to even. ok is false if c is zero or the result
// overflows a Micro.
func mulDiv(a, b, c Micro) (m Micro, ok bool) {
	hi, lo := bits.Mul64(magnitude(a), magnitude(b))
	q, ok := divide(hi, lo, magnitude(c))
	if (a < 0) != (b < 0) != (c < 0) {
		return -q, ok
	}
	return q, ok
}

// divide returns the quotient of a number of 128 bits, rounded half to even. ok is false if
// the divisor is zero or the result overflows a Micro.
func divide(hi, lo, divisor uint64) (m Micro, ok bool) {
	if hi >= divisor {
		return 0, false
	}
	q, rest := bits.Div64(hi, lo, divisor)
	if q > math.MaxInt64 {
		return 0, false // q++ below must not wrap around
	}
	if up := divisor - rest; rest > up || (rest == up && q%2 == 1) {
		q++
	}
	if q > math.MaxInt64 {
		return 0, false
	}
	return Micro(q), true
}
