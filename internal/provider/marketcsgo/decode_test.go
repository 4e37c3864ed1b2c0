package marketcsgo

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay/internal/provider"
	"assay/internal/provider/providertest"
)

// Samples in the documented format.
const (
	samplePrices = `{"success":true,"time":1763690400,"currency":"USD","items":[
  {"market_hash_name":"AK-47 | Redline (Field-Tested)","volume":"512","price":"26.914"},
  {"market_hash_name":"Sticker | Example (Holo)","volume":"3","price":"0.004"}
]}`
	sampleInstances = `{"success":true,"time":1763690400,"currency":"USD","items":{
  "3000000001_100000001":{"price":"26.914","buy_order":"25.100","avg_price":"27.331","popularity_7d":"141","market_hash_name":"AK-47 | Redline (Field-Tested)"},
  "4000000002_0":{"price":"0.004","buy_order":"0","avg_price":null,"popularity_7d":null,"market_hash_name":"Sticker | Example (Holo)"}
}}`
)

// decode reads both files.
func decode(prices, instances string, sink provider.Sink) (provider.Result, error) {
	s := New(Config{})
	all, err := s.readInstances(context.Background(), strings.NewReader(instances))
	if err != nil {
		return provider.Result{}, err
	}
	return s.readPrices(context.Background(), strings.NewReader(prices), all, sink)
}

func TestRead_DecodesSamples(t *testing.T) {
	var sink providertest.Sink
	result, err := decode(samplePrices, sampleInstances, &sink)
	if err != nil || !result.ProviderTime.Equal(time.Unix(1763690400, 0)) {
		t.Fatalf("got result %+v, error %v, want the time of the list", result, err)
	}
	want := []provider.Quote{
		{Market: Name, Name: "AK-47 | Redline (Field-Tested)", Currency: "USD", Ask: 26_914_000, Bid: 25_100_000, Listings: 512, Sales: 141, SalesWindow: week},
		{Market: Name, Name: "Sticker | Example (Holo)", Currency: "USD", Ask: 4_000, Listings: 3, Sales: provider.Unknown},
	}
	if diff := cmp.Diff(want, sink.Sorted()); diff != "" {
		t.Errorf("quotes (-want +got):\n%s", diff)
	}
}

func TestRead_UsesTimeOfOlderFile(t *testing.T) {
	const older, newer = "1763690400", "1763700000"
	for name, c := range map[string]struct{ prices, instances, want string }{
		"older prices":           {older, newer, older},
		"older instances":        {newer, older, older},
		"prices without time":    {"null", newer, newer},
		"instances without time": {newer, `""`, newer},
		"no times":               {"null", "0", ""},
		"time as string":         {`"` + older + `"`, newer, older},
		"invalid time":           {`"soon"`, newer, "error"},
	} {
		var sink providertest.Sink
		result, err := decode(strings.Replace(samplePrices, older, c.prices, 1), strings.Replace(sampleInstances, older, c.instances, 1), &sink)
		got := ""
		if !result.ProviderTime.IsZero() {
			got = fmt.Sprint(result.ProviderTime.Unix())
		}
		if err != nil {
			got = "error"
		}
		if got != c.want {
			t.Errorf("%s: got provider time %q, want %q (error %v)", name, got, c.want, err)
		}
	}
}

func TestRead_RejectsUnexpectedFiles(t *testing.T) {
	for name, c := range map[string]struct{ old, replaced, detail string }{
		"other currency":   {`"USD"`, `"EUR"`, "the prices are in EUR"},
		"duplicate member": {`"success":true`, `"success":true,"success":true`, "member success given twice"},
		"no items":         {`"items"`, `"rows"`, "response without items"},
		"invalid prices":   {`"price":"`, `"price":"about `, "most often: amount is not a number (2 times)"},
	} {
		var sink providertest.Sink
		if _, err := decode(strings.ReplaceAll(samplePrices, c.old, c.replaced), sampleInstances, &sink); provider.KindOf(err) != provider.KindProtocol || !strings.Contains(err.Error(), c.detail) {
			t.Errorf("prices, %s: got error %v, want %q", name, err, c.detail)
		}
		if _, err := decode(samplePrices, strings.ReplaceAll(sampleInstances, c.old, c.replaced), &sink); provider.KindOf(err) != provider.KindProtocol || !strings.Contains(err.Error(), c.detail) {
			t.Errorf("instances, %s: got error %v, want %q", name, err, c.detail)
		}
	}
}

