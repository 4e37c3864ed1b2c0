package pricing

import (
	"math"
	"slices"
	"testing"

	"assay/internal/money"
	"assay/internal/randtest"
)

func TestLn_IsTheNaturalLogarithm(t *testing.T) {
	r := randtest.New(t)
	for range randtest.Count(20_000, 1_000_000) {
		m := anyPrice(r)
		if got, want := float64(Ln(m))/(1<<24), math.Log(float64(m)); math.Abs(got-want) > 6e-8 {
			t.Fatalf("Ln(%d) = %v, want %v", m, got, want)
		}
	}
}

func TestExp_IsTheExponentialFunction(t *testing.T) {
	r := randtest.New(t)
	for range randtest.Count(20_000, 1_000_000) {
		l := Log(r.Int64N(600_000_000) - 300_000_000)
		want := math.Exp(float64(l)/(1<<24)) * 1e6
		if got := float64(Exp(l)); math.Abs(got-max(1, want)) > 0.51+want*1e-9 {
			t.Fatalf("Exp(%d) = %v, want %v", l, got, want)
		}
	}
	if Exp(0) != money.Scale || Exp(math.MaxInt32) < 999_000_000*money.Scale || Exp(math.MinInt32) != 1 {
		t.Errorf("Exp of 0, the maximum and the minimum: got %d, %d, %d, want 1000000, at least 999000000000000, 1",
			Exp(0), Exp(math.MaxInt32), Exp(math.MinInt32))
	}
}

func TestConstants_AreTheLogarithmsOfTheirFactors(t *testing.T) {
	for l, f := range map[Log]float64{
		log1_25: 1.25, log1_3: 1.3, log1_35: 1.35, log1_5: 1.5, log2: 2, log3: 3, log4: 4, log5: 5, bigMove: math.Exp(0.1),
		smallMove: math.Exp(0.05),
	} {
		if want := Log(math.Round(math.Log(f) * (1 << 24))); l != want {
			t.Errorf("logarithm of %v: got %d, want %d", f, l, want)
		}
	}
}

func TestMiddleOf_IsTheMedian(t *testing.T) {
	r := randtest.New(t)
	for range randtest.Count(2_000, 100_000) {
		v := make([]Log, 1+r.IntN(60))
		for i := range v {
			v[i] = Log(r.IntN(1 + r.IntN(100)))
		}
		sorted := slices.Sorted(slices.Values(v))
		want := sorted[len(v)/2]
		if len(v)%2 == 0 {
			want = (sorted[len(v)/2-1] + want) >> 1
		}
		if got := middleOf(v); got != want {
			t.Fatalf("median of %d: got %d, want %d", sorted, got, want)
		}
	}
}

func TestRoot_IsTheSquareRootRoundedDown(t *testing.T) {
	r := randtest.New(t)
	for range randtest.Count(20_000, 1_000_000) {
		x := r.Uint64() >> r.IntN(64)
		got := root(x)
		if got*got > x || (got < 1<<32-1 && (got+1)*(got+1) <= x) {
			t.Fatalf("root(%d) = %d, want the square root rounded down", x, got)
		}
	}
}
