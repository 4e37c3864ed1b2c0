package money

import (
	"encoding/json"
	"math"
	"math/big"
	"strings"
	"testing"

	"assay/internal/randtest"
)

func TestSum_IsExactBeyondTheRangeOfMicro(t *testing.T) {
	for _, tt := range []struct {
		amount Micro
		n      int64
		want   string
	}{
		{0, 5, "0"},
		{1, 1, "0.000001"},
		{math.MaxInt64, 1, "9223372036854.775807"},
		{math.MaxInt64, 2, "18446744073709.551614"},
		{10_000_000 * Scale, 1 << 31, "21474836480000000"},
		{1_000_000 * Scale, math.MaxInt64, "9223372036854775807000000"},
	} {
		got := Sum{}.Add(tt.amount, tt.n)
		text, err := json.Marshal(got)
		if err != nil || got.String() != tt.want || string(text) != tt.want {
			t.Errorf("%d times %s: got %s and JSON %s, %v, want %s", tt.n, tt.amount, got, text, err, tt.want)
		}
		var back Sum
		if err := json.Unmarshal(text, &back); err != nil || back != got {
			t.Errorf("Unmarshal(%s): got %s, %v, want %s", text, back, err, got)
		}
	}
}

func TestSum_RejectsInvalidText(t *testing.T) {
	for _, text := range []string{`"1"`, "null", "-1", "1e3", "0.0000001", "1000000000000000000000000000000000", "1" + strings.Repeat("0", 40)} {
		var s Sum
		if err := json.Unmarshal([]byte(text), &s); err == nil {
			t.Errorf("Unmarshal(%s): got %s, want an error", text, s)
		}
	}
}

func TestSum_MatchesRationalArithmetic(t *testing.T) {
	r := randtest.New(t)
	for range randtest.Count(1_000, 100_000) {
		var sum Sum
		want := new(big.Int)
		for range 1 + r.IntN(5) {
			amount, n := Micro(r.Uint64()>>(1+r.IntN(63))), int64(r.Uint64()>>(2+r.IntN(62)))
			sum = sum.Add(amount, n)
			want.Add(want, new(big.Int).Mul(big.NewInt(int64(amount)), big.NewInt(n)))
		}
		got, ok := new(big.Rat).SetString(sum.String())
		if !ok || got.Cmp(new(big.Rat).SetFrac(want, big.NewInt(Scale))) != 0 {
			t.Fatalf("got the sum %s, want %s millionths", sum, want)
		}
		divisor := int64(r.Uint64()>>(1+r.IntN(63))) + 1
		if divisor <= 0 {
			continue
		}
		quotient, ok := halfEven(new(big.Rat).SetFrac(want, big.NewInt(divisor)))
		if got, gotOK := sum.Div(divisor); got != quotient || gotOK != ok {
			t.Fatalf("%s divided by %d: got %d, %t; want %d, %t", sum, divisor, got, gotOK, quotient, ok)
		}
	}
	for range randtest.Count(1_000, 100_000) {
		sum := Sum{}.Add(Micro(r.Uint64()>>(1+r.IntN(63))), int64(r.Uint64()>>(2+r.IntN(62))))
		rate := Rate(r.Uint64()>>(1+r.IntN(62))) + 1
		if rate <= 0 {
			continue
		}
		exact := new(big.Int).Mul(sum.big(), big.NewInt(int64(rate)))
		want, rest := exact.QuoRem(exact, big.NewInt(RateScale), new(big.Int))
		if twice := rest.Int64() * 2; twice > RateScale || twice == RateScale && want.Bit(0) == 1 {
			want.Add(want, big.NewInt(1))
		}
		if got := sum.Convert(rate).big(); want.BitLen() <= 128 && got.Cmp(want) != 0 {
			t.Fatalf("%s converted at %s: got %s, want %s", sum, rate, got, want)
		}
	}
	if got, most := (Sum{1 << 63, 0}).Convert(3*RateScale), (Sum{math.MaxUint64, math.MaxUint64}); got != most {
		t.Errorf("a sum converted beyond the range: got %s, want %s", got, most)
	}
	if got, ok := (Sum{}).Add(Scale, 1).Div(0); ok {
		t.Errorf("sum divided by zero: got %d, want no result", got)
	}
}
