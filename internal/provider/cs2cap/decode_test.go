package cs2cap

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

// samplePage is a response about one name in the documented format.
const samplePage = `{"meta":{"currency":"USD","filters":{"market_hash_name":"AK-47 | Redline (Field-Tested)","requested_providers":["steam","skinport"]},"providers_queried":["steam","skinport"]},
 "items":[
  {"provider":"steam","item_id":156,"market_hash_name":"AK-47 | Redline (Field-Tested)","phase":null,"lowest_ask":3310,"lowest_ask_decimal":"33.10","quantity":1204,"link":"https://cs2c.app/r/steam/156","timestamp":"2026-11-21T08:02:00Z","last_updated":"2026-11-21T09:55:44Z"},
  {"provider":"skinport","item_id":156,"market_hash_name":"AK-47 | Redline (Field-Tested)","phase":null,"lowest_ask":2785,"lowest_ask_decimal":"27.85","quantity":318,"link":"https://cs2c.app/r/skinport/156","timestamp":"2026-11-21T09:41:00Z","last_updated":"2026-11-21T09:57:10Z"}],
 "pagination":{"limit":100,"offset":0,"total":2,"has_next":false,"has_prev":false,"next_cursor":null}}`

func TestPage_DecodesSample(t *testing.T) {
	const name = "AK-47 | Redline (Field-Tested)"
	var sink providertest.Sink
	result, more, err := New(Config{Shape: provider.Single, Markets: []string{"steam", "skinport"}}).readPage(t.Context(), strings.NewReader(samplePage), name, &sink)
	if err != nil || more != 0 || result.Silent != nil {
		t.Errorf("got error %v, %d rows before the next page, silent markets %q; want none", err, more, result.Silent)
	}
	want := []provider.Quote{
		{Market: "skinport", Name: name, Currency: "USD", Ask: 27_850_000, Listings: 318, Sales: provider.Unknown, MarketTime: time.Date(2026, 11, 21, 9, 57, 10, 0, time.UTC)},
		{Market: "steam", Name: name, Currency: "USD", Ask: 33_100_000, Listings: 1204, Sales: provider.Unknown, MarketTime: time.Date(2026, 11, 21, 9, 55, 44, 0, time.UTC)},
	}
	if diff := cmp.Diff(want, sink.Sorted()); diff != "" {
		t.Errorf("quotes (-want +got):\n%s", diff)
	}
}

func FuzzBatch(f *testing.F) {
	f.Add([]byte(`{"meta":{"currency":"USD","providers_queried":["steam"],"generated_at":"2026-11-21T10:00:05Z"},"items":[{"market_hash_name":"A","phase":"Ruby","quotes":[{"provider":"steam","lowest_ask":5,"lowest_ask_decimal":"0.05","quantity":1,"last_updated":"2026-11-21T10:00:05Z"}]}],"names_not_found":["B"]}`))
	f.Add([]byte(`{"items":[{"market_hash_name":"B","quotes":[{"provider":"skinport","lowest_ask":"5"}]}],"items_not_found":[5],"meta":{"currency":"USD"}}`))
	s := New(Config{})
	providertest.Fuzz(f, func(body io.Reader, sink provider.Sink) error {
		_, err := s.readBatch(context.Background(), body, []string{"A", "B"}, sink)
		return err
	})
}

func FuzzPage(f *testing.F) {
	f.Add([]byte(`{"meta":{"currency":"USD"},"items":[{"provider":"steam","market_hash_name":"A","phase":null,"lowest_ask":5,"quantity":1}],"pagination":{"has_next":true}}`))
	s := New(Config{Shape: provider.Single})
	providertest.Fuzz(f, func(body io.Reader, sink provider.Sink) error {
		var page, rows rowBuffer
		if _, _, err := s.readPage(context.Background(), body, "A", &page); err != nil {
			return err
		}
		rows.add(&page)
		return rows.flush(sink)
	})
}

func FuzzStream(f *testing.F) {
	f.Add([]byte(`{"item_id":1,"market_hash_name":"A","phase":"Ruby","quotes":[{"provider":"steam","lowest_ask":5,"lowest_ask_decimal":"0.05","quantity":1,"last_updated":"2026-11-21T10:00:05Z"}]}` + "\n" + `{"market_hash_name":"B","quotes":[]}`))
	f.Add([]byte(`{"market_hash_name":"A","quotes":[{"provider":"skinport","lowest_ask":"5"}]}` + "\n" + `{"code":"X"}`))
	s := New(Config{Shape: provider.Bulk})
	sold := sales{{"A", ""}: 7, {"A", "Ruby"}: 0}
	providertest.Fuzz(f, func(body io.Reader, sink provider.Sink) error {
		_, err := s.readStream(context.Background(), body, sold, sink)
		return err
	})
}

