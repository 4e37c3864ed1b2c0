package cs2cap

import (
	"context"
	"fmt"
	"io"
	"testing"

	"assay/internal/provider"
	"assay/internal/provider/providertest"
)

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
		var page, rows kept
		if _, _, err := s.readPage(context.Background(), body, "A", &page); err != nil {
			return err
		}
		rows.add(&page)
		return rows.hand(sink)
	})
}

// answer is a batch of as many names as one wants.
func answer() providertest.Answer {
	s := New(Config{})
	names := make([]string, 40_000)
	for i := range names {
		names[i] = fmt.Sprintf("StatTrak™ AK-47 | Case %d (Field-Tested)", i)
	}
	return providertest.Answer{
		Small: true, // a hundred names
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

func TestBatch_CostsLittle(t *testing.T) { providertest.Weigh(t, answer()) }

func BenchmarkBatch(b *testing.B) { providertest.Bench(b, answer()) }
