package pricing

import "math/bits"

// logarithm is a natural logarithm in units of 2^-32. Compilers may fuse or
// reorder the steps of floating-point logarithms, and processors differ in
// their last bit; a quote near the threshold would then be dropped on one
// machine and kept on another. This one is made of integer steps alone, so that
// there is nothing to differ.
type logarithm int64

const (
	logBits = 32 // fraction bits of a logarithm
	fixBits = 62 // fraction bits of the steps to it; numbers in [0, 4) fit a uint64

	one   = 1 << fixBits
	root2 = 6521908912666391106 // sqrt(2)
	ln2   = 3196577161300663915 // ln(2)
)

// lnSeries returns the natural logarithm of x, which must be positive, from the
// series up to an odd power: within 2^-32 for 15, 2^-29 for 9.
//
// x is 2^e * f with f in [sqrt(1/2), sqrt(2)), and ln f = 2 atanh(r) with
// r = (f-1)/(f+1), |r| < 0.172, whose series is r + r^3/3 + r^5/5 + ...
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
	// e * ln2 outgrows 62 fraction bits; 56 hold it, and cost nothing here.
	const spare = 6
	whole := e*(ln2>>spare) + part>>spare
	return logarithm((whole + 1<<(fixBits-spare-logBits-1)) >> (fixBits - spare - logBits))
}

// mulFix multiplies two numbers of fixBits fraction bits.
func mulFix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi<<(64-fixBits) | lo>>fixBits
}
