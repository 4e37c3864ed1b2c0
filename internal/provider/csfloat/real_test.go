package csfloat

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"assay/internal/money"
	"assay/internal/provider/feed"
)

// TestReal_RecordedListingsReadToTheirOwnNumbers reads recorded single listings,
// which are not requested but have names, prices and paints as the lists do,
// and holds them against what the standard library reads.
func TestReal_RecordedListingsReadToTheirOwnNumbers(t *testing.T) {
	body, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "shared", "data", "fixtures", "csfloat_listings_2026-04-19_sanitised.json"))
	if err != nil {
		t.Skip("the recorded listings are not there")
	}
	var want struct {
		Data []struct {
			Price int64
			Item  struct {
				Name  string      `json:"market_hash_name"`
				Wear  json.Number `json:"float_value"`
				Seed  json.Number `json:"paint_seed"`
				Paint json.Number `json:"paint_index"`
			}
		}
	}
	if err := json.Unmarshal(body, &want); err != nil {
		t.Fatal(err)
	}
	phases := map[string]int{}
	n := 0
	row, item := make([]feed.Cell, 2), make([]feed.Cell, 4)
	err = feed.Read(context.Background(), Name, bytes.NewReader(body), nil, func(r *feed.Reader) error {
		return list(r, func() error {
			ok, err := r.Row([]string{"price", "item"}, row)
			if !ok || err != nil || !r.Within(row[1], []string{"market_hash_name", "float_value", "paint_seed", "paint_index"}, item) {
				t.Errorf("listing %d is no row: %v", n, err)
				return err
			}
			q, ok := quote(r, item[0], row[0], feed.Cell{})
			w := want.Data[n]
			if !ok || q.Name != w.Item.Name || q.Ask != money.Micro(w.Price*10_000) {
				t.Errorf("listing %d became %+v", n, q)
			}
			for i, w := range []json.Number{w.Item.Wear, w.Item.Seed, w.Item.Paint} {
				if string(item[i+1].Text) != w.String() {
					t.Errorf("%s: %q became %q", q.Name, w, item[i+1].Text)
				}
			}
			phases[feed.PhaseOfPaint(item[3].Text)]++
			n++
			r.Count(1)
			return nil
		})
	})
	if err != nil || n != len(want.Data) || n != 9 {
		t.Errorf("%d of %d listings, error %v", n, len(want.Data), err)
	}
	if phases["Ruby"] != 1 || phases["Phase 2"] != 1 || phases[""] != 7 {
		t.Errorf("phases %v", phases)
	}
}
