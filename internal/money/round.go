package money

import (
	"math"
	"math/bits"
)

// Ratio returns part * Scale / whole, rounded half to even: how many millionths
// of whole part is. It is false where whole is zero or the result exceeds a
// Micro.
func Ratio(part, whole Micro) (Micro, bool) {
	return mulDiv(part, Scale, whole)
}

// Div returns amount / n, rounded half to even. It panics when n is zero, and
// when the amount is the least Micro, which no function here yields.
func Div(amount Micro, n int64) Micro {
	q, ok := mulDiv(amount, 1, Micro(n))
	if !ok {
		panic("money: division by zero, or of the least amount")
	}
	return q
}

// mulDiv returns a * b / c, rounded half to even; false where c is zero or the
// result exceeds a Micro.
func mulDiv(a, b, c Micro) (Micro, bool) {
	divisor := magnitude(c)
	hi, lo := bits.Mul64(magnitude(a), magnitude(b))
	if hi >= divisor {
		return 0, false
	}
	q, rest := bits.Div64(hi, lo, divisor)
	if q > math.MaxInt64 {
		return 0, false // also keeps the next line from wrapping
	}
	if up := divisor - rest; rest > up || (rest == up && q%2 == 1) {
		q++
	}
	if q > math.MaxInt64 {
		return 0, false
	}
	if (a < 0) != (b < 0) != (c < 0) {
		return -Micro(q), true
	}
	return Micro(q), true
}
