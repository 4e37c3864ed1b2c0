package skinport

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
	sampleItems = `[
  {"market_hash_name":"AK-47 | Redline (Field-Tested)","version":null,"currency":"USD","suggested_price":31.4,
   "item_page":"https://skinport.com/item/ak-47-redline-field-tested","market_page":"https://skinport.com/market/730?cat=Rifle&item=Redline",
   "min_price":27.85,"max_price":410.0,"mean_price":36.12,"median_price":33.9,"quantity":318,"created_at":1535988253,"updated_at":1763690112},
  {"market_hash_name":"★ Karambit | Doppler (Factory New)","version":"Ruby","currency":"USD","suggested_price":6120.55,
   "item_page":"https://skinport.com/item/karambit-doppler-ruby-factory-new","market_page":"https://skinport.com/market/730?cat=Knife&item=Doppler",
   "min_price":null,"max_price":null,"mean_price":null,"median_price":null,"quantity":0,"created_at":1535988302,"updated_at":1763690101}
]`
	sampleSales = `[
  {"market_hash_name":"AK-47 | Redline (Field-Tested)","version":null,"currency":"USD","item_page":"https://skinport.com/item/ak-47-redline-field-tested","market_page":"https://skinport.com/market/730?cat=Rifle&item=Redline",
   "last_24_hours":{"min":27.5,"max":44.0,"avg":30.21,"median":29.4,"volume":17},
   "last_7_days":{"min":26.9,"max":60.25,"avg":30.88,"median":29.75,"volume":133},
   "last_30_days":{"min":25.0,"max":88.0,"avg":31.07,"median":30.0,"volume":604},
   "last_90_days":{"min":24.1,"max":120.0,"avg":31.9,"median":30.3,"volume":1866}},
  {"market_hash_name":"★ Karambit | Doppler (Factory New)","version":"Ruby","currency":"USD","item_page":"https://skinport.com/item/karambit-doppler-ruby-factory-new","market_page":"https://skinport.com/market/730?cat=Knife&item=Doppler",
   "last_24_hours":{"min":null,"max":null,"avg":null,"median":null,"volume":0},
   "last_7_days":{"min":null,"max":null,"avg":null,"median":null,"volume":0},
   "last_30_days":{"min":null,"max":null,"avg":null,"median":null,"volume":0},
   "last_90_days":{"min":5900.0,"max":6010.0,"avg":5955.0,"median":5955.0,"volume":2}}
]`
)

func TestRead_DecodesSamples(t *testing.T) {
	s := New(Config{SalesWindow: 30 * day})
	history, err := s.readSales(t.Context(), strings.NewReader(sampleSales))
	if err != nil {
		t.Fatal(err)
	}
	var sink providertest.Sink
	result, err := s.readItems(t.Context(), strings.NewReader(sampleItems), history, &sink)
	if err != nil {
		t.Fatal(err)
	}
	newest := time.Unix(1763690112, 0).UTC()
	want := []provider.Quote{
		{
			Market: Name, Name: "AK-47 | Redline (Field-Tested)", Currency: "USD", Ask: 27_850_000, Sale: 29_750_000, Listings: 318,
			Sales: 604, SalesWindow: 30 * day, MarketTime: newest,
		},
		{
			Market: Name, Name: "★ Karambit | Doppler (Factory New)", Phase: "Ruby", Currency: "USD", Sale: 5_955_000_000, Listings: 0,
			Sales: 0, SalesWindow: 30 * day, MarketTime: time.Unix(1763690101, 0).UTC(),
		},
	}
	if diff := cmp.Diff(want, sink.Sorted()); diff != "" || !result.ProviderTime.Equal(newest) {
		t.Errorf("got time %v, quotes (-want +got):\n%s", result.ProviderTime, diff)
	}
}

func FuzzItems(f *testing.F) {
	f.Add([]byte(`[{"market_hash_name":"A","version":null,"currency":"USD","min_price":1.5,"quantity":3,"updated_at":1763690112}]`))
	f.Add([]byte(`[{"market_hash_name":"★ B","version":"Ruby","currency":"EUR","min_price":null,"quantity":0}]`))
	s := New(Config{SalesWindow: 30 * day})
	providertest.Fuzz(f, func(body io.Reader, sink provider.Sink) error {
		_, err := s.readItems(context.Background(), body, sales{{name: "A"}: {median: 5, count: 1, currency: "USD"}}, sink)
		return err
	})
}

func FuzzSales(f *testing.F) {
	f.Add([]byte(`[{"market_hash_name":"A","version":null,"currency":"USD","last_7_days":{"median":1.5,"volume":3},"last_30_days":{"median":null,"volume":0}}]`))
	s := New(Config{SalesWindow: 30 * day})
	providertest.Fuzz(f, func(body io.Reader, sink provider.Sink) error {
		all, err := s.readSales(context.Background(), body)
		for key, sale := range all {
			q := provider.Quote{Market: Name, Name: key.name, Phase: key.phase, Currency: sale.currency, Sales: provider.Unknown}
			s.addSales(&q, sale)
			if err := sink.Quote(&q); err != nil {
				return err
			}
		}
		return err
	})
}

