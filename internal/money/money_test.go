package money

import (
	"encoding/json"
	"errors"
	"math"
	"testing"

	"assay/internal/randtest"
)

func TestMicroString_OmitsTrailingZeros(t *testing.T) {
	for m, want := range map[Micro]string{
		0: "0", 1: "0.000001", -1: "-0.000001", 10: "0.00001", 100_000: "0.1", 1_000_000: "1", -4_000_000: "-4",
		12_345_000: "12.345", 1_000_001: "1.000001", -1_500_000: "-1.5",
		math.MaxInt64: "9223372036854.775807", math.MinInt64: "-9223372036854.775808",
	} {
		if got := m.String(); got != want {
			t.Errorf("Micro(%d).String() = %q, want %q", int64(m), got, want)
		}
	}
}

func TestMicroString_ParsesToTheSameAmount(t *testing.T) {
	r := randtest.New(t)
	for range randtest.Count(20_000, 1_000_000) {
		m := anyMicro(r)
		if back, err := Parse(m.AppendText(nil), 1); err != nil || back != m {
			t.Fatalf("Parse(%q) = %d, %v, want %d", m, int64(back), err, int64(m))
		}
	}
}

func TestJSON_IsANumberInBothDirections(t *testing.T) {
	var v struct{ A, B Micro }
	if err := json.Unmarshal([]byte(`{"A":12.345,"B":-1e-6}`), &v); err != nil || v.A != 12_345_000 || v.B != -1 {
		t.Fatalf("Unmarshal: got %+v, %v, want A 12.345 and B -0.000001", v, err)
	}
	if text, err := json.Marshal(v); err != nil || string(text) != `{"A":12.345,"B":-0.000001}` {
		t.Errorf(`Marshal: got %s, %v, want {"A":12.345,"B":-0.000001}`, text, err)
	}
}

func TestUnmarshalJSON_RejectsAnythingButNumbers(t *testing.T) {
	for text, want := range map[string]error{
		`"1"`: ErrSyntax, `null`: ErrSyntax, `true`: ErrSyntax, `[1]`: ErrSyntax, `007`: ErrSyntax, `1e400`: ErrRange,
	} {
		m := Micro(7)
		if err := m.UnmarshalJSON([]byte(text)); !errors.Is(err, want) || m != 7 {
			t.Errorf("UnmarshalJSON(%s): got error %v and amount %d, want error %v and amount 7", text, err, int64(m), want)
		}
	}
}

func TestParseCurrency_RequiresThreeUpperCaseLetters(t *testing.T) {
	for _, s := range []string{"USD", "EUR", "CNY"} {
		if c, err := ParseCurrency(s); err != nil || string(c) != s {
			t.Errorf("ParseCurrency(%q) = %q, %v, want %q", s, c, err, s)
		}
	}
	for _, s := range []string{"", "US", "USDT", "usd", "U$D", "US ", "ÄB", "\x00\x00\x00"} {
		if c, err := ParseCurrency(s); err == nil {
			t.Errorf("ParseCurrency(%q) = %q, want an error", s, c)
		}
	}
}

func TestCirculates_AcceptsOnlyPaymentCurrencies(t *testing.T) {
	for currency, want := range map[Currency]bool{
		"USD": true, "EUR": true, "AED": true, "ZWG": true, "JPY": true, "CNY": true,
		"XXX": false, "XTS": false, "XAU": false, "XDR": false, "ZZZ": false, "DEM": false, "": false, "D A": false, " US": false,
	} {
		if got := currency.Circulates(); got != want {
			t.Errorf("Currency(%q).Circulates() = %t, want %t", currency, got, want)
		}
	}
}

func TestMinor_WritesAllDecimalPlacesOfTheCurrency(t *testing.T) {
	for _, c := range []struct {
		currency Currency
		amount   int64
		want     string
	}{
		{"USD", 0, "0.00"},
		{"USD", 5, "0.05"},
		{"EUR", -1234, "-12.34"},
		{"JPY", 1234, "1234"},
		{"KWD", 1, "0.001"},
		{"USD", math.MaxInt64, "92233720368547758.07"},
		{"KRW", math.MinInt64, "-9223372036854775808"},
	} {
		if got := c.currency.Minor(c.amount); got != c.want {
			t.Errorf("Currency(%q).Minor(%d) = %q, want %q", c.currency, c.amount, got, c.want)
		}
	}
}

func TestDecimal_IsAJSONString(t *testing.T) {
	for amount, want := range map[Micro]string{0: `"0"`, 27_275_000: `"27.275"`, 1: `"0.000001"`, -4_500_000: `"-4.5"`, math.MaxInt64: `"9223372036854.775807"`} {
		got, err := json.Marshal(Decimal(amount))
		var back Decimal
		if err != nil || string(got) != want || json.Unmarshal(got, &back) != nil || back != Decimal(amount) {
			t.Errorf("Decimal(%d): got JSON %s, %v, decoded as %d, want JSON %s", amount, got, err, back, want)
		}
	}
	for _, text := range []string{`1`, `"`, `""`, `null`, `"1.5`, `"x"`, `" 1"`} {
		d := Decimal(7)
		if err := d.UnmarshalJSON([]byte(text)); err == nil || d != 7 {
			t.Errorf("UnmarshalJSON(%s): got %d, %v, want 7 and an error", text, d, err)
		}
	}
}
