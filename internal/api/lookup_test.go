package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"assay/internal/apikey"
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

// TestLookup_QueuesOnlyForWriters sends lookups with all kinds of credentials. Queuing needs the scope
// prices:write, and each lookup that queued an item is in the audit log.
func TestLookup_QueuesOnlyForWriters(t *testing.T) {
	h := newHarness(t, trustLoopback)
	reader := h.newKey(apikey.Key{Name: "price-reader", Scopes: []string{"prices:read"}})
	writer := h.newKey(apikey.Key{Name: "price-writer", Scopes: []string{"prices:write"}})
	const unknown, known = `{"marketHashName":"unknown"}`, `{"marketHashName":"` + redline + `"}`
	body := func(item string, queue bool) string {
		return fmt.Sprintf(`{"items":[%s],"queueMissing":%t}`, item, queue)
	}
	for _, c := range []struct {
		credential header
		body       string
		status     int
		actor      string // of the audit entry; empty: no entry
	}{
		{reader, body(unknown, false), 200, ""},
		{reader, body(unknown, true), 403, ""},
		{reader, body(known, true), 403, ""},
		{writer, body(unknown, false), 200, ""},
		{writer, body(known, true), 200, ""},
		{writer, body(unknown, true), 200, "key:price-writer"},
		{asMarket, body(unknown, true), 200, "market"},
		{asPlatform, body(unknown, true), 200, "platform"},
		{asAdmin, body(unknown, true), 200, "admin"},
	} {
		h.exec(`DELETE FROM missing_price`)
		h.exec(`DELETE FROM audit_entry`)
		got := h.request("POST", lookupPath+"?fields=average", c.body, c.credential)
		if got.StatusCode != c.status || c.status == http.StatusForbidden && (got.problem(t).Code != "forbidden" || !strings.Contains(got.body, "prices:write")) {
			t.Errorf("%s with %s: got %d %s, want %d, and prices:write in a refusal", c.body, c.credential, got.StatusCode, got.body, c.status)
		}
		entries := h.auditLog()
		if queued := h.read(`SELECT count(*) FROM missing_price`) != "0"; queued != (c.actor != "") || len(entries) > 1 || queued != (len(entries) == 1) {
			t.Fatalf("%s with %s: got the entries %+v and queued items: %t, want both only with the actor %q", c.body, c.credential, entries, queued, c.actor)
		}
		if c.actor != "" && (entries[0].Actor != c.actor || entries[0].Action != "POST /api/prices/lookup" || entries[0].Target != lookupPath+"?fields=average") {
			t.Errorf("got the entry %+v, want the lookup by %s", entries[0], c.actor)
		}
	}
	if got := h.request("GET", "/api/prices/items", "", writer); got.StatusCode != http.StatusOK {
		t.Errorf("a read with prices:write: got status %d, want 200", got.StatusCode)
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
