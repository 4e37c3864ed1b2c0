package pricing

import "math/bits"

// logarithm is a natural logarithm in units of 2^-32. It is computed with integers only.
// Floating-point logarithms can differ in the last bit between compilers and processors.
// A quote near a limit would then be used on one machine and rejected on another.
type logarithm int64

const (
	logBits = 32 // fraction bits of a logarithm
	fixBits = 62 // fraction bits of intermediate values; a uint64 holds [0, 4)

	one   = 1 << fixBits
	root2 = 6521908912666391106 // sqrt(2)
	ln2   = 3196577161300663915 // ln(2)
)

// lnSeries returns the natural logarithm of x, which must be positive. It sums a series up
// to the given odd power. The error is at most 2^-32 for power 15 and 2^-29 for power 9.
//
// Let x = 2^e * f with f in [sqrt(1/2), sqrt(2)). Then ln x = e ln 2 + 2 atanh(r) with
// r = (f-1)/(f+1) and |r| < 0.172. The series of atanh(r) is r + r^3/3 + r^5/5 + ...
func lnSeries(x, power uint64) logarithm {
	shift := bits.LeadingZeros64(x)
	f := x << shift >> (63 - fixBits) // in [1, 2)
	e := int64(63 - shift)
	if f >= root2 {
		f /= 2
		e++
	}
	over := f - one
	if f < one {
		over = one - f
	}
	r, _ := bits.Div64(over>>(64-fixBits), over<<fixBits, f+one)
	square := mulFix(r, r)
	sum := one / power
	for k := power - 2; k > 1; k -= 2 {
		sum = mulFix(sum, square) + one/k
	}
	sum = mulFix(sum, square) + one
	part := int64(mulFix(r, 2*sum))
	if f < one {
		part = -part
	}
	// e * ln2 overflows with 62 fraction bits, so the sum uses 56, which is precise enough.
	const spare = 6
	whole := e*(ln2>>spare) + part>>spare
	return logarithm((whole + 1<<(fixBits-spare-logBits-1)) >> (fixBits - spare - logBits))
}

// mulFix multiplies two numbers with fixBits fraction bits.
func mulFix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi<<(64-fixBits) | lo>>fixBits
}
