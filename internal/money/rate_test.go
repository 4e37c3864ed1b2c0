package money

import (
	"errors"
	"math"
	"math/big"
	"testing"

	"assay/internal/randtest"
)

func TestConvert_RoundsHalfToEvenAndReportsOverflow(t *testing.T) {
	const half = RateScale / 2
	tests := []struct {
		amount Micro
		rate   Rate
		want   Micro
		ok     bool
	}{
		{0, 1_083_400_000_000, 0, true},
		{1_000_000, 1_083_400_000_000, 1_083_400, true},
		{10_500_000, 1_083_400_000_000, 11_375_700, true},
		{1_000_000_000_000, 56_003_000, 56_003_000, true}, // a million rupiah
		{1, half, 0, true},                                // a tie rounds down to 0
		{3, half, 2, true},                                // a tie rounds up to 2
		{5, half, 2, true},                                // a tie rounds down to 2
		{1, half + 1, 1, true},                            // just above a tie
		{-3, half, -2, true},                              // negative ties round alike
		{math.MaxInt64, RateScale, math.MaxInt64, true},
		{math.MaxInt64, RateScale + 1, 0, false},
		{math.MaxInt64, math.MaxInt64, 0, false},
		{math.MinInt64, RateScale, 0, false},
	}
	for _, tt := range tests {
		if got, ok := Convert(tt.amount, tt.rate); got != tt.want || ok != tt.ok {
			t.Errorf("Convert(%d, %d) = %d, %t; want %d, %t", tt.amount, tt.rate, got, ok, tt.want, tt.ok)
		}
	}
}

func TestCrossRate_RoundsOnce(t *testing.T) {
	tests := []struct {
		base, foreign string
		want          string // empty: no result
	}{
		{"1.0834", "1", "1.0834"},
		{"1.0834", "163.45", "0.006628326705"}, // 0.0066283267054...
		{"1.0834", "19345.12", "0.000056003788"},
		{"163.45", "1.0834", "150.867638914528"},
		{"1", "3", "0.333333333333"},
		{"2", "3", "0.666666666667"},
		{"9000000", "0.5", ""},            // above the largest rate
		{"0.000000000001", "9000000", ""}, // below the smallest rate
	}
	for _, tt := range tests {
		base, err := ParseRate([]byte(tt.base))
		foreign, err2 := ParseRate([]byte(tt.foreign))
		if err != nil || err2 != nil {
			t.Fatalf("ParseRate: got errors %v and %v, want none", err, err2)
		}
		got, ok := CrossRate(base, foreign)
		if ok != (tt.want != "") || ok && got.String() != tt.want {
			t.Errorf("CrossRate(%s, %s) = %s, %t; want %q", tt.base, tt.foreign, got, ok, tt.want)
		}
	}
}

func TestRates_MatchRationalArithmetic(t *testing.T) {
	r := randtest.New(t)
	for range randtest.Count(50_000, 1_000_000) {
		a, b, c := anyMicro(r), Rate(max(anyMicro(r), 1)), Rate(max(anyMicro(r), 1))
		want, ok := halfEven(new(big.Rat).Mul(big.NewRat(int64(a), 1), big.NewRat(int64(b), RateScale)))
		if got, gotOK := Convert(a, b); got != want || gotOK != ok {
			t.Fatalf("Convert(%d, %d) = %d, %t; want %d, %t", a, b, got, gotOK, want, ok)
		}
		cross, ok := halfEven(new(big.Rat).Mul(big.NewRat(int64(b), int64(c)), big.NewRat(RateScale, 1)))
		if got, gotOK := CrossRate(b, c); gotOK != (ok && cross > 0) || gotOK && got != Rate(cross) {
			t.Fatalf("CrossRate(%d, %d) = %d, %t; want %d, %t", b, c, got, gotOK, cross, ok)
		}
		if read, err := ParseRate([]byte(b.String())); err != nil || read != b {
			t.Fatalf("ParseRate(%s) = %d, %v, want %d", b, read, err, b)
		}
	}
}

func TestParseRate_AcceptsPositiveNumbersInRange(t *testing.T) {
	tests := []struct {
		text string
		want Rate
		err  error
	}{
		{"1.0834", 1_083_400_000_000, nil},
		{"0.0000000000015", 2, nil}, // a tie rounds up to 2
		{"1e-12", 1, nil},
		{"0", 0, ErrRange},
		{"1e-13", 0, ErrRange},
		{"-1", 0, ErrRange},
		{"9223372.036854775807", math.MaxInt64, nil},
		{"9223372.036854775808", 0, ErrRange},
		{"1,0834", 0, ErrSyntax},
		{"", 0, ErrSyntax},
		{"NaN", 0, ErrSyntax},
	}
	for _, tt := range tests {
		got, err := ParseRate([]byte(tt.text))
		if got != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("ParseRate(%q) = %d, %v; want %d, %v", tt.text, got, err, tt.want, tt.err)
		}
	}
}
