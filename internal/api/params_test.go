package api

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/view"
)

func TestServe_RefusesWrongParameters(t *testing.T) {
	h := startServer(t, nil)
	for query, pointers := range map[string][]string{
		"refresh?force=banana":               {"/query/force"},
		"refresh?force=2":                    {"/query/force"},
		"refresh?force=TRUE":                 {"/query/force"},
		"refresh?force":                      {"/query/force"},
		"refresh?force=1&force=1":            {"/query/force"},
		"refresh?forced=1":                   {"/query/forced"},
		"refresh?Force=1":                    {"/query/Force"},
		"refresh?force=x&dryRun=y&z~%2F=1":   {"/query/force", "/query/dryRun", "/query/z~0~1"},
		"jobs?limit=0":                       {"/query/limit"},
		"jobs?limit=1001":                    {"/query/limit"},
		"jobs?limit=+5":                      {"/query/limit"},
		"jobs?limit=1e2":                     {"/query/limit"},
		"jobs?kind=Bulk":                     {"/query/kind"},
		"jobs?cursor=" + repeatX(1025):       {"/query/cursor"},
		"jobs?cursor=%ff":                    {"/query/cursor"},
		"jobs/17/items?state=done":           {"/query/state"},
		"jobs?" + repeatX(5000) + "=1":       {"/query/" + repeatX(64)},
		"items/x/accept?phase=Phase+5":       {"/query/phase"},
		"items/x/accept?appId=0":             {"/query/appId"},
		"items/x/accept?appId=2147483648":    {"/query/appId"},
		"items/" + repeatX(513) + "/accept":  {"/path/name"},
		"items/%00/accept":                   {"/path/name"},
		"items/%ff/accept":                   {"/path/name"},
		"items//accept":                      {"/path/name"},
		"items/x/accept?name=":               {"/query/name"},
		"items/x/accept?name=a&name=b":       {"/query/name"},
		"items/x/accept?q=a&cursor=b&page=1": {"/query/cursor", "/query/page", "/query/q"},
	} {
		method := "POST"
		if strings.HasPrefix(query, "jobs") {
			method = "GET"
		}
		p := h.wantProblem(http.StatusBadRequest, "invalid_parameters", h.request(method, "/api/market-prices/"+query, "", asMarket))
		var got []string
		for _, field := range p.Errors {
			got = append(got, field.Pointer)
		}
		if !slices.Equal(got, pointers) {
			t.Errorf("%.60s: got pointers %v, want %v", query, got, pointers)
		}
	}
	for _, query := range []string{"?force=1;dryRun=1", "?force=%zz"} {
		h.wantProblem(http.StatusBadRequest, "invalid_parameters", h.request("POST", "/api/market-prices/refresh"+query, "", asMarket))
	}
	h.wantProblem(http.StatusBadRequest, "invalid_parameters", h.request("GET", "/api/inventory/"+repeatX(10_000), "", asPlatform))
	h.wantProblem(http.StatusBadRequest, "invalid_parameters", h.request("GET", "/api/inventory/", "", asPlatform))
	for _, currency := range []string{"usd", "XX", "", "USDX", "U%20D"} {
		h.wantProblem(http.StatusBadRequest, "invalid_parameters", h.request("GET", "/api/listings?currency="+currency, "", asPlatform))
	}
}

// TestServe_NamesTheErrorOfATime sends times with an error to routes of prices.
func TestServe_NamesTheErrorOfATime(t *testing.T) {
	h := newHarness(t, nil)
	item := "/api/prices/items/" + url.PathEscape(redline)
	later := h.clock.Now().Add(6 * time.Minute).UTC().Format(time.RFC3339)
	for query, want := range map[string]string{
		"/at?time=tomorrow":                                          "/query/time must be an RFC 3339 time",
		"/at?time=1969-12-31T23:59:59Z":                              "/query/time must be a time of the years 1970 to 9999",
		"/at?time=9999-12-31T23:59:59Z":                              "/query/time must not be in the future",
		"/at?time=" + later:                                          "/query/time must not be in the future",
		"/history?from=" + later:                                     "/query/from must not be in the future",
		"/history?from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z": "/query/from must not be after to",
		"/history?market=nowhere":                                    "/query/market must be the key of a market",
	} {
		p := h.wantProblem(http.StatusBadRequest, "invalid_parameters", h.request("GET", item+query, "", asPlatform))
		if len(p.Errors) != 1 || !strings.HasPrefix(p.Errors[0].Pointer+" "+p.Errors[0].Detail, want) {
			t.Errorf("%s: got the errors %v, want one: %s", query, p.Errors, want)
		}
	}
	if got := h.request("GET", "/api/prices/items?sort=-name", "", asPlatform); got.StatusCode != http.StatusOK {
		t.Errorf("sort=-name: got %d %s, want 200", got.StatusCode, got.body)
	}
}

