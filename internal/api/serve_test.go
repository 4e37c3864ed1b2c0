package api

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay/internal/catalog"
	"assay/internal/fault"
	"assay/internal/inventory"
)

// wantProblem checks that a response is a problem with the given status and code. It also
// checks that the request made no calls. It returns the problem.
func (h *harness) wantProblem(status int, code string, got result) fault.Problem {
	h.t.Helper()
	p := got.problem(h.t)
	if p.Status != status || p.Code != code {
		h.t.Errorf("%s %s: got %d %s, want %d %s: %s", got.Request.Method, got.Request.URL, p.Status, p.Code, status, code, got.body)
	}
	if calls := h.fakes.calls(); len(calls) > 0 {
		h.t.Errorf("%s %s: refused request made calls %v, want none", got.Request.Method, got.Request.URL, calls)
	}
	return p
}

func TestServe_RefusesUnknownPathsAndMethods(t *testing.T) {
	h := startServer(t, nil)
	for _, path := range []string{"/api", "/api/", "/api/nothing", "/api/market-prices/status/", "/api//market-prices/status", "/api/market-prices/Status", "/api/prices/items/a/b"} {
		h.wantProblem(http.StatusNotFound, "unknown_path", h.request("GET", path, ""))
	}
	for _, c := range []struct{ method, path, allow string }{
		{"POST", "/api/market-prices/status", "GET, HEAD"},
		{"GET", "/api/market-prices/refresh", "POST"},
		{"POST", "/api/users/u1", "GET, HEAD, PUT, DELETE"},
		{"OPTIONS", "/api/prices/items/x", "GET, HEAD"},
		{"BREW", "/docs", "GET, HEAD"},
	} {
		got := h.request(c.method, c.path, "")
		h.wantProblem(http.StatusMethodNotAllowed, "method_not_allowed", got)
		if got.Header.Get("Allow") != c.allow {
			t.Errorf("Allow: got %s, want %s", got.Header.Get("Allow"), c.allow)
		}
	}
}

func TestServe_LeavesOtherPathsToThePage(t *testing.T) {
	h := startServer(t, nil)
	for _, path := range []string{"/", "/static/x.js", "/apiary", "/docs/"} {
		if got := h.request("GET", path, ""); got.StatusCode != http.StatusOK || got.body != "page "+path {
			t.Errorf("%s: got status %d, %s; want the page", path, got.StatusCode, got.body)
		}
	}
}

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