func TestItems_InvalidOfferHasNoQuote(t *testing.T) {
	const good = `{"market_hash_name":"A","currency":"USD","min_price":2,"quantity":1}`
	for name, row := range map[string]string{
		"price":       `{"market_hash_name":"B","currency":"USD","min_price":"1,5","quantity":3}`,
		"quantity":    `{"market_hash_name":"B","currency":"USD","min_price":1.5,"quantity":"many"}`,
		"time":        `{"market_hash_name":"B","currency":"USD","min_price":1.5,"quantity":3,"updated_at":"never"}`,
		"currency":    `{"market_hash_name":"B","currency":7,"min_price":1.5,"quantity":3}`,
		"no price":    `{"market_hash_name":"B","currency":"USD","quantity":3}`,
		"null price":  `{"market_hash_name":"B","currency":"USD","min_price":null,"quantity":3}`,
		"price twice": `{"market_hash_name":"B","currency":"USD","min_price":1.5,"min_price":1.6,"quantity":3}`,
	} {
		t.Run(name, func(t *testing.T) {
			history := sales{{name: "B"}: {median: 5, count: 9, currency: "USD"}, {name: "C"}: {median: 7, count: 2, currency: "USD"}}
			var sink providertest.Sink
			if _, err := New(Config{SalesWindow: 30 * day}).readItems(t.Context(), strings.NewReader("["+good+","+row+"]"), history, &sink); err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, q := range sink.Sorted() {
				names = append(names, q.Name)
			}
			if got := strings.Join(names, " "); got != "A C" || sink.Rejects != 1 {
				t.Errorf("got quotes of %q and %d rejects, want A, C and 1", got, sink.Rejects)
			}
		})
	}
}

func TestSales_ConflictingRowsAreUnknown(t *testing.T) {
	row := func(name string, volume int) string {
		return fmt.Sprintf(`{"market_hash_name":%q,"currency":"USD","last_30_days":{"median":5,"volume":%d}}`, name, volume)
	}
	s := New(Config{SalesWindow: 30 * day})
	body := "[" + strings.Join([]string{row("A", 1), row("B", 2), row("C", 3), row("A", 4), row("B", 2), row("D", 1), row("E", 1)}, ",") + "]"
	history, err := s.readSales(t.Context(), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	var sink providertest.Sink
	offers := `[{"market_hash_name":"C","currency":"USD","min_price":9,"quantity":1}]`
	if _, err := s.readItems(t.Context(), strings.NewReader(offers), history, &sink); err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for _, q := range sink.Quotes {
		got[q.Name] = q.Sales
	}
	if diff := cmp.Diff(map[string]int64{"B": 2, "C": 3, "D": 1, "E": 1}, got); diff != "" {
		t.Errorf("sales (-want +got):\n%s", diff)
	}
}

func TestItems_SalesDoNotOffsetRejectedRows(t *testing.T) {
	history := sales{{name: "B"}: {median: 5, currency: "USD"}, {name: "C"}: {median: 5, currency: "USD"}, {name: "D"}: {median: 5, currency: "USD"}}
	const invalid = `[{"market_hash_name":"A","currency":"USD"},{"market_hash_name":"B","currency":7},{"market_hash_name":"C","currency":"USD","min_price":"1,5"}]`
	_, err := New(Config{}).readItems(t.Context(), strings.NewReader(invalid), history, providertest.Discard{})
	if provider.KindOf(err) != provider.KindProtocol || !strings.Contains(err.Error(), "more rows rejected than accepted (2 and 1)") {
		t.Errorf("got error %v, want one about rejected rows", err)
	}
}

func TestSales_LimitsNumberOfItems(t *testing.T) {
	var b strings.Builder
	for i := range maxSold + 1 {
		fmt.Fprintf(&b, `%.*s{"market_hash_name":"%d","currency":"USD"}`, min(i, 1), ",", i)
	}
	_, err := New(Config{}).readSales(t.Context(), strings.NewReader("["+b.String()+"]"))
	if provider.KindOf(err) != provider.KindTooLarge {
		t.Errorf("%d items: got error %v, want kind %s", maxSold+1, err, provider.KindTooLarge)
	}
}

// response returns an endless response in Skinport's format.
func response() providertest.Response {
	s := New(Config{SalesWindow: 30 * day})
	return providertest.Response{
		Head: "[", Tail: "]",
		Row: func(i int) string {
			return fmt.Sprintf(`%.*s{"market_hash_name":"★ StatTrak™ Karambit | Case %d (Field-Tested)","version":null,"currency":"USD","suggested_price":31.4,"item_page":"https://example.invalid/item/%d",`+
				`"market_page":"https://example.invalid/market?item=%d","min_price":%d.%02d,"max_price":410.0,"mean_price":36.12,"median_price":33.9,"quantity":%d,"created_at":1535988253,"updated_at":1763690112}`,
				min(i, 1), ",", i, i, i, i%900+1, i%100, i%50)
		},
		Read: func(body io.Reader, sink provider.Sink) error {
			_, err := s.readItems(context.Background(), body, nil, sink)
			return err
		},
	}
}

func TestItems_Cost(t *testing.T) { providertest.CheckCost(t, response()) }

func BenchmarkItems(b *testing.B) { providertest.Bench(b, response()) }
