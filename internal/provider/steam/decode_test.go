package steam

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"assay/internal/money"
	"assay/internal/provider"
	"assay/internal/provider/feed"
	"assay/internal/provider/providertest"
	"assay/internal/provider/steam/steamtest"
)

const cents = money.Micro(10_000)

func TestPrice_ReadsFormattedAmounts(t *testing.T) {
	for _, c := range []struct {
		text      string
		requested money.Currency
		want      money.Micro // in cents
		in        money.Currency
	}{
		{"$33.10", "USD", 3310, "USD"},
		{"$1,515.59", "USD", 151559, "USD"},
		{"$1,234,567.89", "USD", 123456789, "USD"},
		{"$0.03 USD", "USD", 3, "USD"},
		{"$5", "USD", 500, "USD"},
		{"$1,234", "USD", 123400, "USD"},
		{"$0.5", "USD", 50, "USD"},
		{"1.234,56€", "USD", 123456, "EUR"},
		{"1.234€", "USD", 123400, "EUR"},
		{"12,--€", "USD", 1200, "EUR"},
		{"1.234,--€", "USD", 123400, "EUR"},
		{"261,35&#8364; ", "USD", 26135, "EUR"},
		{"CDN$ 12.50", "USD", 1250, "CAD"},
		{"A$ 1,012.50", "USD", 101250, "AUD"},
		{"R$ 7,10", "USD", 710, "BRL"},
		{"₹ 1,234.50", "USD", 123450, "INR"},
		{"₹ 1,23,456.50", "USD", 12345650, "INR"},
		{"8 120,22₸", "USD", 812022, "KZT"},
		{"8\u00a0120,22₸", "USD", 812022, "KZT"},
		{"1\u202f234,5 pуб.", "USD", 123450, "RUB"},
		{"CHF 1’234.50", "USD", 123450, "CHF"},
		{"£0.75", "USD", 75, "GBP"},
		{"12,34zł", "USD", 1234, "PLN"},
		{"¥ 1,110.00", "CNY", 111000, "CNY"},
		{"¥ 1,110", "JPY", 111000, "JPY"},
		{"2.39元", "USD", 239, "CNY"},
		{"$12,50", "USD", 1250, "USD"},
		{"$0.00", "USD", 0, "USD"},
	} {
		got, in, reason := price(feed.Cell{Kind: feed.Text, Text: []byte(c.text)}, c.requested)
		if got != c.want*cents || in != c.in || reason != "" {
			t.Errorf("%q: got %v %s, reason %q, want %v %s", c.text, got, in, reason, c.want*cents, c.in)
		}
	}
}

func TestPrice_RejectsInvalidAndAmbiguousAmounts(t *testing.T) {
	for _, text := range []string{
		"5.00", "1,234.56", "¥ 4.66", "5.00 kr", "$$5.00", "-$5.00", "$-5.00", "5,00X", "$", "--", "free", "$1.234", "1,234€", "$1,23,456.00", "$1,234,56",
		"$12,34,567", "$1.2.3", "$1,,234.00", "$,500", "$.50", "$5.", "$1 234,567.00", "$0,123.00", "$007", "$1e5", "$5.e0", "$1,2e3", "$5.00-$6.00", "$5.00€", "&#36;&#36;5",
		"1,23,--€", "$٥", "$５", "€ 1.234.5", "$1,2345", "$12345,678", "$ 1''000", "$9999999999999999.00",
	} {
		if got, in, reason := price(feed.Cell{Kind: feed.Text, Text: []byte(text)}, dollars); reason == "" {
			t.Errorf("%q: got %v %s, want a reject", text, got, in)
		}
	}
	for _, c := range []feed.Cell{{Kind: feed.Number, Text: []byte("5")}, {Kind: feed.Other, Text: []byte("true")}} {
		if got, _, reason := price(c, dollars); reason == "" {
			t.Errorf("%q: got price %v, want a reject", c.Text, got)
		}
	}
}