func TestServe_PassesParametersToTheBackend(t *testing.T) {
	h := startServer(t, nil)
	const anyItems = `{"AppID":730,"Search":"","Status":"","Market":"","Min":0,"Max":0,"ChangedSince":"0001-01-01T00:00:00Z","UpdatedSince":"0001-01-01T00:00:00Z","Held":false,"Sort":"name","Fields":0}`
	for _, c := range []struct{ method, path, body, call string }{
		{"POST", "/api/market-prices/refresh", "", `start[false,"admin"]`},
		{"POST", "/api/market-prices/refresh?force=1", "", `start[true,"admin"]`},
		{"POST", "/api/market-prices/refresh?force=true&dryRun=0", "", `start[true,"admin"]`},
		{"POST", "/api/market-prices/refresh?force=false&dryRun=true", "", `dryRun[false]`},
		{"GET", "/api/market-prices/jobs", "", `jobs["","",100]`},
		{"GET", "/api/market-prices/jobs?kind=missing&cursor=a%2Bb&limit=1000", "", `jobs["missing","a+b",1000]`},
		{"GET", "/api/market-prices/jobs/9223372036854775807", "", `job[9223372036854775807]`},
		{"GET", "/api/market-prices/jobs/17/items?state=noQuote&limit=1", "", `jobItems[17,"noQuote","",1]`},
		{"POST", "/api/market-prices/jobs/17/cancel", "", `cancel[17]`},
		{"POST", "/api/market-prices/jobs/17/retry-failed", "", `retryFailed[17,"admin"]`},
		{"POST", "/api/market-prices/providers/price%20list/pause", "", `pause["price list"]`},
		{"POST", "/api/market-prices/providers/sim/resume", "", `resume["sim"]`},
		{"POST", "/api/market-prices/providers/sim/accept", "", `acceptSource["sim",""]`},
		{"POST", "/api/market-prices/providers/sim/accept?market=a+b", "", `acceptSource["sim","a b"]`},
		{"GET", "/api/prices/items", "", `items[` + anyItems + `,"",100]`},
		{
			"GET", "/api/prices/items?appId=252490&q=a%26b&status=stale&market=steam&minPrice=0.5&maxPrice=1e3&changedSince=2026-01-31T12:00:00Z&updatedSince=2026-02-01T02:00:00.5%2B02:00&held=1&sort=-price&fields=average&cursor=c&limit=7", "",
			`items[{"AppID":252490,"Search":"a\u0026b","Status":"stale","Market":"steam","Min":0.5,"Max":1000,"ChangedSince":"2026-01-31T12:00:00Z","UpdatedSince":"2026-02-01T02:00:00.5+02:00","Held":true,"Sort":"-price","Fields":2},"c",7]`,
		},
		{"GET", "/api/users/a%2Fb", "", `user["a/b"]`},
		{"GET", "/api/users?prefix=a%2Fb&limit=1", "", `users["a/b","",1]`},
		{"PUT", "/api/users/a%2Fb", `{}`, `putUser[{"ID":"a/b","SteamID":"","DisplayName":"","Leaderboard":true,"KeepLeaderboard":true}]`},
		{"PUT", "/api/users/u1", `{"steamId":"76561198000000001","displayName":"Änn","leaderboard":false}`, `putUser[{"ID":"u1","SteamID":"76561198000000001","DisplayName":"Änn","Leaderboard":false,"KeepLeaderboard":false}]`},
		{"DELETE", "/api/users/a%2Fb", "", `deleteUser["a/b"]`},
		{
			"GET", "/api/trades?from=2026-01-31T12:00:00Z&to=2026-02-01T02:00:00.5%2B02:00", "",
			`trades[{"UserID":"","AppID":0,"State":"","From":"2026-01-31T12:00:00Z","To":"2026-02-01T02:00:00.5+02:00"},"",100]`,
		},
		{"POST", "/api/listings/cancel", `{"ids":["3","1","3"]}`, `cancelListings[[3,1,3]]`},
		{"GET", "/api/inventory/u1", "", `inventory["u1",0,0,"",100]`},
		{"GET", "/api/inventory/u1?appId=730&fields=usedMarkets,interval", "", `inventory["u1",730,5,"",100]`},
		{"POST", "/api/prices/lookup?fields=average", `{"items":[]}`, `lookup[null,2]`},
		{"POST", "/api/prices/lookup", `{"items":[]}`, `lookup[null,0]`},
	} {
		got := h.request(c.method, c.path, c.body, asAdmin)
		if got.StatusCode >= 300 {
			t.Errorf("%s: got status %d: %s; want success", c.path, got.StatusCode, got.body)
		}
		if calls := h.fakes.calls(); len(calls) == 0 || calls[0] != c.call {
			t.Errorf("%s: got calls %v, want %s first", c.path, calls, c.call)
		}
	}
}

// A write must not need an admission slot to read its own result. Otherwise a successful
// write gets 503, and its retry gets 409.
func TestServe_WritesNeedNoReadSlot(t *testing.T) {
	h := startServer(t, nil)
	h.fakes.set(func(f *fakes) { f.noSlot = true })
	if got := h.request("GET", "/api/prices/items/x", "", asAdmin); got.StatusCode != http.StatusServiceUnavailable {
		t.Fatalf("read without a slot: got %d, want 503", got.StatusCode)
	}
	for _, c := range []struct{ method, path, body string }{
		{"POST", "/api/market-prices/refresh", ""},
		{"POST", "/api/market-prices/jobs/17/cancel", ""},
		{"POST", "/api/market-prices/jobs/17/retry-failed", ""},
		{"POST", "/api/market-prices/providers/sim/accept", ""},
		{"POST", "/api/market-prices/items/x/accept", ""},
		{"PUT", "/api/users/u1", `{}`},
		{"POST", "/api/listings/cancel", `{"ids":["3"]}`},
		{"DELETE", "/api/listings/17", ""},
		{"PATCH", "/api/listings/17", `{"price":100}`},
		{"POST", "/api/trades/3/complete", ""},
		{"POST", "/api/trades/3/reverse", ""},
		{"POST", "/api/functions/admin/payment-fee-rules/refresh", ""},
		{"POST", "/api/functions/admin/payment-fee-rules/rollback?version=1", ""},
	} {
		if got := h.request(c.method, c.path, c.body, asAdmin); got.StatusCode >= 300 {
			t.Errorf("%s %s: got %d %s, want success", c.method, c.path, got.StatusCode, got.body)
		}
	}
}