func repeatX(n int) string { return strings.Repeat("x", n) }

func TestServe_LimitsReportedUnknownParameters(t *testing.T) {
	h := startServer(t, nil)
	var query strings.Builder
	for i := range 500 {
		fmt.Fprintf(&query, "p%d=1&", i)
	}
	p := h.wantProblem(http.StatusBadRequest, "invalid_parameters", h.request("GET", "/api/market-prices/jobs?"+query.String(), "", asMarket))
	if len(p.Errors) != 20 || !strings.Contains(p.Detail, "480 more") {
		t.Errorf("got %d errors, %s; want 20 errors and 480 more", len(p.Errors), p.Detail)
	}
}

// TestServe_PassesParametersToTheServices checks the effect of each parameter.
func TestServe_PassesParametersToTheServices(t *testing.T) {
	h := startServer(t, nil)
	h.must(h.deps.Engine.Cancel(t.Context(), queuedJob))
	h.push("a&b", "a&b")
	for _, c := range []struct {
		method, path, body string
		// want lists parts of the response, separated by " ... ". The response must contain
		// them in this order. It must not contain a part that begins with "-".
		want string
	}{
		{"POST", "/api/market-prices/refresh", "", `"id":"5" ... "forced":false ... "requestedBy":"admin"`},
		{"POST", "/api/market-prices/jobs/5/cancel", "", `"id":"5" ... "state":"cancelled"`},
		{"POST", "/api/market-prices/refresh?force=1", "", `"id":"6" ... "forced":true`},
		{"POST", "/api/market-prices/jobs/6/cancel", "", `"state":"cancelled"`},
		{"POST", "/api/market-prices/refresh?force=true&dryRun=0", "", `"id":"7" ... "forced":true`},
		{"POST", "/api/market-prices/jobs/7/cancel", "", `"state":"cancelled"`},
		{"POST", "/api/market-prices/refresh?force=false&dryRun=true", "", `"started":false,"reason":"dry_run","dryRun":true,"forced":false`},
		{"POST", "/api/market-prices/jobs/3/retry-failed", "", `"id":"8" ... "requestedBy":"admin" ... "retryOf":"3"`},
		{"GET", "/api/market-prices/jobs", "", `"id":"8" ... "id":"1" ... "nextCursor":null`},
		{"GET", "/api/market-prices/jobs?kind=missing", "", `{"items":[{"id":"2" ... "nextCursor":null`},
		{"GET", "/api/market-prices/jobs/1", "", `{"id":"1"`},
		{"GET", "/api/market-prices/jobs/3/items?state=updated&limit=1", "", `{"items":[{"appId":730,"marketHashName":" ... "state":"updated" ... "nextCursor":"`},
		{"POST", "/api/market-prices/providers/price%20list/pause", "", ``},
		{"GET", "/api/market-prices/provider-debug", "", `"provider":"price list" ... "paused":true`},
		{"POST", "/api/market-prices/providers/price%20list/resume", "", ``},
		{"GET", "/api/market-prices/provider-debug", "", `"market":"a b" ... "quarantine":"half`},
		{"POST", "/api/market-prices/providers/sim/accept?market=a+b", "", ``},
		{"GET", "/api/market-prices/provider-debug", "", `-"paused":true ... -"quarantine":"half`},
		{"GET", "/api/prices/items", "", `"AK-47 | Redline" ... "AWP | Asiimov" ... "nextCursor":null`},
		{"GET", "/api/prices/items?q=a%26b", "", `{"items":[{"appId":730,"marketHashName":"a&b" ... "nextCursor":null`},
		{"GET", "/api/prices/items?appId=252490", "", `{"items":[],`},
		{"GET", "/api/prices/items?status=stale", "", `{"items":[],`},
		{"GET", "/api/prices/items?market=shop", "", `{"items":[{"appId":730,"marketHashName":"Hot Rod"`},
		{"GET", "/api/prices/items?minPrice=12.5&maxPrice=1e3", "", `{"items":[{"appId":730,"marketHashName":"AWP | Asiimov"`},
		{"GET", "/api/prices/items?changedSince=2026-10-01T14:00:00.5%2B02:00", "", `{"items":[],`},
		{"GET", "/api/prices/items?updatedSince=2026-10-01T12:00:00Z", "", `AWP | Asiimov`},
		{"GET", "/api/prices/items?updatedSince=2026-10-01T12:00:00.5Z", "", `{"items":[],`},
		{"GET", "/api/prices/items?minDayChange=0.1", "", `{"items":[],`},
		{"GET", "/api/prices/items?sort=-dayChange", "", `"AK-47 | Redline" ... "No Such Item" ... -"dayChange"`},
		{"GET", "/api/prices/items?held=1", "", `{"items":[{"appId":730,"marketHashName":"AK-47 | Redline"`},
		{"GET", "/api/prices/items?sort=-price&fields=average&limit=1", "", `{"items":[{"appId":730,"marketHashName":"AWP | Asiimov" ... "average": ... "nextCursor":"`},
		{"GET", "/api/users/a%2Fb", "", `{"userId":"a/b"`},
		{"GET", "/api/users?prefix=a%2Fb&limit=1", "", `{"items":[{"userId":"a/b"`},
		{"PUT", "/api/users/a%2Fc", `{}`, `{"userId":"a/c","steamId":null,"displayName":null,"leaderboard":true}`},
		{"PUT", "/api/users/u5", `{"steamId":"76561198000000005","displayName":"Änn","leaderboard":false}`, `{"userId":"u5","steamId":"76561198000000005","displayName":"Änn","leaderboard":false}`},
		{"PUT", "/api/users/u5", `{}`, `{"userId":"u5","steamId":null,"displayName":null,"leaderboard":false}`},
		{"DELETE", "/api/users/a%2Fb", "", ``},
		{"GET", "/api/users?prefix=a%2Fb", "", `{"items":[],`},
		{"GET", "/api/trades?from=2026-10-01T12:00:00Z&to=2026-10-01T14:00:00.5%2B02:00", "", `{"items":[{"id":"2" ... {"id":"1"`},
		{"GET", "/api/trades?from=2026-10-01T14:00:00.5%2B02:00", "", `{"items":[],`},
		{"GET", "/api/trades?state=pending", "", `{"items":[{"id":"1"`},
		{"GET", "/api/listings?state=active&limit=1", "", `{"items":[{"id":"2" ... "nextCursor":"`},
		{"POST", "/api/listings/cancel", `{"ids":["2","99","2"]}`, `"id":"2" ... "id":"99" ... "id":"2"`},
		{"GET", "/api/inventory/u1", "", `"assetId":"0" ... "assetId":"7" ... -"usedMarkets"`},
		{"GET", "/api/inventory/u1?appId=730&fields=usedMarkets,interval&limit=1", "", `"interval":{ ... "usedMarkets": ... -"average"`},
		{"GET", "/api/inventory/u1?appId=440", "", `{"items":[],`},
		{"POST", "/api/prices/lookup?fields=average", `{"items":[{"marketHashName":"AWP | Asiimov"}]}`, `"average":`},
		{"POST", "/api/prices/lookup", `{"items":[{"marketHashName":"AWP | Asiimov"}]}`, `"currentPrice":50, ... -"average"`},
	} {
		got := h.request(c.method, c.path, c.body, asAdmin)
		if got.StatusCode >= 300 {
			t.Errorf("%s %s: got status %d: %s; want success", c.method, c.path, got.StatusCode, got.body)
			continue
		}
		rest := got.body
		for part := range strings.SplitSeq(c.want, " ... ") {
			text, unwanted := strings.CutPrefix(part, "-")
			_, after, found := strings.Cut(rest, text)
			if found == unwanted {
				t.Errorf("%s %s: got %s, want %s", c.method, c.path, got.body, c.want)
				break
			}
			if found {
				rest = after
			}
		}
	}
	h.wantProblem(http.StatusNotFound, "job_not_found", h.request("GET", "/api/market-prices/jobs/9223372036854775807", "", asAdmin))
}

