package pricempire

import (
	"context"
	"fmt"
	"io"
	"testing"

	"assay/internal/provider"
	"assay/internal/provider/providertest"
)

func FuzzPrices(f *testing.F) {
	f.Add([]byte(`[{"market_hash_name":"A - Ruby","trades_30d":"8402","steam_last_30d":0,"prices":[{"provider_key":"buff163","price":2601,"count":1450,"updated_at":"2025-01-01T00:00:00.000Z","last_checked_at":"2026-11-21T09:58:01.000Z"}]}]`))
	f.Add([]byte(`[{"market_hash_name":"B","prices":[{"provider_key":"skinport","price":null,"count":"0","updated_at":null},{"provider_key":"csfloat","price":"0"}]},{"market_hash_name":"B","prices":[{"provider_key":"skinport","price":"7"}]}]`))
	f.Add([]byte(`[{"market_hash_name":" - Ruby","prices":[{"provider_key":"buff163","price":5}]}]`)) // the name consists of a phase only
	s := New(Config{})
	providertest.Fuzz(f, func(body io.Reader, sink provider.Sink) error {
		_, err := s.read(context.Background(), body, sink)
		return err
	})
}

// response returns an endless response in Pricempire's format.
func response() providertest.Response {
	s := New(Config{})
	return providertest.Response{
		Head: "[", Tail: "]",
		Row: func(i int) string {
			row := fmt.Sprintf(`%.*s{"market_hash_name":"★ StatTrak™ Karambit | Case %d (Field-Tested)","image":"https://example.invalid/economy/image/%d/360fx360f","liquidity":"93.4","steam_last_30d":"1510","trades_30d":"8402","count":"15230","rank":%d,"prices":[`,
				min(i, 1), ",", i, i, i)
			for k, m := range Markets() {
				row += fmt.Sprintf(`%.*s{"provider_key":"%s","price":%d,"count":1450,"updated_at":"2026-11-21T09:58:01.000Z","last_checked_at":"2026-11-21T09:58:01.000Z","meta":{"original_price":18900,"original_currency":"CNY","rate":0.1376}}`,
					min(k, 1), ",", m, i)
			}
			return row + "]}"
		},
		Read: func(body io.Reader, sink provider.Sink) error {
			_, err := s.read(context.Background(), body, sink)
			return err
		},
	}
}

func TestPrices_Cost(t *testing.T) { providertest.CheckCost(t, response()) }

func BenchmarkPrices(b *testing.B) { providertest.Bench(b, response()) }