func TestPrice_ReadsTextsOfTheFakeServer(t *testing.T) {
	for _, c := range formats {
		for _, hundredths := range []int64{1, 9, 10, 99, 100, 12345, 99999, 100000, 123456789, 100000000000} {
			text := steamtest.Text(c.id, hundredths)
			got, in, reason := price(feed.Cell{Kind: feed.Text, Text: []byte(text)}, c.code)
			if validCurrency := in == c.code || in == dollars; got != money.Micro(hundredths)*cents || !validCurrency || reason != "" {
				t.Errorf("%q: got %v %s, reason %q, want %v %s", text, got, in, reason, money.Micro(hundredths)*cents, c.code)
			}
		}
	}
}

func TestCount_ReadsGroupedNumbers(t *testing.T) {
	for text, want := range map[string]int64{`"1,204"`: 1204, `"3.990"`: 3990, `"15 262"`: 15262, `"7"`: 7, `15262`: 15262, `0`: 0, `""`: -1, `null`: -1} {
		if got, reason := count(cellOf(text)); got != want || reason != "" {
			t.Errorf("%s: got count %d, reject reason %q; want %d and no reason", text, got, reason, want)
		}
	}
	for _, text := range []string{`"1,20"`, `"1.5"`, `"many"`, `"-5"`, `"1,,200"`, `true`, `1.5`} {
		if got, reason := count(cellOf(text)); reason == "" {
			t.Errorf("%s: got count %d, want a reject", text, got)
		}
	}
}

func cellOf(text string) feed.Cell {
	switch {
	case text == "null":
		return feed.Cell{Kind: feed.Null}
	case text == "true":
		return feed.Cell{Kind: feed.Other, Text: []byte(text)}
	case text[0] == '"':
		return feed.Cell{Kind: feed.Text, Text: []byte(strings.Trim(text, `"`))}
	}
	return feed.Cell{Kind: feed.Number, Text: []byte(text)}
}

func TestOverview_RejectsPricesInTwoCurrencies(t *testing.T) {
	var sink providertest.Sink
	err := new(Provider).readOverview(t.Context(), "A", strings.NewReader(`{"success":true,"lowest_price":"$1.00","median_price":"1,00€"}`), &sink)
	if provider.KindOf(err) != provider.KindProtocol || !strings.Contains(err.Error(), rejectMixed) {
		t.Errorf("got error %v, quotes %+v, want a reject for %q", err, sink.Quotes, rejectMixed)
	}
}

func TestOverview_CountsSalesWithoutAPrice(t *testing.T) {
	var sink providertest.Sink
	err := new(Provider).readOverview(t.Context(), "A", strings.NewReader(`{"success":true,"volume":"3,990"}`), &sink)
	want := []provider.Quote{{Market: Name, Name: "A", Currency: dollars, Listings: provider.Unknown, Sales: 3990, SalesWindow: day}}
	if err != nil || !slices.Equal(sink.Quotes, want) {
		t.Errorf("got error %v, quotes %+v, want %+v", err, sink.Quotes, want)
	}
}

