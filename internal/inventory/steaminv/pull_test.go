package steaminv_test

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay/internal/catalog"
	"assay/internal/fault"
	"assay/internal/inventory"
	"assay/internal/inventory/steaminv"
	"assay/internal/inventory/steaminv/steaminvtest"
	"assay/internal/provider"
	"assay/internal/provider/providertest"
)

const (
	someone = "76561198000000001"
	csPlace = someone + "/730/2"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// steam is a fake server of Steam with a Puller.
type steam struct {
	*steaminvtest.Server
	faults *providertest.Server
	puller *steaminv.Puller
}

func newSteam(t testing.TB, fake *steaminvtest.Server) *steam {
	t.Helper()
	server := providertest.NewServer(t, fake)
	o := provider.Options{Provider: "steam"}
	steaminv.Tune(&o)
	// The production client has the same options.
	o.Wait, o.MostWait = 10*time.Minute, time.Hour
	client := providertest.NewClient(t, server.URL(), o, nil)
	return &steam{fake, server, &steaminv.Puller{BaseURL: server.URL(), Client: client, Now: func() time.Time { return noon }}}
}

func (s *steam) pull(t testing.TB) (inventory.Push, error) {
	t.Helper()
	return s.puller.Pull(t.Context(), someone, steaminv.Default())
}

// items returns n items with n/2 different names.
func items(n int) []steaminvtest.Item {
	out := make([]steaminvtest.Item, n)
	for i := range out {
		// Most of these ids are not representable as float64.
		out[i] = steaminvtest.Item{
			AssetID: strconv.Itoa(9_007_199_254_740_993 + i), ClassID: strconv.Itoa(1_000_000 + i/2), InstanceID: "188530139",
			Name: fmt.Sprint("Item ", i/2),
		}
	}
	return out
}

func owned(list ...steaminvtest.Item) map[string]*steaminvtest.Inventory {
	return map[string]*steaminvtest.Inventory{csPlace: steaminvtest.New(catalog.CS2, "2", list...)}
}

// recorded returns the recorded response with an inventory. The test is skipped if the file
// is missing.
func recorded(t testing.TB) []byte {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "..", "..", "..", "shared", "data", "steam_inventory_730_2024-07_sanitised.json.gz"))
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("the recorded inventory is not available")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	decompressed, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(decompressed)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func TestPull_ReadsAllPages(t *testing.T) {
	s := newSteam(t, &steaminvtest.Server{Inventories: owned(items(4_500)...)})
	push, err := s.pull(t)
	if err != nil || len(push.Assets) != 4_500 {
		t.Fatalf("got %d assets, error %v, want 4500", len(push.Assets), err)
	}
	if push.AppID != 730 || push.ContextID != "2" || !push.SnapshotAt.Equal(noon) {
		t.Errorf("got push of %d/%s at %v, want 730/2 at %v", push.AppID, push.ContextID, push.SnapshotAt, noon)
	}
	for i, a := range push.Assets {
		want := items(4_500)[i]
		if a.AssetID != want.AssetID || a.Name != want.Name || a.ClassID != want.ClassID || a.InstanceID != want.InstanceID || a.Amount != 1 || !a.Tradable || !a.Marketable {
			t.Fatalf("asset %d: got %+v, want %+v", i, a, want)
		}
		if i == 10 {
			break
		}
	}
	want := []string{
		"/inventory/" + csPlace + "?count=2000&l=english",
		"/inventory/" + csPlace + "?count=2000&l=english&start_assetid=" + push.Assets[1999].AssetID,
		"/inventory/" + csPlace + "?count=2000&l=english&start_assetid=" + push.Assets[3999].AssetID,
	}
	if d := cmp.Diff(want, s.Paths()); d != "" {
		t.Errorf("requests (-want +got):\n%s", d)
	}
}