func TestServe_KeepsNamesByteForByte(t *testing.T) {
	h := startServer(t, nil)
	names := []string{
		"..", ".", "a//b", "/", "//", "../../etc", "a/../b", "./x", "%2F", "%", "100%", "a?b", "a#b", "a b", " trailing ", "a+b", "a;b", "a&b=c",
		"two\nlines", "tab\t", "★ StatTrak™ Karambit | Doppler", "&lt;", "壱", "e\u0301", "\u00e9", "'\"\\", "-", "accept", strings.Repeat("★", 170),
	}
	for _, name := range names {
		want := fmt.Sprintf("%+v", catalog.Key{AppID: 730, Name: name})
		for _, path := range []string{"/api/prices/items/" + segment(name), "/api/prices/items/?name=" + url.QueryEscape(name), "/api/prices/items/-?name=" + url.QueryEscape(name)} {
			if status, key := h.requestRaw("GET", path); status != http.StatusOK || key != want {
				t.Errorf("%q by %.80s: got status %d, key %s; want 200, key %s", name, path, status, key, want)
			}
		}
		if status, key := h.requestRaw("POST", "/api/market-prices/items/"+segment(name)+"/accept"); status != http.StatusOK || key != want {
			t.Errorf("accept %q: got status %d, key %s; want 200, key %s", name, status, key, want)
		}
	}
	for _, raw := range []string{"/api/prices/items/..", "/api/prices/items/.", "/api/prices/items/%2e%2e"} { // sent without escaping
		if status, key := h.requestRaw("GET", raw); status != http.StatusOK || !strings.Contains(key, "Name:.") {
			t.Errorf("%s: got status %d, key %s; want 200 and a name that begins with a dot", raw, status, key)
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

// requestRaw sends a request with an unchanged target, because http.Client cleans paths. It
// returns the status and the key that the handler received.
func (h *harness) requestRaw(method, target string) (status int, key string) {
	h.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(h.url, "http://"))
	if err != nil {
		h.t.Fatal(err)
	}
	defer conn.Close()
	h.fakes.set(func(f *fakes) { f.lastKey = catalog.Key{} })
	fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nConnection: close\r\n\r\n", method, target, adminToken)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	h.fakes.mu.Lock()
	defer h.fakes.mu.Unlock()
	return resp.StatusCode, fmt.Sprintf("%+v", h.fakes.lastKey)
}

func TestServe_RespondsToStarts(t *testing.T) {
	h := startServer(t, nil)
	got := h.request("POST", "/api/market-prices/refresh", "", asMarket)
	if got.StatusCode != http.StatusAccepted || got.Header.Get("Location") != "/api/market-prices/jobs/17" || !strings.HasPrefix(got.body, `{"started":true,"job":{"id":"17","kind":"bulk"`) {
		t.Errorf("got status %d, %v, %s; want 202 with the new job", got.StatusCode, got.Header, got.body)
	}
	for _, c := range []struct {
		forced  bool // true if the running job is forced
		query   string
		ignored bool
	}{{false, "", false}, {false, "?force=1", true}, {true, "?force=1", false}, {true, "", false}} {
		h.fakes.set(func(f *fakes) { f.running, f.forced = true, c.forced })
		got := h.request("POST", "/api/market-prices/refresh"+c.query, "", asMarket)
		want := fmt.Sprintf(`{"started":false,"reason":"already_running","forcedIgnored":%v,"job":{"id":"17"`, c.ignored)
		if got.StatusCode != http.StatusOK || !strings.HasPrefix(got.body, want) || got.Header.Get("Location") != "" {
			t.Errorf("got status %d, %s; want 200, %s", got.StatusCode, got.body, want)
		}
	}
}

func TestServe_MalformedJobIDsAreNotFound(t *testing.T) {
	h := startServer(t, nil)
	for _, id := range []string{"x", "0", "-1", "017", "1.0", "99999999999999999999", "%20"} {
		h.wantProblem(http.StatusNotFound, "job_not_found", h.request("GET", "/api/market-prices/jobs/"+id, "", asMarket))
	}
}

func TestServe_AcceptsAnEmptyObjectAsNoBody(t *testing.T) {
	h := startServer(t, nil)
	for _, op := range h.api.routes.operations {
		path, body := example(op)
		if body != "" || op.method == "GET" {
			continue
		}
		for _, empty := range []string{`{}`, " { }\n"} {
			if got := h.request(op.method, path, empty, asAdmin); got.StatusCode >= 300 {
				t.Errorf("%s %s with %q: got %d %s, want success", op.method, path, empty, got.StatusCode, got.body)
			}
		}
	}
	if got := h.request("POST", "/api/inventory/u1/sync?source=steam", `{}`, asAdmin); got.StatusCode != http.StatusOK {
		t.Errorf("pull from Steam: got %d %s, want 200", got.StatusCode, got.body)
	}
}

func TestServe_RefusesUnexpectedBodies(t *testing.T) {
	h := startServer(t, nil)
	const refresh, user, sync = "/api/market-prices/refresh", "/api/users/u1", "/api/inventory/u1/sync"
	h.wantProblem(400, "unexpected_body", h.request("POST", refresh, `{"force":true}`, asAdmin))
	h.wantProblem(400, "unexpected_body", h.request("POST", sync+"?source=steam", `{"items":[]}`, asAdmin))
	for _, text := range []string{`[]`, `null`, `{}{}`, `{"a":1}`, `{}` + strings.Repeat(" ", 100) + `1`, `{`, `""`} {
		h.wantProblem(400, "unexpected_body", h.request("POST", refresh, text, asAdmin))
	}
	h.wantProblem(400, "body_required", h.request("PUT", user, "", asAdmin))
	h.wantProblem(400, "body_required", h.request("POST", sync, "", asAdmin))
	h.wantProblem(400, "invalid_parameters", h.request("POST", sync+"?appId=730", `{}`, asAdmin))
	h.wantProblem(400, "invalid_parameters", h.request("POST", sync+"?contextId=2", "", asAdmin))
	h.wantProblem(400, "invalid_parameters", h.request("POST", sync+"?provider=other", "", asAdmin))
	for _, media := range []string{"text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin1", "application/problem+json", "rubbish;;", ""} {
		h.wantProblem(415, "unsupported_media_type", h.request("PUT", user, `{}`, asAdmin, header("Content-Type: "+media)))
	}
	h.wantProblem(415, "unsupported_encoding", h.request("PUT", user, `{}`, asAdmin, "Content-Encoding: gzip"))
	if got := h.request("PUT", user, `{}`, asAdmin, "Content-Type: application/json;charset=UTF-8"); got.StatusCode != http.StatusOK {
		t.Errorf("charset utf-8: got status %d, want 200", got.StatusCode)
	}
}

func TestServe_RefusesWrongBodies(t *testing.T) {
	h := startServer(t, nil)
	for body, c := range map[string]struct{ code, pointer string }{
		`{"steamId":"76561198000000001","steamId":null}`: {"invalid_json", "/steamId"},
		"{\"displayName\":\"\xff\"}":                     {"invalid_json", "/displayName"},
		`{"displayName":"x"`:                             {"invalid_json", ""},
		`{"displayName":"x"} {}`:                         {"invalid_json", ""},
		`[]`:                                             {"invalid_body", ""},
		`null`:                                           {"invalid_body", ""},
		`{"DisplayName":"x"}`:                            {"invalid_body", "/DisplayName"},
		`{"admin":true}`:                                 {"invalid_body", "/admin"},
		`{"steamId":76561198000000001}`:                  {"invalid_body", "/steamId"},
		`{"steamId":"STEAM_0:1:1"}`:                      {"invalid_body", "/steamId"},
		`{"steamId":"7656119800000000٣"}`:                {"invalid_body", "/steamId"},
		`{"displayName":""}`:                             {"invalid_body", "/displayName"},
		`{"displayName":"a\nb"}`:                         {"invalid_body", "/displayName"},
		`{"displayName":"` + repeatX(257) + `"}`:         {"invalid_body", "/displayName"},
		`{"leaderboard":null}`:                           {"invalid_body", "/leaderboard"},
		`{"leaderboard":"true"}`:                         {"invalid_body", "/leaderboard"},
	} {
		p := h.wantProblem(http.StatusBadRequest, c.code, h.request("PUT", "/api/users/u1", body, asPlatform))
		if c.pointer != "" && (len(p.Errors) != 1 || p.Errors[0].Pointer != c.pointer) {
			t.Errorf("%s: got errors %v, want one at %s", body, p.Errors, c.pointer)
		}
	}
	p := h.wantProblem(http.StatusBadRequest, "invalid_body", h.request("POST", "/api/inventory/u1/sync",
		`{"appId":730,"contextId":2,"snapshotAt":"2026-01-01T00:00:00Z","items":[{"assetId":"1","marketHashName":"x"},{"assetId":"1","marketHashName":"x"}]}`, asPlatform))
	if len(p.Errors) != 2 || p.Errors[0].Pointer != "/contextId" || p.Errors[1].Pointer != "/items/1/assetId" {
		t.Errorf("got errors %v, want /contextId and /items/1/assetId", p.Errors)
	}
}

func TestServe_AcceptsAPush(t *testing.T) {
	h := startServer(t, nil)
	got := h.request("POST", "/api/inventory/u1/sync", `{"appId":730,"contextId":"2","snapshotAt":"2026-01-01T00:00:00Z","items":[{"assetId":"1","marketHashName":"a b "}]}`, asPlatform)
	if got.StatusCode != http.StatusOK || got.body != `{"added":1,"removed":0,"changed":0,"unchanged":0,"pricedRows":0,"queuedNames":0}` {
		t.Errorf("got status %d, %s; want 200 and one added asset", got.StatusCode, got.body)
	}
	if a := h.fakes.push.Assets; len(a) != 1 || a[0].Name != "a b " || h.fakes.push.ContextID != "2" {
		t.Errorf("got push %+v, want the asset %q in context 2", h.fakes.push, "a b ")
	}
	many := strings.NewReader(`{"appId":730,"contextId":"2","snapshotAt":"2026-01-01T00:00:00Z","items":[` + strings.Repeat(`{},`, inventory.MaxItems) + `{}]}`)
	r, _ := http.NewRequest("POST", h.url+"/api/inventory/u1/sync", many)
	r.Header.Set("Authorization", "Bearer "+platformToken)
	r.Header.Set("Content-Type", "application/json")
	h.fakes.calls()
	h.wantProblem(http.StatusRequestEntityTooLarge, "too_many_items", h.send(r))
}

// endless is a JSON body with an endless list. It counts the bytes read.
type endless struct {
	head string
	read int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.head)
	e.head = e.head[n:]
	for i := n; i < len(p); i++ {
		p[i] = "1,"[(e.read+i)&1]
	}
	e.read += len(p)
	return len(p), nil
}

func TestServe_RefusesLargeBodiesUnread(t *testing.T) {
	const size = 200 << 20
	h := startServer(t, nil)
	for _, c := range []struct {
		path  string
		limit int64
	}{{"/api/users/u1", maxBody}, {"/api/inventory/u1/sync", maxPush}, {"/api/market-prices/refresh", maxBody}} {
		for _, known := range []bool{true, false} {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			sent := &endless{head: `{"rubbish":[`}
			method := "POST"
			if strings.Contains(c.path, "users") {
				method = "PUT"
			}
			r, _ := http.NewRequest(method, h.url+c.path, io.LimitReader(sent, size))
			if known {
				r.ContentLength = size
			}
			r.Header.Set("Authorization", "Bearer "+adminToken)
			r.Header.Set("Content-Type", "application/json")
			got := h.send(r)
			if c.limit == maxBody && !known && strings.Contains(c.path, "refresh") {
				h.wantProblem(http.StatusBadRequest, "unexpected_body", got)
			} else if h.wantProblem(http.StatusRequestEntityTooLarge, "body_too_large", got); !known && int64(sent.read) > c.limit+8<<20 {
				t.Errorf("%s: got %d bytes read, want at most %d", c.path, sent.read, c.limit+8<<20)
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 8<<20 {
				t.Errorf("%s: got %d more heap bytes, want at most %d", c.path, grown, 8<<20)
			}
		}
	}
}

func TestServe_ReadsNoBodyWithoutACredential(t *testing.T) {
	h := startServer(t, nil)
	sent := &endless{head: "{"}
	r, _ := http.NewRequest("POST", h.url+"/api/inventory/u1/sync", io.LimitReader(sent, 200<<20))
	r.Header.Set("Content-Type", "application/json")
	h.wantProblem(http.StatusUnauthorized, "unauthorized", h.send(r))
	if sent.read > 16<<20 {
		t.Errorf("got %d bytes read, want at most %d", sent.read, 16<<20)
	}
}

func TestServe_AcceptsShortPrintableRequestIDs(t *testing.T) {
	h := startServer(t, nil)
	for id, accepted := range map[string]bool{"abc-123": true, "with space": true, repeatX(128): true, repeatX(129): false, "ünprintable": false, "tab\tbed": false, "": false} {
		got := h.request("GET", "/api/health", "", header("X-Request-Id: "+id))
		given := got.Header.Get("X-Request-Id")
		if (given == id) != accepted || given == "" || len(given) > maxRequestID {
			t.Errorf("%q: got request id %q, want the sent one: %v", id, given, accepted)
		}
		if !strings.Contains(h.log.String(), fmt.Sprintf(`"request_id":%q`, given)) {
			t.Errorf("the log does not contain %q", given)
		}
	}
}

func TestServe_LogsNoClientInput(t *testing.T) {
	const sent = "words-that-were-sent"
	h := startServer(t, nil)
	h.request("GET", "/api/prices/items/"+sent+"?appId=730&name="+sent, "", asMarket, "User-Agent: "+sent)
	h.request("GET", "/api/"+sent+"?secret="+sent, "", asMarket)
	h.request(sent, "/"+sent, "", asMarket)
	h.request("PUT", "/api/users/u1", `{"`+sent+`":"`+sent+`"}`, asPlatform)
	log := h.log.String()
	for _, want := range []string{
		`"method":"GET","route":"/api/prices/items/{name}","status":200,"duration_ms":`, `"route":"unknown","status":404`,
		`"method":"other","route":"page","status":200`, `"route":"/api/users/{userId}","status":400`,
	} {
		if !strings.Contains(log, want) {
			t.Errorf("got log %s, want %s in it", log, want)
		}
	}
	if strings.Contains(log, sent) {
		t.Errorf("the log contains client input: %s", log)
	}
}

func TestServe_HidesInternalErrors(t *testing.T) {
	h := startServer(t, nil)
	h.fakes.set(func(f *fakes) { f.err = errors.New("SELECT secret FROM t: /var/db broke") })
	for _, op := range h.api.routes.operations {
		path, body := example(op)
		got := h.request(op.method, path, body, asAdmin)
		if strings.Contains(got.body, "SELECT") || strings.Contains(got.body, "/var") {
			t.Errorf("%s %s: the response contains the error: %s", op.method, op.path, got.body)
		}
		if slices.Contains(op.faults, 500) {
			if p := got.problem(t); p.Status != 500 || p.Code != "internal_error" {
				t.Errorf("%s %s: got %d %s, want 500 internal_error", op.method, op.path, p.Status, p.Code)
			}
		}
	}
	id := h.request("GET", "/api/market-prices/status", "", asAdmin).Header.Get("X-Request-Id")
	if n := strings.Count(h.log.String(), `"request_id":"`+id+`","error":"SELECT secret`); n != 1 {
		t.Errorf("got %d log lines with the error, want 1", n)
	}
}

func TestServe_RespondsAfterAPanic(t *testing.T) {
	h := startServer(t, nil)
	for _, value := range []any{"a " + wrongSecret, errors.New(wrongSecret), fmt.Errorf("%w", fault.New(fault.Invalid, "x", "%s", wrongSecret))} {
		h.fakes.set(func(f *fakes) { f.panics = value })
		got := h.request("GET", "/api/market-prices/status", "", asAdmin)
		if p := got.problem(t); p.Status != 500 || p.Code != "internal_error" {
			t.Errorf("got status %d: %s; want 500 internal_error", got.StatusCode, got.body)
		}
		if n := strings.Count(h.log.String(), `"handler panicked","method":"GET","route":"/api/market-prices/status","request_id":"`+got.Header.Get("X-Request-Id")); n != 1 {
			t.Errorf("got %d log lines with the panic, want 1", n)
		}
	}
}

func TestServe_ClosesTheConnectionAfterALatePanic(t *testing.T) {
	h := startServer(t, func(d *Deps) {
		d.Page = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			panic("after the header")
		})
	})
	resp, err := http.Get(h.url + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("got a complete response %s, want a read error", body)
	}
}

