package sim

import "math/bits"

// one is 1.0 in fixed point with 16 fractional bits. Factors and logarithms use it.
const one = 1 << 16

// mix is the finalizer of splitmix64. Each bit of x affects about half of the bits of the
// result.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// derive returns a number that depends only on h and salt.
func derive(h, salt uint64) uint64 { return mix(h + (salt+1)*0x9e3779b97f4a7c15) }

// stream generates pseudo-random numbers. The catalog must never change, so stream does
// not depend on the generators of the standard library.
type stream uint64

func (s *stream) next() uint64 {
	*s += 0x9e3779b97f4a7c15
	return mix(uint64(*s))
}

// below returns a number in [0, n).
func (s *stream) below(n int) int {
	hi, _ := bits.Mul64(s.next(), uint64(n))
	return int(hi)
}

// pick returns one of the words.
func (s *stream) pick(words []string) string { return words[s.below(len(words))] }

// uniform maps the upper bits of h to [0, one).
func uniform(h uint64) int64 { return int64(h >> 48) }

// gauss maps h to an approximately normal distribution within ±3.5, with mean 0 and
// standard deviation 1 in fixed point. It adds the four 16-bit parts of h.
func gauss(h uint64) int64 {
	sum := int64(h&0xffff) + int64(h>>16&0xffff) + int64(h>>32&0xffff) + int64(h>>48)
	return (sum - 2*one) * 113512 >> 16 // 113512 is sqrt(3), which makes the deviation 1
}

// powers is 2^(1/2), 2^(1/4), ... in fixed point with 30 fractional bits.
var powers = [10]uint64{
	1518500250, 1276901417, 1170923762, 1121280436, 1097253708,
	1085434106, 1079572136, 1076653033, 1075196443, 1074468888,
}

// exponential holds 2^(i/1024) in fixed point with 30 fractional bits.
type exponential [1024]uint32

func newExponential() *exponential {
	var e exponential
	for i := range e {
		v := uint64(1) << 30
		for bit, power := range powers {
			if i>>(9-bit)&1 == 1 {
				v = v * power >> 30
			}
		}
		e[i] = uint32(v)
	}
	return &e
}

// scale returns v * 2^x. x is in fixed point with 16 fractional bits and is limited to
// ±20. v must be less than 2^40. The result is accurate to about one part in a thousand
// and the same on every platform.
func (e *exponential) scale(v, x int64) int64 {
	x = min(max(x, -20*one), 20*one)
	whole, part := x>>16, x&(one-1)
	hi, lo := bits.Mul64(uint64(v), uint64(e[part>>6]))
	shift := uint(30 - whole)
	return int64(hi<<(64-shift) | lo>>shift)
}
