package pricing

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"assay/internal/money"
)

// Log is a natural logarithm, or a difference of two logarithms, in units of 2^-24. The
// logarithms of valid prices span a range of 30, so an int32 holds every difference. The
// prices of a game on 40 markets then need only a few megabytes. Logarithms are computed
// with integers, so all machines get the same result.
type Log int32

// The logarithms of the method's factors.
const (
	logOne  Log = 1 << 24
	log1_25 Log = 3743728
	log1_3  Log = 4401742
	log1_35 Log = 5034920
	log1_5  Log = 6802576
	log2    Log = 11629080
	log3    Log = 18431656
	log4    Log = 23258160
	log5    Log = 27001887

	// none stands for "no price" in a column of logarithms.
	none Log = math.MinInt32
)

// Ln returns the natural logarithm of an amount in micro-units. The amount must be
// positive.
func Ln(m money.Micro) Log {
	const drop = logBits - 24
	return Log((lnSeries(uint64(m), 9) + 1<<(drop-1)) >> drop)
}

// lnRate returns the natural logarithm of a rate.
func lnRate(r money.Rate) Log {
	const scale = 463571610 // ln(money.RateScale)
	return Ln(money.Micro(r)) - scale
}

// Exp returns the factor e^l in millionths, rounded to the nearest integer. The result is
// limited to the range from one millionth to one billion.
func Exp(l Log) money.Micro {
	const most = 347677000 // just below ln(10^9)
	l = max(min(l, most), -most)
	// Let l = k ln 2 + r with 0 <= r < ln 2. Then e^l = 2^k * e^r. The series of e^r uses
	// 62 fraction bits, the reduction of l uses 56.
	const spare = 6
	x := int64(l) << (fixBits - spare - 24)
	k := x / (ln2 >> spare)
	if x < k*(ln2>>spare) {
		k--
	}
	r := uint64(x-k*(ln2>>spare)) << spare
	sum := uint64(one)
	for n := uint64(16); n > 0; n-- {
		sum = one + mulFix(sum, r)/n
	}
	hi, lo := bits.Mul64(sum, money.Scale)
	return max(money.Micro(shiftRound(hi, lo, uint(fixBits-k))), 1)
}

// shiftRound returns a 128-bit number divided by 2^n, rounded to the nearest integer. n
// must be in the range 1 to 127.
func shiftRound(hi, lo uint64, n uint) uint64 {
	half := n - 1
	var carry uint64
	if half >= 64 {
		hi += 1 << (half - 64)
	} else {
		lo, carry = bits.Add64(lo, 1<<half, 0)
		hi += carry
	}
	if n >= 64 {
		return hi >> (n - 64)
	}
	return hi<<(64-n) | lo>>n
}

func abs[T ~int32 | ~int64](x T) T { return max(x, -x) }

// middleOf returns the median of one or more values. For an even count it is the mean of
// the two middle values, rounded down. It reorders v.
func middleOf(v []Log) Log {
	n := len(v)
	hi := nth(v, n/2)
	if n%2 == 1 {
		return hi
	}
	lo := slices.Max(v[:n/2])
	return Log((int64(lo) + int64(hi)) >> 1)
}

// nth returns the element that would be at index k if v were sorted. It reorders v so that
// this element is at index k and no earlier element is larger (quickselect).
func nth[T cmp.Ordered](v []T, k int) T {
	lo, hi := 0, len(v)-1
	for hi-lo > 12 {
		p := pivot(v, lo, hi)
		i, j := lo, hi
		for i <= j {
			for v[i] < p {
				i++
			}
			for v[j] > p {
				j--
			}
			if i <= j {
				v[i], v[j] = v[j], v[i]
				i, j = i+1, j-1
			}
		}
		switch {
		case k <= j:
			hi = j
		case k >= i:
			lo = i
		default:
			return v[k]
		}
	}
	slices.Sort(v[lo : hi+1])
	return v[k]
}

// pivot returns the median of the first, the middle and the last value.
func pivot[T cmp.Ordered](v []T, lo, hi int) T {
	a, b, c := v[lo], v[lo+(hi-lo)/2], v[hi]
	return max(min(a, b), min(max(a, b), c))
}

// root returns the square root of x, rounded down.
func root(x uint64) uint64 {
	if x == 0 {
		return 0
	}
	r := uint64(1) << ((bits.Len64(x) + 1) / 2)
	for {
		next := (r + x/r) / 2
		if next >= r {
			return r
		}
		r = next
	}
}
