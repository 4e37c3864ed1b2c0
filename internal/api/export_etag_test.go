package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"assay/internal/view"
)

// TestExport_ETagHasCurrencyAndRates compares the ETags of exports of the same prices in several forms.
func TestExport_ETagHasCurrencyAndRates(t *testing.T) {
	e := &exporter{call: &call{values: values{}}}
	of := view.Export{Change: 7, Version: 9, Currency: "USD"}
	seen := map[string]string{}
	for name, made := range map[string]string{
		"dollars":             e.etag(of, nil, ""),
		"compressed":          e.etag(of, nil, "gzip"),
		"euros":               e.etag(view.Export{Change: 7, Version: 9, Currency: "EUR"}, []byte(`[{"rate":0.9}]`), ""),
		"euros, another rate": e.etag(view.Export{Change: 7, Version: 9, Currency: "EUR"}, []byte(`[{"rate":0.8}]`), ""),
		"a confirmed price":   e.etag(view.Export{Change: 7, Version: 10, Currency: "USD"}, nil, ""),
	} {
		if other, twice := seen[made]; twice {
			t.Errorf("%s and %s have the ETag %s, want different ones", name, other, made)
		}
		seen[made] = name
	}
	if again := e.etag(of, nil, ""); seen[again] != "dollars" {
		t.Errorf("the same export: got a different ETag %s, want the same one again", again)
	}
}

// TestExport_WritesTheSelectedMembers compares the members of both exports with the parameter fields.
func TestExport_WritesTheSelectedMembers(t *testing.T) {
	h := newHarness(t, nil)
	const base = "appId currentPrice currentPriceDecimal marketHashName phase priceCheckedAt priceStatus priceUpdatedAt"
	tags := map[string]string{}
	for fields, want := range map[string]string{
		"":                                 base,
		"average":                          "appId average currentPrice currentPriceDecimal marketHashName phase priceCheckedAt priceStatus priceUpdatedAt",
		"interval,usedMarkets":             "appId currentPrice currentPriceDecimal interval marketHashName phase priceCheckedAt priceStatus priceUpdatedAt usedMarkets",
		"currentPrice":                     "appId currentPrice marketHashName phase",
		"priceStatus,average":              "appId average marketHashName phase priceStatus",
		"marketHashName":                   "appId marketHashName phase",
		"priceUpdatedAt":                   "appId marketHashName phase priceUpdatedAt",
		"priceCheckedAt":                   "appId marketHashName phase priceCheckedAt",
		"currentPriceDecimal":              "appId currentPriceDecimal marketHashName phase",
		"phase,appId,interval":             "appId interval marketHashName phase",
		strings.ReplaceAll(base, " ", ","): base,
	} {
		for _, file := range []string{"snapshot.json", "snapshot.ndjson"} {
			path := "/api/prices/" + file
			if fields != "" {
				path += "?fields=" + fields
			}
			got := h.request("GET", path, "", asPlatform)
			var page struct{ Items []map[string]any }
			text := got.body
			if file == "snapshot.ndjson" {
				text = `{"items":[` + strings.ReplaceAll(strings.TrimSpace(text), "\n", ",") + `]}`
			}
			if err := json.Unmarshal([]byte(text), &page); err != nil || got.StatusCode != http.StatusOK || len(page.Items) == 0 {
				t.Fatalf("%s: got %d, error %v and %s; want prices", path, got.StatusCode, err, got.body)
			}
			complete := slices.MaxFunc(page.Items, func(a, b map[string]any) int { return len(a) - len(b) })
			if members := strings.Join(slices.Sorted(maps.Keys(complete)), " "); members != want {
				t.Errorf("%s: got the members %s, want %s", path, members, want)
			}
			tag := got.Header.Get("ETag")
			if other, twice := tags[tag]; twice {
				t.Errorf("%s and %s have the same ETag, want different ones", path, other)
			}
			tags[tag] = path
		}
	}
	for _, path := range []string{"/api/prices/snapshot.json?fields=median", "/api/prices/snapshot.json?fields=currentPrice,", "/api/prices/items?fields=currentPrice", "/api/prices/changes?fields=phase"} {
		p := h.wantProblem(http.StatusBadRequest, "invalid_parameters", h.request("GET", path, "", asPlatform))
		if got := fmt.Sprint(p.Errors); !strings.Contains(got, "/query/fields") {
			t.Errorf("%s: got the errors %s, want one at /query/fields", path, got)
		}
	}
}
