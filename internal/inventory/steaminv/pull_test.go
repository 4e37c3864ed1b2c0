package steaminv_test

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
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
	// These options are the same as those of the production client.
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
		t.Error(d)
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
			t.Errorf("duplicate asset %s", a.AssetID)
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
		t.Error(d)
	}
}

func TestPull_EmptyInventoryIsNotAnError(t *testing.T) {
	s := newSteam(t, &steaminvtest.Server{Inventories: owned()})
	if push, err := s.pull(t); err != nil || len(push.Assets) != 0 || push.SnapshotAt.IsZero() {
		t.Errorf("got %+v, error %v, want no assets", push, err)
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

func TestPull_ReturnsAFaultForEachOutcome(t *testing.T) {
	const html = "<!DOCTYPE html><html><body>Access Denied</body></html>"
	reply := func(status int, body string) map[int]steaminvtest.Reply {
		return map[int]steaminvtest.Reply{1: {Status: status, Body: body}}
	}
	page := func(rest string) map[int]steaminvtest.Reply { return reply(200, `{"success":1,`+rest+`}`) }
	const one = `"assets":[{"appid":730,"contextid":"2","assetid":"1","classid":"1","amount":"1"}],"descriptions":[{"classid":"1","market_hash_name":"A","marketable":1}]`
	for name, c := range map[string]struct {
		script   map[int]steaminvtest.Reply
		code     string
		kind     fault.Kind
		requests int
		after    time.Duration
	}{
		"private":                {reply(403, "null"), "inventory_private", fault.Conflict, 1, 0},
		"private, empty body":    {reply(403, ""), "inventory_private", fault.Conflict, 1, 0},
		"unauthorised":           {reply(401, "null"), "inventory_private", fault.Conflict, 1, 0},
		"hidden":                 {page(`"total_inventory_count":12`), "inventory_hidden", fault.Conflict, 1, 0},
		"hidden, empty list":     {page(`"total_inventory_count":12,"assets":[],"descriptions":[]`), "inventory_hidden", fault.Conflict, 1, 0},
		"throttled":              {reply(429, "null"), "steam_throttled", fault.Unavailable, 1, 10 * time.Minute},
		"throttled by a page":    {reply(403, html), "steam_throttled", fault.Unavailable, 1, 10 * time.Minute},
		"too large":              {page(`"total_inventory_count":50001,` + one), "inventory_too_large", fault.Unprocessable, 1, 0},
		"final 500":              {reply(500, steaminvtest.Final), "inventory_unavailable", fault.Unavailable, 1, 30 * time.Second},
		"unknown 500":            {reply(500, `{"error":"EYldRefreshAppIfNecessary failed with EResult 15"}`), "inventory_unavailable", fault.Unavailable, 1, 30 * time.Second},
		"400 that stays":         {map[int]steaminvtest.Reply{1: {Status: 400, Body: "null"}, 2: {Status: 400, Body: "null"}}, "inventory_unavailable", fault.Unavailable, 2, 30 * time.Second},
		"HTML":                   {reply(200, html), "inventory_unavailable", fault.Unavailable, 1, 30 * time.Second},
		"null":                   {reply(200, "null"), "inventory_unavailable", fault.Unavailable, 1, 30 * time.Second},
		"nothing":                {reply(200, ""), "inventory_unavailable", fault.Unavailable, 1, 30 * time.Second},
		"a list":                 {reply(200, "[]"), "inventory_unavailable", fault.Unavailable, 1, 30 * time.Second},
		"no success":             {reply(200, `{"total_inventory_count":0}`), "inventory_unavailable", fault.Unavailable, 1, 30 * time.Second},
		"failure":                {reply(200, `{"success":false,"total_inventory_count":0}`), "inventory_unavailable", fault.Unavailable, 1, 30 * time.Second},
		"no count":               {reply(200, `{"success":1}`), "inventory_unavailable", fault.Unavailable, 1, 30 * time.Second},
		"more assets than total": {page(`"total_inventory_count":0,` + one), "inventory_unavailable", fault.Unavailable, 1, 30 * time.Second},
		"no last_assetid":        {page(`"total_inventory_count":2,"more_items":1,` + one), "inventory_unavailable", fault.Unavailable, 1, 30 * time.Second},
		"another inventory":      {page(`"total_inventory_count":1,` + strings.Replace(one, "730", "570", 1)), "inventory_unavailable", fault.Unavailable, 1, 30 * time.Second},
		"another context":        {page(`"total_inventory_count":1,` + strings.Replace(one, `"2"`, `"6"`, 1)), "inventory_unavailable", fault.Unavailable, 1, 30 * time.Second},
		"no description":         {page(`"total_inventory_count":1,` + strings.Replace(one, `[{"classid":"1"`, `[{"classid":"2"`, 1)), "inventory_unavailable", fault.Unavailable, 1, 30 * time.Second},
		"invalid id":             {page(`"total_inventory_count":1,` + strings.Replace(one, `"assetid":"1"`, `"assetid":"1.5"`, 1)), "inventory_unavailable", fault.Unavailable, 1, 30 * time.Second},
		"amount of 0":            {page(`"total_inventory_count":1,` + strings.Replace(one, `"amount":"1"`, `"amount":"0"`, 1)), "inventory_unavailable", fault.Unavailable, 1, 30 * time.Second},
		"invalid flag":           {page(`"total_inventory_count":1,` + strings.Replace(one, `"marketable":1`, `"marketable":2`, 1)), "inventory_unavailable", fault.Unavailable, 1, 30 * time.Second},
		"a name of NUL":          {page(`"total_inventory_count":1,` + strings.Replace(one, `"A"`, `"\u0000"`, 1)), "inventory_unavailable", fault.Unavailable, 1, 30 * time.Second},
		"a name of 513 bytes":    {page(`"total_inventory_count":1,` + strings.Replace(one, `"A"`, `"`+strings.Repeat("a", 513)+`"`, 1)), "inventory_unavailable", fault.Unavailable, 1, 30 * time.Second},
		"assets of wrong type":   {page(`"total_inventory_count":1,"assets":"none"`), "inventory_unavailable", fault.Unavailable, 1, 30 * time.Second},
		"assets twice":           {page(`"total_inventory_count":1,` + one + `,"assets":[]`), "inventory_unavailable", fault.Unavailable, 1, 30 * time.Second},
		"a member twice":         {page(`"total_inventory_count":1,` + strings.Replace(one, `"assetid":"1"`, `"assetid":"1","assetid":"2"`, 1)), "inventory_unavailable", fault.Unavailable, 1, 30 * time.Second},
		"two documents":          {reply(200, steaminvtest.Empty+steaminvtest.Empty), "inventory_unavailable", fault.Unavailable, 1, 30 * time.Second},
		"numbers beyond bounds":  {page(`"total_inventory_count":1e400`), "inventory_unavailable", fault.Unavailable, 1, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSteam(t, &steaminvtest.Server{Inventories: owned(), Script: c.script})
			push, err := s.pull(t)
			f := fault.Of(err)
			if f == nil || f.Code != c.code || f.Kind != c.kind {
				t.Fatalf("got error %v, want %s", err, c.code)
			}
			if f.RetryAfter.Round(time.Second) != c.after {
				t.Errorf("got Retry-After %v, want %v", f.RetryAfter, c.after)
			}
			if n := len(s.Paths()); n != c.requests || push.Assets != nil {
				t.Errorf("got %d requests and %d assets, want %d and 0", n, len(push.Assets), c.requests)
			}
		})
	}
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

func TestPull_RetriesTemporaryErrors(t *testing.T) {
	for _, body := range []string{
		steaminvtest.Transient, "", "null", `{"error":"x (2)"}`, `{"error":"x (10)"}`, `{"error":"x (16)"}`, `{"error":"x (29)"}`, `{"error":"x (38)"}`,
		`{"error":"Timeout"}`, `{"error":"batched request timeout 3"}`, `{"error":"Failed to get it"}`, `{"error":"Failed to send it"}`,
	} {
		s := newSteam(t, &steaminvtest.Server{
			Inventories: owned(items(15)...), PageSize: 10, Script: map[int]steaminvtest.Reply{2: {Status: 500, Body: body}, 3: {Status: 502, Body: "<html>"}},
		})
		if push, err := s.pull(t); err != nil || len(push.Assets) != 15 || len(s.Paths()) != 4 {
			t.Errorf("%s: got %d assets, %d requests, error %v, want 15 assets after 4 requests", body, len(push.Assets), len(s.Paths()), err)
		}
	}
}

func TestPull_DetectsRepeatedPages(t *testing.T) {
	page := func(ids ...string) steaminvtest.Reply {
		var assets []string
		for _, id := range ids {
			assets = append(assets, `{"assetid":"`+id+`","classid":"1"}`)
		}
		return steaminvtest.Reply{Body: `{"assets":[` + strings.Join(assets, ",") + `],"descriptions":[{"classid":"1","market_hash_name":"A","marketable":1}],` +
			`"more_items":1,"last_assetid":"` + ids[len(ids)-1] + `","total_inventory_count":9,"success":1}`}
	}
	s := newSteam(t, &steaminvtest.Server{Script: map[int]steaminvtest.Reply{1: page("1", "2"), 2: page("3"), 3: page("1", "2"), 4: page("3")}})
	if _, err := s.pull(t); code(err) != "inventory_unavailable" || len(s.Paths()) != 3 {
		t.Errorf("got error %v after %d requests, want inventory_unavailable after 3", err, len(s.Paths()))
	}
	changed := page("2")
	changed.Body = strings.Replace(changed.Body, ":9", ":8", 1)
	s = newSteam(t, &steaminvtest.Server{Script: map[int]steaminvtest.Reply{1: page("1"), 2: changed}})
	if _, err := s.pull(t); code(err) != "inventory_unavailable" || len(s.Paths()) != 2 {
		t.Errorf("changed total: got error %v after %d requests, want inventory_unavailable after 2", err, len(s.Paths()))
	}
}

func TestPull_SendsNoRequestsDuringABlock(t *testing.T) {
	s := newSteam(t, &steaminvtest.Server{Inventories: owned(items(30)...), PageSize: 10, Script: map[int]steaminvtest.Reply{2: {Status: 429, Body: "null"}}})
	for range 3 {
		push, err := s.pull(t)
		if f := fault.Of(err); f == nil || f.Code != "steam_throttled" || f.RetryAfter < 9*time.Minute || push.Assets != nil {
			t.Errorf("got %d assets, error %v, want steam_throttled", len(push.Assets), err)
		}
	}
	if n := len(s.Paths()); n != 2 {
		t.Errorf("got %d requests, want 2: none during the block", n)
	}
}

func TestPull_RetriesTransportFaults(t *testing.T) {
	for _, c := range []struct {
		fault  providertest.Fault
		always string // code of the error if all requests fail
	}{
		{providertest.Reset(), "inventory_unavailable"},
		{providertest.CutBody(), "inventory_unavailable"},
		{providertest.CutChunks(), "inventory_unavailable"},
		{providertest.CutGzip(), "inventory_unavailable"},
		{providertest.Status(http.StatusBadGateway), "inventory_unavailable"},
		{providertest.Status(http.StatusServiceUnavailable), "inventory_unavailable"},
	} {
		t.Run(c.fault.Name, func(t *testing.T) {
			s := newSteam(t, &steaminvtest.Server{Inventories: owned(items(30)...), PageSize: 10})
			s.faults.Next(c.fault)
			if push, err := s.pull(t); err != nil || len(push.Assets) != 30 {
				t.Errorf("one fault: got %d assets, error %v, want 30", len(push.Assets), err)
			}
			s.faults.Always(c.fault)
			if push, err := s.pull(t); code(err) != c.always || push.Assets != nil {
				t.Errorf("permanent fault: got %d assets, error %v, want %s", len(push.Assets), err, c.always)
			}
		})
	}
	t.Run("garbage", func(t *testing.T) {
		s := newSteam(t, &steaminvtest.Server{Inventories: owned(items(3)...)})
		s.faults.Always(providertest.Garbage())
		if _, err := s.pull(t); code(err) != "inventory_unavailable" {
			t.Error(err)
		}
	})
	t.Run("redirect to a private address", func(t *testing.T) {
		s := newSteam(t, &steaminvtest.Server{Inventories: owned(items(3)...)})
		s.faults.Always(providertest.Redirect("http://169.254.169.254/latest/meta-data/"))
		if _, err := s.pull(t); code(err) != "inventory_unavailable" {
			t.Error(err)
		}
	})
	t.Run("connection refused", func(t *testing.T) {
		s := newSteam(t, &steaminvtest.Server{})
		s.puller.BaseURL = providertest.Refused(t)
		if _, err := s.pull(t); code(err) != "inventory_unavailable" {
			t.Error(err)
		}
	})
}

func TestPull_StopsWhenCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := newSteam(t, &steaminvtest.Server{Inventories: owned(items(30)...), PageSize: 10})
	s.Arrived = func(n int, r *http.Request) {
		if n == 2 {
			cancel()
			<-r.Context().Done()
		}
	}
	if _, err := s.puller.Pull(ctx, someone, steaminv.Default()); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want %v", err, context.Canceled)
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