func TestServe_EncodesTimesInUTCAndListsNeverNull(t *testing.T) {
	h := startServer(t, nil)
	got := h.request("GET", "/api/market-prices/jobs", "", asMarket)
	for _, want := range []string{`"createdAt":"2026-10-01T12:00:00.123456Z"`, `"deferred":[]`, `"finishedAt":null`, `"nextCursor":"n"`} {
		if !strings.Contains(got.body, want) {
			t.Errorf("got %s, want %s in it", got.body, want)
		}
	}
	got = h.request("GET", "/api/prices/items/a%26b%3Cc", "", asMarket)
	if !strings.Contains(got.body, `"marketHashName":"a&b<c"`) || !strings.Contains(got.body, `"currentPrice":12.345`) {
		t.Errorf("got %s, want an unescaped name and the price 12.345", got.body)
	}
}

func TestServe_SetsSecurityHeaders(t *testing.T) {
	h := startServer(t, nil)
	for _, path := range []string{"/api/market-prices/status", "/api/nothing", "/api/health", "/"} {
		got := h.request("GET", path, "", asMarket)
		for name, want := range map[string]string{
			"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
		} {
			if got.Header.Get(name) != want {
				t.Errorf("%s: %s: got %q, want %q", path, name, got.Header.Get(name), want)
			}
		}
	}
}

