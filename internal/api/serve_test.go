package api

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay/internal/fault"
)

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

func TestServe_RespondsToStarts(t *testing.T) {
	h := startServer(t, nil)
	start := func(query string, id int64) {
		t.Helper()
		got := h.request("POST", "/api/market-prices/refresh"+query, "", asMarket)
		want := fmt.Sprintf(`{"started":true,"job":{"id":"%d","kind":"bulk"`, id)
		if got.StatusCode != http.StatusAccepted || got.Header.Get("Location") != fmt.Sprintf("/api/market-prices/jobs/%d", id) || !strings.HasPrefix(got.body, want) {
			t.Errorf("got status %d, %v, %s; want 202 with the new job", got.StatusCode, got.Header, got.body)
		}
	}
	again := func(query string, id int64, ignored bool) {
		t.Helper()
		got := h.request("POST", "/api/market-prices/refresh"+query, "", asMarket)
		want := fmt.Sprintf(`{"started":false,"reason":"already_running","forcedIgnored":%v,"job":{"id":"%d"`, ignored, id)
		if got.StatusCode != http.StatusOK || !strings.HasPrefix(got.body, want) || got.Header.Get("Location") != "" {
			t.Errorf("got status %d, %s; want 200, %s", got.StatusCode, got.body, want)
		}
	}
	again("", queuedJob, false)
	again("?force=1", queuedJob, true)
	h.must(h.deps.Engine.Cancel(t.Context(), queuedJob))
	start("?force=1", queuedJob+1)
	again("?force=1", queuedJob+1, false)
	again("", queuedJob+1, false)
	h.must(h.deps.Engine.Cancel(t.Context(), queuedJob+1))
	start("", queuedJob+2)
}

func TestServe_AcceptsShortPrintableRequestIDs(t *testing.T) {
	h := startServer(t, nil)
	for id, accepted := range map[string]bool{"abc-123": true, "with space": true, repeatX(128): true, repeatX(129): false, "ünprintable": false, "tab\tbed": false, "": false} {
		got := h.request("GET", "/api/health", "", header("X-Request-Id: "+id))
		given := got.Header.Get("X-Request-Id")
		if (given == id) != accepted || given == "" || len(given) > maxRequestID {
			t.Errorf("%q: got request id %q, want the sent id: %v", id, given, accepted)
		}
		if !strings.Contains(h.log.String(), fmt.Sprintf(`"request_id":%q`, given)) {
			t.Errorf("got no log record of request id %q, want one", given)
		}
	}
}

func TestServe_LogsNoClientInput(t *testing.T) {
	const sent = "words-that-were-sent"
	h := startServer(t, nil)
	h.push("u9", sent)
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
		t.Errorf("got the log %s, want it without client input", log)
	}
}

func TestServe_HidesInternalErrors(t *testing.T) {
	h := startServer(t, nil)
	h.must(h.store.Close())
	for _, op := range h.api.routes.operations {
		path, body := example(op)
		as := asAdmin
		if op.path == "/api/health" {
			as = asPlatform // the details for an admin contain the error
		}
		got := h.request(op.method, path, body, as)
		if strings.Contains(got.body, "database is closed") {
			t.Errorf("%s %s: the response contains the error: %s", op.method, op.path, got.body)
		}
		if slices.Contains(op.faults, 500) {
			if p := got.problem(t); p.Status != 500 || p.Code != "internal_error" {
				t.Errorf("%s %s: got %d %s, want 500 internal_error", op.method, op.path, p.Status, p.Code)
			}
		}
	}
	id := h.request("GET", "/api/market-prices/status", "", asAdmin).Header.Get("X-Request-Id")
	if n := strings.Count(h.log.String(), `"request_id":"`+id+`","error":"sql: database is closed`); n != 1 {
		t.Errorf("got %d log lines with the error, want 1", n)
	}
}