// TestServe_PassesCursors reads two pages of a list.
func TestServe_PassesCursors(t *testing.T) {
	h := startServer(t, nil)
	var page view.Page[view.Job]
	h.must(json.Unmarshal([]byte(h.request("GET", "/api/market-prices/jobs?limit=3", "", asMarket).body), &page))
	got := h.request("GET", "/api/market-prices/jobs?limit=3&cursor="+url.QueryEscape(*page.NextCursor), "", asMarket)
	if !strings.HasPrefix(got.body, `{"items":[{"id":"1"`) {
		t.Errorf("got page %s, want one with job 1", got.body)
	}
	h.wantProblem(http.StatusBadRequest, "invalid_cursor", h.request("GET", "/api/market-prices/jobs?cursor=a%2Bb", "", asMarket))
}

func TestServe_KeepsNamesByteForByte(t *testing.T) {
	h := startServer(t, nil)
	names := []string{
		"..", ".", "a//b", "/", "//", "../../etc", "a/../b", "./x", "%2F", "%", "100%", "a?b", "a#b", "a b", " trailing ", "a+b", "a;b", "a&b=c",
		"two\nlines", "tab\t", "★ StatTrak™ Karambit | Doppler", "&lt;", "壱", "e\u0301", "\u00e9", "'\"\\", "-", "accept", strings.Repeat("★", 170),
	}
	var keys []catalog.Key
	for _, name := range names {
		keys = append(keys, catalog.Key{AppID: catalog.CS2, Name: name})
	}
	h.must(h.deps.Inventories.QueueMissing(t.Context(), keys))
	for _, name := range names {
		for _, path := range []string{"/api/prices/items/" + segment(name), "/api/prices/items/?name=" + url.QueryEscape(name), "/api/prices/items/-?name=" + url.QueryEscape(name)} {
			if status, got := h.requestRaw("GET", path); status != http.StatusOK || got.MarketHashName != name {
				t.Errorf("%q by %.80s: got status %d, name %q; want 200, name %q", name, path, status, got.MarketHashName, name)
			}
		}
		// The item is known, but it has no held price.
		if status, got := h.requestRaw("POST", "/api/market-prices/items/"+segment(name)+"/accept"); status != http.StatusConflict || got.Code != "no_candidate" {
			t.Errorf("accept %q: got status %d %s, want 409 no_candidate", name, status, got.Code)
		}
	}
	for _, raw := range []string{"/api/prices/items/..", "/api/prices/items/.", "/api/prices/items/%2e%2e"} { // sent without escaping
		if status, got := h.requestRaw("GET", raw); status != http.StatusOK || !strings.HasPrefix(got.MarketHashName, ".") {
			t.Errorf("%s: got status %d, name %q; want 200 and a name that begins with a dot", raw, status, got.MarketHashName)
		}
	}
}

// segment percent-encodes every byte of a name.
func segment(name string) string {
	var out strings.Builder
	for _, b := range []byte(name) {
		fmt.Fprintf(&out, "%%%02X", b)
	}
	return out.String()
}

// named is the part of a response that shows which item was found.
type named struct{ MarketHashName, Code string }

// requestRaw sends a request with an unchanged target, because http.Client cleans paths.
func (h *harness) requestRaw(method, target string) (status int, got named) {
	h.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(h.url, "http://"))
	h.must(err)
	defer conn.Close()
	fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nConnection: close\r\n\r\n", method, target, adminToken)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	h.must(err)
	defer resp.Body.Close()
	h.must(json.NewDecoder(resp.Body).Decode(&got))
	return resp.StatusCode, got
}

func TestServe_MalformedJobIDsAreNotFound(t *testing.T) {
	h := startServer(t, nil)
	for _, id := range []string{"x", "0", "-1", "017", "1.0", "99999999999999999999", "%20"} {
		h.wantProblem(http.StatusNotFound, "job_not_found", h.request("GET", "/api/market-prices/jobs/"+id, "", asMarket))
	}
}