func TestServe_SendsNoBodyForHEAD(t *testing.T) {
	h := startServer(t, nil)
	got := h.request("HEAD", "/api/market-prices/status", "", asMarket)
	if got.StatusCode != http.StatusOK || got.body != "" || got.ContentLength < 10 {
		t.Errorf("got status %d, length %d, body %q; want 200, a length, no body", got.StatusCode, got.ContentLength, got.body)
	}
}

func TestServe_SendsRetryAfter(t *testing.T) {
	h := startServer(t, nil)
	h.fakes.set(func(f *fakes) {
		f.err = fmt.Errorf("sync: %w", fault.New(fault.Unavailable, "store_busy", "The store is busy."))
	})
	got := h.request("GET", "/api/market-prices/status", "", asMarket)
	if p := got.problem(t); p.Status != 503 || p.Code != "store_busy" || p.Detail != "The store is busy." || got.Header.Get("Retry-After") != "5" {
		t.Errorf("got %s, %v; want 503 store_busy with Retry-After", got.body, got.Header)
	}
}

func TestServe_SendsNoRetryAfterForPermanentFailures(t *testing.T) {
	h := startServer(t, nil)
	h.fakes.set(func(f *fakes) {
		f.err = fmt.Errorf("balance: %w", fault.New(fault.Damaged, "ledger_tampered", "Verify the ledger."))
	})
	got := h.request("GET", "/api/functions/admin/wallet-ledger/u1/balance", "", asAdmin)
	if p := got.problem(t); p.Status != 503 || p.Code != "ledger_tampered" || got.Header.Get("Retry-After") != "" {
		t.Errorf("got %s, %v; want 503 ledger_tampered without Retry-After", got.body, got.Header)
	}
	if !strings.Contains(h.log.String(), "request failed") {
		t.Error("the failure is not logged")
	}
}