func TestPull_FallsBackToSmallerPages(t *testing.T) {
	s := newSteam(t, &steaminvtest.Server{Inventories: owned(items(2_100)...), MaxCount: 1000})
	push, err := s.pull(t)
	if err != nil || len(push.Assets) != 2_100 {
		t.Fatalf("got %d assets, error %v, want 2100", len(push.Assets), err)
	}
	if n := len(s.Paths()); n != 4 {
		t.Errorf("got %d requests, want a refused one and three with count 1000", n)
	}
	s = newSteam(t, &steaminvtest.Server{Inventories: owned(items(1)...), MaxCount: 10})
	if _, err := s.pull(t); code(err) != "inventory_unavailable" || len(s.Paths()) != 2 {
		t.Errorf("both counts refused: got error %v after %d requests, want inventory_unavailable after 2", err, len(s.Paths()))
	}
}

func TestPull_IgnoresRepeatedAssets(t *testing.T) {
	s := newSteam(t, &steaminvtest.Server{Inventories: owned(items(25)...), PageSize: 10, Repeat: true})
	push, err := s.pull(t)
	if err != nil || len(push.Assets) != 25 {
		t.Fatalf("got %d assets, error %v, want 25", len(push.Assets), err)
	}
	seen := map[string]bool{}
	for _, a := range push.Assets {
		if seen[a.AssetID] {
			t.Errorf("got asset %s twice, want once", a.AssetID)
		}
		seen[a.AssetID] = true
	}
}

func TestPull_PreservesUnusualAssets(t *testing.T) {
	s := newSteam(t, &steaminvtest.Server{Inventories: owned(
		steaminvtest.Item{AssetID: "18446744073709551615", ClassID: "1", Name: " two  spaces \n"},
		steaminvtest.Item{AssetID: "2", ClassID: "2", InstanceID: "0", Amount: 40, Name: "★ StatTrak™ 龍 %2F &lt;"},
		steaminvtest.Item{AssetID: "3", ClassID: "3", Untradable: true},
		steaminvtest.Item{
			AssetID: "4", ClassID: "4", Name: "A", Properties: `[{"propertyid":1,"int_value":"661","name":"Pattern Template"},` +
				`{"propertyid":2,"float_value":0.178123},{"propertyid":5,"string_value":"name"},{"propertyid":6,"string_value":"00180720DA0228"},{"propertyid":77,"int_value":1}]`,
		},
	)})
	push, err := s.pull(t)
	if err != nil {
		t.Fatal(err)
	}
	none := &inventory.Properties{}
	want := []inventory.Asset{
		{AssetID: "18446744073709551615", ClassID: "1", InstanceID: "0", Name: " two  spaces \n", Amount: 1, Tradable: true, Marketable: true, Properties: none},
		{AssetID: "2", ClassID: "2", InstanceID: "0", Name: "★ StatTrak™ 龍 %2F &lt;", Amount: 40, Tradable: true, Marketable: true, Properties: none},
		{AssetID: "3", ClassID: "3", InstanceID: "0", Amount: 1, Properties: none},
		{
			AssetID: "4", ClassID: "4", InstanceID: "0", Name: "A", Amount: 1, Tradable: true, Marketable: true,
			Properties: &inventory.Properties{Seed: "661", Wear: "0.178123", NameTag: "name", Certificate: "00180720DA0228"},
		},
	}
	if d := cmp.Diff(want, push.Assets); d != "" {
		t.Errorf("assets (-want +got):\n%s", d)
	}
}

func TestPull_EmptyInventoryIsNotAnError(t *testing.T) {
	s := newSteam(t, &steaminvtest.Server{Inventories: owned()})
	if push, err := s.pull(t); err != nil || len(push.Assets) != 0 || push.SnapshotAt.IsZero() {
		t.Errorf("got push %+v, error %v, want no assets", push, err)
	}
}