func FuzzSales(f *testing.F) {
	f.Add([]byte(`{"data":{"items":[{"market_hash_name":"A","phase":null,"summary":{"sales_30d":5,"steam_sales_30d":null}},{"market_hash_name":"A","phase":"Ruby","summary":{"sales_30d":"0","steam_sales_30d":7}}]},"meta":{}}`))
	providertest.Fuzz(f, func(body io.Reader, sink provider.Sink) error {
		sold, err := readSales(context.Background(), body)
		for key, n := range sold {
			if err := sink.Quote(&provider.Quote{Market: Name, Name: key.name, Phase: key.phase, Currency: "USD", Sales: n}); err != nil {
				return err
			}
			if n < 0 {
				f.Errorf("got %d sales, want at least 0", n)
			}
		}
		return err
	})
}

func TestSales_LimitsNumberOfItems(t *testing.T) {
	var b strings.Builder
	for i := range maxSold + 1 {
		fmt.Fprintf(&b, `%.*s{"market_hash_name":"%d","summary":{"sales_30d":1}}`, min(i, 1), ",", i)
	}
	_, err := readSales(t.Context(), strings.NewReader(`{"data":{"items":[`+b.String()+`]}}`))
	if provider.KindOf(err) != provider.KindTooLarge {
		t.Errorf("%d items: got error %v, want kind %s", maxSold+1, err, provider.KindTooLarge)
	}
}

// stream returns an endless stream.
func stream() providertest.Response {
	s := New(Config{Shape: provider.Bulk})
	a := response()
	row := a.Row
	a.Small, a.Head, a.Tail = false, "", ""
	a.Row = func(i int) string { return strings.TrimPrefix(row(i), ",") + "\n" }
	a.Read = func(body io.Reader, sink provider.Sink) error {
		_, err := s.readStream(context.Background(), body, nil, sink)
		return err
	}
	return a
}

// sold returns an endless response of market/items with 39,000 names.
func sold() providertest.Response {
	return providertest.Response{
		Head: `{"data":{"items":[`, Tail: `]},"meta":{"freshness_sec":40}}`,
		Row: func(i int) string {
			return fmt.Sprintf(`%.*s{"item_id":%d,"market_hash_name":"StatTrak™ AK-47 | Case %d (Field-Tested)","phase":null,"image":"https://example.invalid/item/%d.png","type":"Rifle","rarity":"Classified","summary":{"provider_count":%d,"best_ask_usd":"27.85","best_bid_usd":"25.02","median_usd":"28.10","liquidity_score":"0.81","sales_1d":%d,"sales_7d":%d,"sales_30d":%d,"steam_sales_7d":300,"steam_sales_30d":1510,"change_24h":"0.012","change_7d":"-0.04","market_cap_usd":"1250032.10"}}`,
				min(i, 1), ",", i, i%39_000, i, i%41, i%9, i%90, i%900)
		},
		Read: func(body io.Reader, _ provider.Sink) error {
			_, err := readSales(context.Background(), body)
			return err
		},
	}
}

func TestStream_Cost(t *testing.T) { providertest.CheckCost(t, stream()) }

func TestSales_Cost(t *testing.T) { providertest.CheckCost(t, sold()) }

func BenchmarkStream(b *testing.B) { providertest.Bench(b, stream()) }

// response returns an endless response to a batch.
func response() providertest.Response {
	s := New(Config{})
	names := make([]string, 40_000)
	for i := range names {
		names[i] = fmt.Sprintf("StatTrak™ AK-47 | Case %d (Field-Tested)", i)
	}
	return providertest.Response{
		Small: true, // real responses have a hundred names
		Head:  `{"meta":{"currency":"USD"},"items":[`, Tail: `],"items_not_found":[],"names_not_found":[]}`,
		Row: func(i int) string {
			row := fmt.Sprintf(`%.*s{"item_id":%d,"market_hash_name":"%s","phase":null,"quotes":[`, min(i, 1), ",", i, names[i])
			for k := range 20 {
				row += fmt.Sprintf(`%.*s{"provider":"%s","lowest_ask":%d,"lowest_ask_decimal":"%d.85","quantity":318,"timestamp":"2026-11-21T09:41:00Z","last_updated":"2026-11-21T09:57:10Z"}`,
					min(k, 1), ",", s.describe.Markets[(k+i)%41].Key, i, i)
			}
			return row + "]}"
		},
		Read: func(body io.Reader, sink provider.Sink) error {
			_, err := s.readBatch(context.Background(), body, names, sink)
			return err
		},
	}
}

func TestBatch_Cost(t *testing.T) { providertest.CheckCost(t, response()) }

func BenchmarkBatch(b *testing.B) { providertest.Bench(b, response()) }