func TestTopTraders_CanBeCached(t *testing.T) {
	h := startServer(t, nil)
	got := h.request("GET", "/api/community/top-traders?period=7d&by=trades&limit=5", "")
	if got.StatusCode != http.StatusOK || !strings.HasPrefix(got.body, `{"items":[{"rank":1,"displayName":"anonymous",`) || got.Header.Get("Cache-Control") != "public, max-age=10" || got.Header.Get("Age") != "3" {
		t.Errorf("got status %d, %v, %s; want 200 with max-age 10 and age 3", got.StatusCode, got.Header, got.body)
	}
	etag := got.Header.Get("ETag")
	for _, match := range []string{etag, "W/" + etag, `"x", ` + etag, "*"} {
		if got := h.request("GET", "/api/community/top-traders", "", header("If-None-Match: "+match)); got.StatusCode != http.StatusNotModified || got.body != "" {
			t.Errorf("%s: got status %d, want 304", match, got.StatusCode)
		}
	}
	h.fakes.calls()
	for _, query := range []string{"period=1d", "by=profit", "limit=101", "limit=0", "cursor=x"} {
		h.wantProblem(http.StatusBadRequest, "invalid_parameters", h.request("GET", "/api/community/top-traders?"+query, ""))
	}
}

func TestServer_LimitsTimesAndHeaders(t *testing.T) {
	s := NewServer(http.NotFoundHandler(), startServer(t, nil).api.Logger)
	for name, d := range map[string]time.Duration{"header": s.ReadHeaderTimeout, "read": s.ReadTimeout, "write": s.WriteTimeout, "idle": s.IdleTimeout} {
		if d <= 0 || d > 5*time.Minute {
			t.Errorf("%s: got timeout %v, want from 0 to 5m", name, d)
		}
	}
	if s.MaxHeaderBytes <= 0 || s.MaxHeaderBytes > 1<<20 {
		t.Errorf("got a header limit of %d bytes, want at most 1 MiB", s.MaxHeaderBytes)
	}
}