func TestPull_ReadsTheRecordedInventory(t *testing.T) {
	body := recorded(t)
	own, err := steaminvtest.Read(body)
	if err != nil {
		t.Fatal(err)
	}
	s := newSteam(t, &steaminvtest.Server{Inventories: map[string]*steaminvtest.Inventory{csPlace: own}, PageSize: 100})
	push, err := s.pull(t)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for i, a := range push.Assets {
		names[a.Name] = true
		if !strings.Contains(own.Assets[i].Row, `"`+a.AssetID+`"`) {
			t.Fatalf("asset %d: got id %s, want the id in %s", i, a.AssetID, own.Assets[i].Row)
		}
		quoted := providertest.Quote(a.Name)
		if description := own.Descriptions[[2]string{a.ClassID, a.InstanceID}]; !strings.Contains(description, `"market_hash_name":`+quoted) &&
			!strings.Contains(description, `"market_hash_name": `+quoted) {
			t.Errorf("asset %s: got name %s, want the name in %.300s", a.AssetID, quoted, description)
		}
	}
	if len(push.Assets) != 810 || len(names) != 566 || len(s.Paths()) != 9 {
		t.Errorf("got %d assets with %d names on %d pages, want 810, 566 and 9", len(push.Assets), len(names), len(s.Paths()))
	}
}

// code returns the code of a fault, or "" for other errors.
func code(err error) string {
	if f := fault.Of(err); f != nil {
		return f.Code
	}
	return ""
}

func TestPull_CountsHiddenAssets(t *testing.T) {
	reply := func(total int, more string, ids ...int) steaminvtest.Reply {
		var assets []string
		for _, id := range ids {
			assets = append(assets, fmt.Sprintf(`{"assetid":"%d","classid":"1"}`, id))
		}
		return steaminvtest.Reply{Body: fmt.Sprintf(`{"assets":[%s],"descriptions":[{"classid":"1","market_hash_name":"A","marketable":1}],`+
			`%s"total_inventory_count":%d,"success":1}`, strings.Join(assets, ","), more, total)}
	}
	const next = `"more_items":1,"last_assetid":"2",`
	full := make([]int, 2000)
	for i := range full {
		full[i] = i + 1
	}
	for name, c := range map[string]struct {
		script map[int]steaminvtest.Reply
		assets int
		hidden int64 // -1: the pull fails
	}{
		"single page":       {map[int]steaminvtest.Reply{1: reply(2, "", 1)}, 1, 1},
		"second page":       {map[int]steaminvtest.Reply{1: reply(9, next, 1, 2), 2: reply(9, "", 3)}, 3, 6},
		"empty second page": {map[int]steaminvtest.Reply{1: reply(9, next, 1, 2), 2: reply(9, "")}, 2, 7},
		"full last page":    {map[int]steaminvtest.Reply{1: reply(2001, "", full...)}, 0, -1},
		"missing page":      {map[int]steaminvtest.Reply{1: reply(9, next, 1, 2), 2: {Status: 404, Body: steaminvtest.Null}}, 0, -1},
		"changed total":     {map[int]steaminvtest.Reply{1: reply(9, next, 1, 2), 2: reply(8, "", 3)}, 0, -1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSteam(t, &steaminvtest.Server{Script: c.script})
			push, err := s.pull(t)
			if c.hidden < 0 {
				if code(err) != "inventory_unavailable" || push.Assets != nil {
					t.Errorf("got %d assets, error %v, want inventory_unavailable", len(push.Assets), err)
				}
				return
			}
			if err != nil || len(push.Assets) != c.assets || push.Hidden != c.hidden {
				t.Errorf("got %d assets, %d hidden, error %v, want %d and %d", len(push.Assets), push.Hidden, err, c.assets, c.hidden)
			}
		})
	}
}

func TestPlace_RejectsUnsupportedInventories(t *testing.T) {
	for _, p := range steaminv.Places() {
		if err := p.Check(); err != nil {
			t.Errorf("Check of %v: got error %v, want none", p, err)
		}
	}
	for _, p := range []steaminv.Place{{}, {730, ""}, {730, "6"}, {570, "16"}, {753, "6"}, {730, "02"}} {
		if code(p.Check()) != "unsupported_inventory" {
			t.Errorf("Check of %v: got error %v, want unsupported_inventory", p, p.Check())
		}
	}
}
