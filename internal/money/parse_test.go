package money

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"assay/internal/randtest"
)

func TestParse_ReadsExactlyAndRoundsHalfToEven(t *testing.T) {
	tests := []struct {
		text string
		unit int64
		want Micro
	}{
		{"0", 1, 0},
		{"-0", 1, 0},
		{"0.0", 1, 0},
		{"0.000", 100, 0},
		{"1", 1, 1_000_000},
		{"-4", 1, -4_000_000},
		{"12.345", 1, 12_345_000},
		{"0.1", 1, 100_000},
		{"0.30000000000000004", 1, 300_000},
		{"1438.168", 1, 1_438_168_000},
		{"1234", 100, 12_340_000},
		{"1234", 1000, 1_234_000},
		{"3", 10, 300_000},
		{"7", 1_000_000, 7},
		{"1e-3", 1, 1_000},
		{"1E+3", 1, 1_000_000_000},
		{"1.5e3", 1, 1_500_000_000},
		{"10e-1", 1, 1_000_000},
		{"0e5", 1, 0},

		// Ties round to the even neighbour, and other values to the nearest one.
		{"0.0000005", 1, 0},
		{"0.0000015", 1, 2},
		{"0.0000025", 1, 2},
		{"-0.0000015", 1, -2},
		{"0.00000050000000000000000001", 1, 1},
		{"0.00000049999999999999999999", 1, 0},
		{"0.00000150000000000000000000", 1, 2},
		{"0.00000250000000000000000001", 1, 3},
		{"0.00005", 100, 0},
		{"0.00015", 100, 2},
		{"0.0005000000000000000000000000001", 1000, 1},
		{"9e-7", 1, 1},
		{"9e-8", 1, 0},
		{"0.000000" + strings.Repeat("0", 500) + "9", 1, 0},
		{"0.0000005" + strings.Repeat("0", 5000) + "1", 1, 1},

		// Exponents can have any size.
		{"1e-400", 1, 0},
		{"-1e-400", 1, 0},
		{"0e400", 1, 0},
		{"0.000e99999999999999999999", 1, 0},
		{"1e-99999999999999999999", 1, 0},
		{"1e-0000000000000000000001", 1, 100_000},
		{"1" + strings.Repeat("0", 400) + "e-400", 1, 1_000_000},
		{"0." + strings.Repeat("0", 399) + "1e400", 1, 1_000_000},

		// These are the limits of the range.
		{"9223372036854.775807", 1, math.MaxInt64},
		{"-9223372036854.775807", 1, -math.MaxInt64},
		{"9223372036854.7758074999", 1, math.MaxInt64},
		{"922337203685477.5807", 100, math.MaxInt64},
		{"9223372036854775807", 1_000_000, math.MaxInt64},
	}
	for _, tt := range tests {
		got, err := Parse([]byte(tt.text), tt.unit)
		if err != nil || got != tt.want {
			t.Errorf("Parse(%.60q, %d) = %d, %v; want %d", tt.text, tt.unit, int64(got), err, int64(tt.want))
		}
	}
}

func TestParse_RejectsAnythingButJSONNumbers(t *testing.T) {
	for _, text := range []string{
		"", " ", "-", "+", ".", "e", "e5", "-e5", "--1", "+1", "1.", ".5", "-.5", "1.e3", "1e", "1e+", "1e-", "1e1.5", "1e5 ",
		"007", "00", "-01", "01.5", "1..2", "1.2.3", " 1", "1 ", "1\n", "\x001", "1\x00",
		"NaN", "nan", "Infinity", "-Infinity", "inf", "null", "true", "0x1", "0X1p3", "0b1", "1_000", "1,000", "1,5", "1'000", "$1", "1$",
		"1.5€", `"1"`, "1/2", "१", "１", "−1", "1e５", "1d3", "1f",
	} {
		if got, err := Parse([]byte(text), 1); !errors.Is(err, ErrSyntax) {
			t.Errorf("Parse(%q) = %d, %v; want ErrSyntax", text, got, err)
		}
	}
}

func TestParse_RejectsNumbersOutOfRange(t *testing.T) {
	for _, text := range []string{
		"9223372036854.775808", "-9223372036854.775808", "9223372036854.7758075", "1e13", "1e400", "-1e400",
		"1e99999999999999999999", "0.0000001e9223372036854775807", strings.Repeat("9", 4000), "1" + strings.Repeat("0", 19),
		"18446744073709.551617", "36893488147419103233e-6",
	} {
		if got, err := Parse([]byte(text), 1); !errors.Is(err, ErrRange) {
			t.Errorf("Parse(%.60q) = %d, %v; want ErrRange", text, got, err)
		}
	}
}