func TestServe_AllowsOtherSitesOnlyPublicData(t *testing.T) {
	h := startServer(t, nil)
	const origin header = "Origin: https://elsewhere.example"
	for _, op := range h.api.routes.operations {
		shared := op.path == "/api/community/top-traders" || op.path == "/openapi.json"
		path, body := example(op)
		got := h.request(op.method, path, body, asAdmin, origin)
		if (got.Header.Get("Access-Control-Allow-Origin") == "*") != shared || (got.Header.Get("Cross-Origin-Resource-Policy") == "cross-origin") != shared {
			t.Errorf("%s %s: got headers %v, want shared: %v", op.method, op.path, got.Header, shared)
		}
		if got.Header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s %s allows credentials", op.method, op.path)
		}
		preflight := h.request("OPTIONS", path, "", origin, "Access-Control-Request-Method: "+header(op.method))
		if preflight.StatusCode != http.StatusMethodNotAllowed || preflight.Header.Get("Access-Control-Allow-Methods") != "" {
			t.Errorf("preflight of %s %s: got %d %v, want 405", op.method, op.path, preflight.StatusCode, preflight.Header)
		}
	}
	h.fakes.set(func(f *fakes) { f.err = fault.New(fault.Unavailable, "ranking_not_ready", "Later.") })
	if got := h.request("GET", "/api/community/top-traders", "", origin); got.StatusCode != 503 || got.Header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("refusal: got %d %v, want 503 with CORS", got.StatusCode, got.Header)
	}
}

func TestServe_CountsRequestsByPattern(t *testing.T) {
	h := startServer(t, nil)
	for i := range 50 {
		h.request("GET", fmt.Sprintf("/api/inventory/user-%d", i), "", asAdmin)
		h.request("GET", fmt.Sprintf("/api/unheard/of-%d", i), "", asAdmin)
		h.request("GET", fmt.Sprintf("/page-%d", i), "")
		h.request(fmt.Sprintf("METHOD%d", i), "/api/health", "")
	}
	want := map[string]int{
		"GET /api/inventory/{userId} 200": 50, "GET unknown 404": 50, "GET page 200": 50, "other unknown 405": 50,
	}
	h.fakes.set(func(f *fakes) {
		if d := cmp.Diff(want, f.counted); d != "" {
			t.Error(d)
		}
	})
}
