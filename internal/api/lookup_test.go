package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"assay/internal/catalog"
	"assay/internal/view"
)

const lookupPath = "/api/prices/lookup"

func TestLookup_KeepsOrderAndDuplicates(t *testing.T) {
	h := startServer(t, nil)
	got := h.request("POST", lookupPath, `{"items":[{"marketHashName":"b"},{"marketHashName":"a","appId":440},{"marketHashName":"b"},
		{"marketHashName":"B ","phase":"Ruby"},{"marketHashName":"b","phase":null}]}`, asPlatform)
	var lookup view.Lookup
	if err := json.Unmarshal([]byte(got.body), &lookup); err != nil || got.StatusCode != http.StatusOK {
		t.Fatalf("got %d %v: %s; want 200", got.StatusCode, err, got.body)
	}
	want := []catalog.Key{{AppID: 730, Name: "b"}, {AppID: 440, Name: "a"}, {AppID: 730, Name: "b"}, {AppID: 730, Name: "B ", Phase: "Ruby"}, {AppID: 730, Name: "b"}}
	var have []catalog.Key
	for _, v := range lookup.Items {
		have = append(have, catalog.Key{AppID: v.AppID, Name: v.MarketHashName, Phase: v.Phase})
	}
	if fmt.Sprint(have) != fmt.Sprint(want) {
		t.Errorf("items of the lookup:\ngot  %v\nwant %v", have, want)
	}
	if lookup.Currency != "USD" {
		t.Errorf("got currency %q, want USD", lookup.Currency)
	}
}

func TestLookup_QueuesItemsWithoutAPriceOnRequest(t *testing.T) {
	h := startServer(t, nil)
	const items = `"items":[{"marketHashName":"` + redline + `"},{"marketHashName":"unknown"},{"marketHashName":"unknown"}]`
	queue := func() (names string) {
		return h.read(`SELECT coalesce(group_concat(name), '') FROM missing_price JOIN item ON item.id = item_id`)
	}
	h.exec(`DELETE FROM missing_price`)
	for body, want := range map[string]string{
		`{` + items + `}`:                                                      "",
		`{` + items + `,"queueMissing":false}`:                                 "",
		`{"queueMissing":true,` + items + `}`:                                  "unknown",
		`{"items":[],"queueMissing":true}`:                                     "",
		`{"items":[{"marketHashName":"` + redline + `"}],"queueMissing":true}`: "",
	} {
		if got := h.request("POST", lookupPath, body, asMarket); got.StatusCode != http.StatusOK {
			t.Fatalf("%s: got status %d: %s; want 200", body, got.StatusCode, got.body)
		}
		if got := queue(); got != want {
			t.Errorf("%s: got queued items %q, want %q", body, got, want)
		}
		h.exec(`DELETE FROM missing_price`)
	}
}

func TestLookup_ReportsEveryFaultOfABody(t *testing.T) {
	h := startServer(t, nil)
	many := func(n int) string {
		return `{"items":[` + strings.TrimSuffix(strings.Repeat(`{"marketHashName":"x"},`, n), ",") + `]}`
	}
	name := func(n int) string { return `{"items":[{"marketHashName":"` + strings.Repeat("n", n) + `"}]}` }
	for _, c := range []struct {
		body     string
		status   int
		pointers string
	}{
		{`{"items":[]}`, 200, ""},
		{many(maxLookup), 200, ""},
		{many(maxLookup + 1), 413, ""},
		{name(catalog.MaxName), 200, ""},
		{name(catalog.MaxName + 1), 400, "/items/0/marketHashName"},
		{`{}`, 400, "/items"},
		{`{"items":null}`, 400, "/items"},
		{`{"items":{}}`, 400, "/items"},
		{`[]`, 400, " /items"},
		{`{"items":[{}]}`, 400, "/items/0/marketHashName"},
		{
			`{"items":[{"marketHashName":""},{"marketHashName":7},{"marketHashName":"a\u0000"},"x"]}`, 400,
			"/items/0/marketHashName /items/1/marketHashName /items/2/marketHashName /items/3",
		},
		{`{"items":[{"marketHashName":"x","phase":"Phase 5"},{"marketHashName":"x","appId":0}]}`, 400, "/items/0/phase /items/1/appId"},
		{`{"items":[{"marketHashName":"x","price":1}],"force":true}`, 400, "/items/0/price /force"},
		{`{"items":[],"queueMissing":1}`, 400, "/queueMissing"},
		{`{"items":[],"items":[]}`, 400, "/items"},
		{"{\"items\":[{\"marketHashName\":\"\xff\"}]}", 400, "/items/0/marketHashName"},
	} {
		got := h.request("POST", lookupPath, c.body, asAdmin)
		if got.StatusCode != c.status {
			t.Errorf("%.60s: got status %d, want %d: %.200s", c.body, got.StatusCode, c.status, got.body)
			continue
		}
		if c.status != http.StatusBadRequest {
			continue
		}
		var pointers []string
		for _, f := range got.problem(t).Errors {
			pointers = append(pointers, f.Pointer)
		}
		if got := strings.Join(pointers, " "); got != c.pointers {
			t.Errorf("%.60s: got faults at %q, want %q", c.body, got, c.pointers)
		}
	}
}
