package exchange

import (
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"assay/internal/money"
	"assay/internal/pricing"
)

// day is the date of the rates in these tests.
var day = time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)

// daily is a file in the format of the European Central Bank.
const daily = `<?xml version="1.0" encoding="UTF-8"?>
<gesmes:Envelope xmlns:gesmes="http://www.gesmes.org/xml/2002-08-01" xmlns="http://www.ecb.int/vocabulary/2002-08-01/eurofxref">
	<gesmes:subject>Reference rates</gesmes:subject>
	<gesmes:Sender><gesmes:name>European Central Bank</gesmes:name></gesmes:Sender>
	<Cube><Cube time='2026-11-20'>
		<Cube currency='USD' rate='1.0834'/><Cube currency='JPY' rate='163.45'/><Cube currency='IDR' rate='19345.12'/>
	</Cube></Cube>
</gesmes:Envelope>`

// of parses rates. Their date is day.
func of(t *testing.T, byCurrency map[money.Currency]string) pricing.Rates {
	t.Helper()
	out := pricing.Rates{}
	for c, text := range byCurrency {
		v, err := money.ParseRate([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		out[c] = pricing.Rate{Value: v, Date: day}
	}
	return out
}

func TestRead_ConvertsRatesOfTheEuro(t *testing.T) {
	tests := map[money.Currency]map[money.Currency]string{
		"USD": {"EUR": "1.0834", "JPY": "0.006628326705", "IDR": "0.000056003788"},
		"EUR": {"USD": "0.923020121839", "JPY": "0.006118078923", "IDR": "0.000051692623"},
	}
	for base, want := range tests {
		got, err := read(strings.NewReader(daily), base)
		if err != nil {
			t.Fatal(err)
		}
		if w := of(t, want); !maps.Equal(got, w) {
			t.Errorf("base %s: got %v, want %v", base, got, w)
		}
	}
}

func TestRead_ReturnsTheNewestDay(t *testing.T) {
	older := `<Cube time='2026-11-19'><Cube currency='USD' rate='9'/></Cube>`
	for _, text := range []string{
		strings.Replace(daily, "<Cube><Cube", "<Cube>"+older+"<Cube", 1),
		strings.Replace(daily, "</Cube></Cube>", "</Cube>"+older+"</Cube>", 1),
	} {
		got, err := read(strings.NewReader(text), "USD")
		if err != nil || got["EUR"].Value != 1_083_400_000_000 || !got["EUR"].Date.Equal(day) {
			t.Errorf("got the rate of EUR %v, error %v, want 1.0834 of %v", got["EUR"], err, day)
		}
	}
}

func TestRead_ReadsLines(t *testing.T) {
	got, err := read(strings.NewReader("\n# by hand\nEUR=1.0834@2026-11-20  # of the bank\r\n JPY=0.0066@2026-11-20"), "USD")
	if err != nil || !maps.Equal(got, of(t, map[money.Currency]string{"EUR": "1.0834", "JPY": "0.0066"})) {
		t.Errorf("got rates %v, error %v, want EUR 1.0834 and JPY 0.0066", got, err)
	}
}

func TestRead_ReportsInvalidFiles(t *testing.T) {
	var many strings.Builder
	for i := range maxRates + 1 {
		many.WriteString(string([]byte{'A' + byte(i/676), 'A' + byte(i/26%26), 'A' + byte(i%26)}) + "=1@2026-11-20\n")
	}
	tests := map[string]string{
		"":                                "is empty",
		" \n\t":                           "is empty",
		"# none\n":                        "has no rates",
		"<html><body>Moved</body></html>": "has no rates",
		daily[:len(daily)-20]:             "is not XML",
		strings.Replace(daily, "1.0834", "1,0834", 1):        "is not a rate of USD",
		strings.Replace(daily, "1.0834", "0", 1):             "is not a rate of USD",
		strings.Replace(daily, "1.0834", "-1", 1):            "is not a rate of USD",
		strings.Replace(daily, "'JPY'", "'USD'", 1):          "has two rates of USD",
		strings.Replace(daily, "'JPY'", "'EUR'", 1):          "has two rates of EUR",
		strings.Replace(daily, "'JPY'", "'yen'", 1):          "want three upper-case letters",
		strings.Replace(daily, "'2026-11-20'", "'today'", 1): "is not a date",
		strings.Replace(daily, " time='2026-11-20'", "", 1):  "without a date",
		strings.Replace(daily, "'USD'", "'AUD'", 1):          "has no rate of MARKET_PRICE_CURRENCY USD",
		"EUR=1.0834":                         "line 1: ",
		"EUR=1@2026-11-20\nEUR=1@2026-11-20": "line 2: two rates for EUR",
		"USD=1@2026-11-20":                   "which is MARKET_PRICE_CURRENCY itself",
		`{"EUR": 0.92}`:                      "is not a rate", // the date is missing
		many.String():                        "more than " + strconv.Itoa(maxRates),
		strings.Repeat(" ", maxBytes) + "EUR=1@2026-11-20": "is empty",
	}
	for text, want := range tests {
		if got, err := read(strings.NewReader(text), "USD"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: got %v, error %v, want error %q", text, got, err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(daily)
	f.Add("EUR=1.0834@2026-11-20")
	f.Fuzz(func(t *testing.T, text string) {
		rates, err := read(strings.NewReader(text), "USD")
		if err == nil && len(rates) == 0 {
			t.Error("got neither rates nor an error, want one of them")
		}
		for c, r := range rates {
			if _, ok := rates.Of(c); !ok || c == "USD" {
				t.Errorf("got the rate %s = %v, want a valid rate of another currency than USD", c, r)
			}
		}
	})
}
