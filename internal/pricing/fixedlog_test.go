package pricing

import (
	"math"
	"math/bits"
	"testing"

	"assay/internal/randtest"
)

func TestLn_IsExactToItsLastBit(t *testing.T) {
	check := func(x uint64) {
		t.Helper()
		// math.Log has an error of a few units of 2^-48 in this range.
		got, want := float64(lnSeries(x, 15)), math.Ldexp(math.Log(float64(x)), logBits)
		if math.Abs(got-want) > 0.501 {
			t.Fatalf("ln(%d) = %.0f, want %.3f", x, got, want)
		}
	}
	for x := uint64(1); x < 5_000; x++ {
		check(x)
	}
	for shift := range 50 {
		for x := uint64(1)<<shift - 1; x <= 1<<shift+1; x++ {
			check(max(x, 1))
		}
	}
	r := randtest.New(t)
	for range randtest.Count(100_000, 5_000_000) {
		check(1 + r.Uint64()>>(14+r.IntN(49)))
	}
}

// The expected values were computed independently, with 60 decimal digits. They must be the
// same on every machine.
func TestLn_NeverChanges(t *testing.T) {
	for x, want := range map[uint64]logarithm{
		1:                  0,
		2:                  2977044472,
		3:                  4718503851,
		10:                 9889527671,
		1_000_000:          59337166024,
		1_438_168_000:      90566411652,
		10_000_000_000_000: 128563859719,
	} {
		if got := lnSeries(x, 15); got != want {
			t.Errorf("ln(%d) = %d, want %d", x, got, want)
		}
	}
}

func TestLn_IsMonotonic(t *testing.T) {
	for x := uint64(1); x < 200_000; x++ {
		if lnSeries(x+1, 15) < lnSeries(x, 15) {
			t.Fatalf("got ln(%d) > ln(%d), want a rising function", x, x+1)
		}
	}
	r := randtest.New(t)
	for range randtest.Count(100_000, 1_000_000) {
		x := 1 + r.Uint64()>>(1+r.IntN(63))
		if bits.Len64(x) < 64 && lnSeries(x+1, 15) < lnSeries(x, 15) {
			t.Fatalf("got ln(%d) > ln(%d), want a rising function", x, x+1)
		}
	}
}
