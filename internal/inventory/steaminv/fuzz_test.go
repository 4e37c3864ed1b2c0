package steaminv

import (
	"bytes"
	"context"
	"strconv"
	"testing"

	"assay/internal/catalog"
)

// FuzzPage checks that pages without an error are valid: ids are decimal, names are valid,
// amounts are positive, and all sizes are within their limits.
func FuzzPage(f *testing.F) {
	for _, text := range []string{
		`{"total_inventory_count":0,"success":1,"rwgrsn":-2}`,
		`{"assets":[{"appid":730,"contextid":"2","assetid":"40000000001","classid":"3","amount":"1"}],"descriptions":[{"classid":"3","tradable":true,"marketable":1,` +
			`"market_hash_name":"A","actions":[{"link":"+csgo_econ_action_preview%20%propid:6%"}]}],"asset_properties":[{"appid":730,"contextid":"2",` +
			`"assetid":"40000000001","asset_properties":[{"propertyid":6,"string_value":"00180720DA0228"},{"propertyid":2,"float_value":"0.1"}]}],` +
			`"more_items":1,"last_assetid":"40000000001","total_inventory_count":3,"success":1}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		p, err := readPage(context.Background(), bytes.NewReader(body), "76561198000000001", Default())
		if err != nil {
			return
		}
		if p.total < 0 || len(p.assets) > maxPage || p.more && p.last == "" {
			t.Errorf("got a page with total %d, %d assets, more %v after %q, want a valid page or an error", p.total, len(p.assets), p.more, p.last)
		}
		for _, a := range p.assets {
			for _, id := range []string{a.AssetID, a.ClassID, a.InstanceID} {
				if _, err := strconv.ParseUint(id, 10, 64); err != nil && len(id) < 20 {
					t.Errorf("got the id %q, want a number or an error", id)
				}
			}
			if a.Amount < 1 || a.Name == "" && a.Marketable || a.Name != "" && catalog.CheckName(a.Name) != nil || a.Properties == nil || len(a.Inspect) > 4096 {
				t.Errorf("got the asset %+v, want a valid one or an error", a)
			}
		}
	})
}
