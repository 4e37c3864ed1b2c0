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

// TestReal_DecodesRecordedListings reads recorded single listings and compares them with
// encoding/json. The provider does not request single listings. They have the same names,
// prices and paint indexes as the lists.
func TestReal_DecodesRecordedListings(t *testing.T) {
	body, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "shared", "data", "fixtures", "csfloat_listings_2026-04-19_sanitised.json"))
	if err != nil {
		t.Skip("recorded listings missing")
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
				t.Errorf("listing %d: got an invalid row, error %v, want a valid row", n, err)
				return err
			}
			q, ok := quote(r, item[0], row[0], feed.Cell{})
			w := want.Data[n]
			if !ok || q.Name != w.Item.Name || q.Ask != money.Micro(w.Price*10_000) {
				t.Errorf("listing %d: got %+v, want %s at %d cents", n, q, w.Item.Name, w.Price)
			}
			for i, w := range []json.Number{w.Item.Wear, w.Item.Seed, w.Item.Paint} {
				if string(item[i+1].Text) != w.String() {
					t.Errorf("%s: got number %q, want %q", q.Name, item[i+1].Text, w)
				}
			}
			phases[feed.PhaseOfPaint(item[3].Text)]++
			n++
			r.Count(1)
			return nil
		})
	})
	if err != nil || n != len(want.Data) || n != 9 {
		t.Errorf("got %d of %d listings, error %v; want 9", n, len(want.Data), err)
	}
	if phases["Ruby"] != 1 || phases["Phase 2"] != 1 || phases[""] != 7 {
		t.Errorf("got phases %v, want 1 Ruby, 1 Phase 2 and 7 without", phases)
	}
}