// The file has bodies of real responses with the requested currency and the expected
// amount.
func TestReal_DecodesRecordedFormats(t *testing.T) {
	var forms []struct {
		Body  *map[string]jsontext.Value
		Cents *int64
		Cur   money.Currency
	}
	f := open(t, "fixtures", "steam_priceoverview_forms.json")
	if err := json.NewDecoder(f).Decode(&forms); err != nil {
		t.Fatal(err)
	}
	if len(forms) != 12 {
		t.Errorf("got %d responses, want 12", len(forms))
	}
	for _, form := range forms {
		if form.Body == nil {
			continue // the provider suite covers the body null
		}
		var got *int64
		for _, member := range []string{"lowest_price", "median_price"} {
			text, there := (*form.Body)[member]
			if !there || got != nil {
				continue
			}
			unquoted, err := jsontext.AppendUnquote(nil, text)
			amount, in, reason := price(feed.Cell{Kind: feed.Text, Text: unquoted}, form.Cur)
			if err != nil || reason != "" || in != form.Cur {
				t.Errorf("%s: got currency %s, reason %q, want %s", text, in, reason, form.Cur)
			}
			n := int64(amount / cents)
			got = &n
		}
		if (got == nil) != (form.Cents == nil) || got != nil && *got != *form.Cents {
			t.Errorf("%v: got cents %v, want %v", *form.Body, got, form.Cents)
		}
		if volume, there := (*form.Body)["volume"]; there {
			if n, reason := count(cellOf(string(volume))); n < 1 || reason != "" {
				t.Errorf("volume %s: got %d, reason %q, want a positive number", volume, n, reason)
			}
		}
	}
}