func TestServe_RespondsAfterAPanic(t *testing.T) {
	h := startServer(t, nil)
	for _, value := range []any{"a " + wrongSecret, errors.New(wrongSecret), fmt.Errorf("%w", fault.New(fault.Invalid, "x", "%s", wrongSecret))} {
		h.addRoute("/api/market-prices/panic", func(*call) (any, error) { panic(value) })
		got := h.request("GET", "/api/market-prices/panic", "", asAdmin)
		if p := got.problem(t); p.Status != 500 || p.Code != "internal_error" {
			t.Errorf("got status %d: %s; want 500 internal_error", got.StatusCode, got.body)
		}
		if n := strings.Count(h.log.String(), `"handler panicked","method":"GET","route":"/api/market-prices/panic","request_id":"`+got.Header.Get("X-Request-Id")); n != 1 {
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
	got := h.request("GET", "/api/market-prices/jobs?limit=1", "", asMarket)
	for _, want := range []string{`"createdAt":"2026-10-01T12:00:00.123456Z"`, `"deferred":[]`, `"finishedAt":null`, `"nextCursor":"`} {
		if !strings.Contains(got.body, want) {
			t.Errorf("got body %s, want %s in it", got.body, want)
		}
	}
	h.push("u9", "a&b<c")
	h.exec(`UPDATE item SET price = 12345000 WHERE name = 'a&b<c'`)
	got = h.request("GET", "/api/prices/items/a%26b%3Cc", "", asMarket)
	if !strings.Contains(got.body, `"marketHashName":"a&b<c"`) || !strings.Contains(got.body, `"currentPrice":12.345`) {
		t.Errorf("got body %s, want an unescaped name and the price 12.345", got.body)
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
				t.Errorf("%s: header %s: got %q, want %q", path, name, got.Header.Get(name), want)
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
	h.loseDatabase()
	got := h.request("GET", "/api/market-prices/status", "", asMarket)
	if p := got.problem(t); p.Status != 503 || p.Code != "database_unavailable" || got.Header.Get("Retry-After") != "5" {
		t.Errorf("got body %s, header %v; want 503 database_unavailable with Retry-After", got.body, got.Header)
	}
}

func TestServe_SendsNoRetryAfterForPermanentFailures(t *testing.T) {
	h := startServer(t, nil)
	h.exec(`UPDATE wallet_account SET balance = balance + 1 WHERE user_id = 'u1'`)
	got := h.request("GET", "/api/functions/admin/wallet-ledger/u1/balance", "", asAdmin)
	if p := got.problem(t); p.Status != 503 || p.Code != "ledger_tampered" || got.Header.Get("Retry-After") != "" {
		t.Errorf("got body %s, header %v; want 503 ledger_tampered without Retry-After", got.body, got.Header)
	}
	if !strings.Contains(h.log.String(), "request failed") {
		t.Error("got no log record of the failure, want one")
	}
}

func TestTopTraders_CanBeCached(t *testing.T) {
	h := startServer(t, nil)
	const path = "/api/community/top-traders?period=7d&by=trades&limit=5"
	got := h.request("GET", path, "")
	if got.StatusCode != http.StatusOK || !strings.HasPrefix(got.body, `{"items":[{"rank":1,"displayName":"`) || !strings.Contains(got.body, `"displayName":"anonymous"`) || got.Header.Get("Cache-Control") != "public, max-age=10" || got.Header.Get("Age") != "3" {
		t.Errorf("got status %d, %v, %s; want 200 with max-age 10 and age 3", got.StatusCode, got.Header, got.body)
	}
	etag := got.Header.Get("ETag")
	for _, match := range []string{etag, "W/" + etag, `"x", ` + etag, "*"} {
		if got := h.request("GET", path, "", header("If-None-Match: "+match)); got.StatusCode != http.StatusNotModified || got.body != "" {
			t.Errorf("%s: got status %d, want 304", match, got.StatusCode)
		}
	}
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
			t.Errorf("%s %s: the response allows credentials, want them forbidden", op.method, op.path)
		}
		preflight := h.request("OPTIONS", path, "", origin, "Access-Control-Request-Method: "+header(op.method))
		if preflight.StatusCode != http.StatusMethodNotAllowed || preflight.Header.Get("Access-Control-Allow-Methods") != "" {
			t.Errorf("preflight of %s %s: got %d %v, want 405", op.method, op.path, preflight.StatusCode, preflight.Header)
		}
	}
	h.loseDatabase()
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
	want := map[string]float64{
		"GET /api/inventory/{userId} 404": 50, "GET unknown 404": 50, "GET page 200": 50, "other unknown 405": 50,
	}
	families, err := h.deps.Registry.Gather()
	h.must(err)
	counted := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "assay_http_requests_total" { // its labels are sorted: method, route, status
				l := m.GetLabel()
				counted[l[0].GetValue()+" "+l[1].GetValue()+" "+l[2].GetValue()] = m.GetCounter().GetValue()
			}
		}
	}
	if d := cmp.Diff(want, counted); d != "" {
		t.Errorf("counted responses (-want +got):\n%s", d)
	}
}