func TestParse_AcceptsOnlyPowersOfTenAsUnit(t *testing.T) {
	for _, unit := range []int64{1, 10, 100, 1_000, 10_000, 100_000, 1_000_000} {
		if _, err := Parse([]byte("1"), unit); err != nil || CheckUnit(unit) != nil {
			t.Errorf("unit %d: got error %v, want nil", unit, err)
		}
	}
	for _, unit := range []int64{math.MinInt64, -100, 0, 2, 20, 64, 99, 10_000_000, math.MaxInt64} {
		if _, err := Parse([]byte("1"), unit); !errors.Is(err, ErrUnit) || !errors.Is(CheckUnit(unit), ErrUnit) {
			t.Errorf("unit %d: got error %v, want ErrUnit", unit, err)
		}
	}
}

func TestParse_MatchesRationalArithmetic(t *testing.T) {
	r := randtest.New(t)
	for range randtest.Count(50_000, 1_000_000) {
		text := anyNumber(r)
		unit := [...]int64{1, 1, 10, 100, 1000, Scale}[r.IntN(6)]
		checkParse(t, text, unit)
	}
}

// anyNumber returns a random JSON number. Many results are near a tie or a limit of the
// range.
func anyNumber(r *rand.Rand) string {
	var b strings.Builder
	if r.IntN(3) == 0 {
		b.WriteByte('-')
	}
	switch r.IntN(5) {
	case 0:
		b.WriteByte('0')
	case 1:
		fmt.Fprint(&b, 9223372036853+r.Int64N(3))
	default:
		fmt.Fprint(&b, r.Uint64()>>r.IntN(64))
	}
	switch r.IntN(4) {
	case 0:
	case 1: // a tie, or close to a tie
		fmt.Fprintf(&b, ".%0*d%s", 5+r.IntN(4), r.IntN(10), [...]string{"5", "50", "500000000000000000000000", "4999999999999999999999", "5000000000000000000000001"}[r.IntN(5)])
	default:
		b.WriteByte('.')
		for range 1 + r.IntN(30) {
			b.WriteByte(byte('0' + r.IntN(10)))
		}
	}
	if r.IntN(3) == 0 {
		fmt.Fprintf(&b, "%c%s%d", "eE"[r.IntN(2)], [...]string{"", "+", "-", "-0"}[r.IntN(4)], r.IntN(32))
	}
	return b.String()
}

func checkParse(t testing.TB, text string, unit int64) {
	t.Helper()
	want, ok := halfEven(rat(t, text, unit))
	got, err := Parse([]byte(text), unit)
	if ok && (err != nil || got != want) {
		t.Fatalf("Parse(%q, %d) = %d, %v; want %d", text, unit, int64(got), err, int64(want))
	}
	if !ok && !errors.Is(err, ErrRange) {
		t.Fatalf("Parse(%q, %d) = %d, %v; want ErrRange", text, unit, int64(got), err)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"0", "-0", "12.345", "1e-3", "0.00000050000000000000000001", "1e400", "007", "1.", ".5", "+1", "", "NaN", "0x1", "1_000",
		"1,000", "9223372036854.775807", "9223372036854.7758075",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 200 {
			return
		}
		// A number is a valid JSON document that consists only of these characters.
		number := json.Valid([]byte(text)) && strings.Trim(text, "-0123456789.eE+") == ""
		if _, err := Parse([]byte(text), 1); errors.Is(err, ErrSyntax) == number {
			t.Fatalf("Parse(%q): got error %v, want ErrSyntax: %t", text, err, !number)
		}
		// big.Rat writes out the power of ten, so large exponents would exhaust memory.
		if _, exp, found := strings.Cut(strings.ToLower(text), "e"); number && (!found || len(exp) <= 4) {
			for _, unit := range []int64{1, 100, 1000} {
				checkParse(t, text, unit)
			}
		}
	})
}

func TestParse_AllocatesNothing(t *testing.T) {
	text := []byte("1438.1680000000000000000000001e-2")
	if n := testing.AllocsPerRun(100, func() { _, _ = Parse(text, 100) }); n != 0 {
		t.Errorf("got %v allocations per call, want 0", n)
	}
}

func BenchmarkParse(b *testing.B) {
	for _, s := range []string{"3", "12.34", "1438.168000", "0.00000050000000000000000001"} {
		text := []byte(s)
		b.Run(s, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = Parse(text, 1)
			}
		})
	}
}