// Every recorded response must decode without an error. The responses for invented names
// must not give quotes.
func TestReal_DecodesRecordedResponses(t *testing.T) {
	recorded, err := gzip.NewReader(open(t, "steam_priceoverview_raw_2025-10.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for lines := bufio.NewScanner(recorded); lines.Scan(); {
		var line struct {
			Name     string `json:"market_hash_name"`
			Real     bool   `json:"name_is_real"`
			Response jsontext.Value
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		var sink providertest.Sink
		if err := new(Provider).readOverview(t.Context(), line.Name, strings.NewReader(string(line.Response)), &sink); err != nil {
			t.Errorf("%s: got error %v, want none", line.Response, err)
		}
		counts["responses"]++
		if len(sink.Quotes) == 0 {
			counts["without a quote"]++
			continue
		}
		q := sink.Quotes[0]
		if !line.Real || q.Name != line.Name {
			t.Errorf("name %q (real: %v): got quote %+v, want one only for a real name", line.Name, line.Real, q)
		}
		counts[string(q.Currency)]++
		if (q.Sale > 0) != (q.Sales > 0) || q.Ask <= 0 {
			t.Errorf("%s: got quote %+v, want an ask, and a sale price only with sales", line.Response, q)
		}
	}
	for what, want := range map[string]int{"responses": 567, "without a quote": 193 + 24, "EUR": 6, "USD": 344} {
		if counts[what] != want {
			t.Errorf("number of %s: got %d, want %d", what, counts[what], want)
		}
	}
}

func open(t *testing.T, path ...string) *os.File {
	t.Helper()
	path = append([]string{"..", "..", "..", "..", "shared", "data"}, path...)
	f, err := os.Open(filepath.Join(path...))
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("recorded responses are not available: " + filepath.Base(filepath.Join(path...)))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

const (
	anOverview = `{"success":true,"lowest_price":"$33.10","volume":"1,204","median_price":"$32.68"}`
	aBook      = `{"success":true,"data":{"amtMinSellOrder":3310,"amtMaxBuyOrder":3205,"eCurrency":1,"cSellOrders":1204,"cBuyOrders":5210,` +
		`"rgCompactSellOrders":[3310,4,3312,11],"rgCompactBuyOrders":[3205,2,3200,90]}}`
	aWrappedBook = `{"data":{"success":true,"data":{"amtMinSellOrder":null,"amtMaxBuyOrder":401000,"eCurrency":3,"cSellOrders":0,"cBuyOrders":7,` +
		`"rgCompactSellOrders":[],"rgCompactBuyOrders":[401000,1,390000,2]}}}`
)

func TestProvider_ReadsSampleResponses(t *testing.T) {
	q := provider.Quote{Market: Name, Name: "A", Currency: "USD", Listings: provider.Unknown, Sales: provider.Unknown}
	sold, rare, book, wrapped := q, q, q, q
	sold.Ask, sold.Sale, sold.Sales, sold.SalesWindow = 3310*cents, 3268*cents, 1204, day
	rare.Ask = 512000 * cents
	book.Ask, book.Bid, book.Listings = 3310*cents, 3205*cents, 1204
	wrapped.Bid, wrapped.Listings, wrapped.Currency = 401000*cents, 0, "EUR"
	s := new(Provider)
	for text, c := range map[string]struct {
		read func(context.Context, string, io.Reader, provider.Sink) error
		want []provider.Quote
	}{
		anOverview: {s.readOverview, []provider.Quote{sold}},
		`{"success":true,"lowest_price":"$5,120.00"}`: {s.readOverview, []provider.Quote{rare}},
		`{"success":false}`:                           {s.readOverview, nil},
		aBook:                                         {s.readBook, []provider.Quote{book}},
		aWrappedBook:                                  {s.readBook, []provider.Quote{wrapped}},
		`{"data":{"success":false}}`:                  {s.readBook, nil},
	} {
		var sink providertest.Sink
		if err := c.read(t.Context(), "A", strings.NewReader(text), &sink); err != nil || !slices.Equal(sink.Quotes, c.want) {
			t.Errorf("%s: got error %v, quotes %+v, want %+v", text, err, sink.Quotes, c.want)
		}
	}
}

func FuzzOverview(f *testing.F) {
	for _, text := range []string{anOverview, `{"success":true,"lowest_price":"1.234,--&#8364; ","volume":15262}`, `{"success":false}`} {
		f.Add([]byte(text))
	}
	providertest.Fuzz(f, func(body io.Reader, sink provider.Sink) error {
		return new(Provider).readOverview(context.Background(), "A", body, sink)
	})
}

func FuzzBook(f *testing.F) {
	for _, text := range []string{aBook, aWrappedBook, `{"data":{"success":false}}`} {
		f.Add([]byte(text))
	}
	providertest.Fuzz(f, func(body io.Reader, sink provider.Sink) error {
		return new(Provider).readBook(context.Background(), "A", body, sink)
	})
}

// FuzzPrice checks that price rejects a text or returns an amount with the text's digits.
func FuzzPrice(f *testing.F) {
	for _, text := range []string{"$1,234.56", "1.234,--€", "₹ 1,23,456.50", "8\u00a0120,22₸", "¥ 1,110", "&#8364;5"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		amount, in, reason := price(feed.Cell{Kind: feed.Text, Text: []byte(text)}, dollars)
		if reason != "" || amount == 0 {
			return
		}
		digits := strings.Map(func(r rune) rune {
			if r < '0' || r > '9' {
				return -1
			}
			return r
		}, normalize([]byte(text)))
		got := strings.TrimLeft(strings.Replace(amount.String(), ".", "", 1), "0")
		if in == "" || amount < 0 || amount%cents != 0 || strings.TrimRight(got, "0") != strings.Trim(digits, "0") {
			t.Errorf("%q: got %v %s, want an amount with the same digits", text, amount, in)
		}
	})
}

// BenchmarkOverview and BenchmarkBook compare reading a response with a scan of its JSON
// tokens. For a short response, allocating the buffers takes most of the time.
func BenchmarkOverview(b *testing.B) {
	bench(b, anOverview, new(Provider).readOverview)
}

func BenchmarkBook(b *testing.B) {
	const orders = `"rgCompactSellOrders":[`
	bench(b, strings.Replace(aBook, orders, orders+strings.Repeat("3310,4,", 50_000), 1), new(Provider).readBook)
}

func bench(b *testing.B, body string, read func(context.Context, string, io.Reader, provider.Sink) error) {
	b.Run("read", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		for b.Loop() {
			if err := read(b.Context(), "A", strings.NewReader(body), providertest.Discard{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("tokens", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			for dec, err := jsontext.NewDecoder(strings.NewReader(body)), error(nil); err != io.EOF; {
				if _, err = dec.ReadToken(); err != nil && err != io.EOF {
					b.Fatal(err)
				}
			}
		}
	})
}