func TestInstances_LimitsNumberOfNames(t *testing.T) {
	var b strings.Builder
	for i := range maxNames + 1 {
		fmt.Fprintf(&b, `%.*s{"market_hash_name":"%d"}`, min(i, 1), ",", i)
	}
	_, err := New(Config{}).readInstances(t.Context(), strings.NewReader(`{"items":[`+b.String()+`]}`))
	if provider.KindOf(err) != provider.KindTooLarge {
		t.Errorf("%d names: got error %v, want kind %s", maxNames+1, err, provider.KindTooLarge)
	}
}

func FuzzPrices(f *testing.F) {
	f.Add([]byte(samplePrices))
	f.Add([]byte(`{"items":{"a":{"market_hash_name":"★ A","price":0.0004,"volume":-1},"b":{}},"success":false,"error":"rate limit"}`))
	s := New(Config{})
	providertest.Fuzz(f, func(body io.Reader, sink provider.Sink) error {
		known := trades{names: map[string]*itemTrades{"B": {ask: 5, sales: 1}}}
		_, err := s.readPrices(context.Background(), body, known, sink)
		return err
	})
}

func FuzzInstances(f *testing.F) {
	f.Add([]byte(sampleInstances))
	f.Add([]byte(`{"success":true,"items":[{"market_hash_name":"A","price":1,"popularity_7d":1e9},{"market_hash_name":"A","popularity_7d":99999999999}]}`))
	s := New(Config{})
	providertest.Fuzz(f, func(body io.Reader, sink provider.Sink) error {
		all, err := s.readInstances(context.Background(), body)
		for name, t := range all.names {
			if err := sink.Quote(s.quote(name, t.ask, provider.Unknown, t)); err != nil {
				return err
			}
		}
		return err
	})
}

// responses returns endless responses in the site's format: prices, and instances of 39,000
// names. Long picture URLs make 39,000 prices large enough to measure.
func responses() map[string]providertest.Response {
	s := New(Config{})
	long := strings.Repeat("picture/", 190)
	const name = `"market_hash_name":"★ StatTrak™ Karambit | Case %d (Field-Tested)"`
	return map[string]providertest.Response{
		"prices": {
			Head: `{"success":true,"time":1763690400,"currency":"USD","items":[`, Tail: "]}",
			Row: func(i int) string {
				return fmt.Sprintf(`%.*s{`+name+`,"volume":"%d","price":"%d.%03d","img":"%s"}`, min(i, 1), ",", i, i%50, i%900+1, i%1000, long)
			},
			Read: func(body io.Reader, sink provider.Sink) error {
				_, err := s.readPrices(context.Background(), body, trades{}, sink)
				return err
			},
		},
		"instances": {
			Head: `{"success":true,"time":1763690400,"currency":"USD","items":{`, Tail: "}}",
			Row: func(i int) string {
				return fmt.Sprintf(`%.*s"%d_%d":{"price":"%d.%03d","buy_order":"%d.%03d","avg_price":"27.331","popularity_7d":"%d",`+name+`,"ru_name":"★ StatTrak™ Керамбит"}`,
					min(i, 1), ",", i, i%7, i%900+1, i%1000, i%900, i%1000, i%50, i%39_000)
			},
			Read: func(body io.Reader, _ provider.Sink) error {
				_, err := s.readInstances(context.Background(), body)
				return err
			},
		},
	}
}

func TestRead_Cost(t *testing.T) {
	for name, a := range responses() {
		t.Run(name, func(t *testing.T) { providertest.CheckCost(t, a) })
	}
}

func BenchmarkRead(b *testing.B) {
	for name, a := range responses() {
		b.Run(name, func(b *testing.B) { providertest.Bench(b, a) })
	}
}
