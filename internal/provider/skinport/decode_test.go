package skinport

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"assay/internal/provider"
	"assay/internal/provider/providertest"
)

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

func TestItems_RubbishIsNotOutweighedBySales(t *testing.T) {
	sold := sales{{name: "B"}: {median: 5, currency: "USD"}, {name: "C"}: {median: 5, currency: "USD"}, {name: "D"}: {median: 5, currency: "USD"}}
	const rubbish = `[{"market_hash_name":"A","currency":"USD"},{"market_hash_name":"B","currency":7},{"market_hash_name":"C","currency":"USD","min_price":"1,5"}]`
	_, err := New(Config{}).readItems(t.Context(), strings.NewReader(rubbish), sold, providertest.Discard{})
	if provider.KindOf(err) != provider.KindProtocol || !strings.Contains(err.Error(), "1 quotes and 2 rejects") {
		t.Errorf("error %v", err)
	}
}

func TestSales_BoundTheItemsThatAreHeld(t *testing.T) {
	var b strings.Builder
	for i := range maxSold + 1 {
		fmt.Fprintf(&b, `%.*s{"market_hash_name":"%d","currency":"USD"}`, min(i, 1), ",", i)
	}
	_, err := New(Config{}).readSales(t.Context(), strings.NewReader("["+b.String()+"]"))
	if provider.KindOf(err) != provider.KindTooLarge {
		t.Errorf("one item more: %v", err)
	}
}

// answer is what Skinport answers, without end.
func answer() providertest.Answer {
	s := New(Config{SalesWindow: 30 * day})
	return providertest.Answer{
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

func TestItems_CostLittle(t *testing.T) { providertest.Weigh(t, answer()) }

func BenchmarkItems(b *testing.B) { providertest.Bench(b, answer()) }
