package money

import (
	"math"
	"math/big"
	"testing"

	"assay/internal/randtest"
)

func TestRatio_IsInMillionths(t *testing.T) {
	tests := []struct {
		part, whole, want Micro
		ok                bool
	}{
		{59, 100, 590_000, true},
		{1, 3, 333_333, true},
		{2, 3, 666_667, true},
		{1, 2_000_000, 0, true}, // a tie rounds down to 0
		{3, 2_000_000, 2, true}, // a tie rounds up to 2
		{0, 5, 0, true},
		{5, 0, 0, false},
		{0, 0, 0, false},
		{math.MaxInt64, 1, 0, false},
	}
	for _, tt := range tests {
		if got, ok := Ratio(tt.part, tt.whole); got != tt.want || ok != tt.ok {
			t.Errorf("Ratio(%d, %d) = %d, %t; want %d, %t", tt.part, tt.whole, got, ok, tt.want, tt.ok)
		}
	}
}

func TestRounding_MatchesRationalArithmetic(t *testing.T) {
	r := randtest.New(t)
	for range randtest.Count(50_000, 1_000_000) {
		a, b := anyMicro(r), anyMicro(r)
		if b == 0 {
			continue
		}
		want, ok := halfEven(new(big.Rat).Mul(big.NewRat(int64(a), int64(b)), big.NewRat(Scale, 1)))
		if got, gotOK := Ratio(a, b); got != want || gotOK != ok {
			t.Fatalf("Ratio(%d, %d) = %d, %t; want %d, %t", a, b, got, gotOK, want, ok)
		}
		want, _ = halfEven(big.NewRat(int64(a), int64(b)))
		if got := Div(a, int64(b)); got != want {
			t.Fatalf("Div(%d, %d) = %d, want %d", a, b, got, want)
		}
	}
}

func TestDiv_PanicsOnZero(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("Div(1, 0) returned, want a panic")
		}
	}()
	Div(1, 0)
}
