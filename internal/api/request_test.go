package api

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"assay/internal/fault"
)

// result is a response with its complete body.
type result struct {
	*http.Response
	body    string
	version int64 // version of the database before the request
}

// problem decodes the body as a problem and checks its members.
func (a result) problem(t *testing.T) fault.Problem {
	t.Helper()
	var p fault.Problem
	if err := json.Unmarshal([]byte(a.body), &p); err != nil || a.Header.Get("Content-Type") != "application/problem+json" {
		t.Fatalf("got status %d, %s: %s; want a problem", a.StatusCode, a.Header.Get("Content-Type"), a.body)
	}
	if p.Status != a.StatusCode || p.Type == "" || p.Title == "" || p.Detail == "" || p.Code == "" || p.RequestID != a.Header.Get("X-Request-Id") {
		t.Errorf("got the problem %s, want one with all members", a.body)
	}
	return p
}

// header is a request header in the form "Name: value".
type header string

const (
	asMarket   header = "X-Market-Sync-Secret: " + marketSecret
	asPlatform header = "Authorization: Bearer " + platformToken
	asAdmin    header = "Authorization: Bearer " + adminToken
)

// request sends a request. An empty body means no body.
func (h *harness) request(method, path, body string, headers ...header) result {
	h.t.Helper()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	r := h.newRequest(method, path, reader)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if method == "POST" && (strings.HasSuffix(path, "/entries") || strings.HasSuffix(path, "/purchase")) {
		r.Header.Set("Idempotency-Key", rand.Text())
	}
	for _, one := range headers {
		name, value, _ := strings.Cut(string(one), ": ")
		r.Header.Set(name, value)
	}
	return h.send(r)
}

func (h *harness) newRequest(method, path string, body io.Reader) *http.Request {
	h.t.Helper()
	if h.url == "" {
		r := httptest.NewRequest(method, path, body)
		r.RemoteAddr, r.Host = "127.0.0.1:1234", "localhost"
		return r
	}
	r, err := http.NewRequest(method, h.url+path, body)
	h.must(err)
	return r
}

func (h *harness) send(r *http.Request) result {
	h.t.Helper()
	version := h.database.Version(h.t, h.raw)
	if r.URL.Path == "/api/prices/stream" { // the stream ends only when the client disconnects
		ctx, cancel := context.WithTimeout(r.Context(), 100*time.Millisecond)
		defer cancel()
		r = r.WithContext(ctx)
	}
	var resp *http.Response
	if h.url == "" {
		w := httptest.NewRecorder()
		h.api.ServeHTTP(w, r)
		resp = w.Result()
		resp.Request = r
	} else {
		var err error
		resp, err = http.DefaultTransport.RoundTrip(r)
		h.must(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if !errors.Is(err, context.DeadlineExceeded) { // the end of a stream
		h.must(err)
	}
	for _, secret := range allSecrets {
		if strings.Contains(string(body), secret) {
			h.t.Errorf("%s %s: the response contains the secret %s", r.Method, r.URL, secret)
		}
	}
	return result{resp, string(body), version}
}

// wantUnchanged checks that a request did not change the database.
func (h *harness) wantUnchanged(got result) {
	h.t.Helper()
	if h.database.Version(h.t, h.raw) != got.version {
		h.t.Errorf("%s %s: the refused request changed the database", got.Request.Method, got.Request.URL)
	}
}

// wantProblem checks that a response is a problem with the given status and code, and that
// the request changed nothing. It returns the problem.
func (h *harness) wantProblem(status int, code string, got result) fault.Problem {
	h.t.Helper()
	p := got.problem(h.t)
	if p.Status != status || p.Code != code {
		h.t.Errorf("%s %s: got %d %s, want %d %s: %s", got.Request.Method, got.Request.URL, p.Status, p.Code, status, code, got.body)
	}
	h.wantUnchanged(got)
	return p
}

// example returns the path and body of a request that succeeds once on the sample.
func example(op operation) (path, body string) {
	id, userID := "1", "u1"
	switch {
	case strings.HasSuffix(op.path, "/cancel"):
		id = "4" // the queued job
	case strings.Contains(op.path, "/jobs/"):
		id = "3"
	case op.method == "DELETE":
		userID = "idle"
	}
	path = strings.NewReplacer("{id}", id, "{name}", "AK-47%20%7C%20Redline", "{userId}", userID, "{provider}", "sim", "{number}", sampleDelivery, "{key}", "reader", "{operator}", "anna").Replace(op.path)
	if strings.HasSuffix(op.path, "/rollback") {
		path += "?version=1"
	}
	if op.body == nil {
		return path, ""
	}
	const at = `"userId":"u1","appId":730,"contextId":"2",`
	switch op.method + " " + op.path {
	case "POST /api/inventory/{userId}/sync":
		return path, `{"appId":730,"contextId":"2","snapshotAt":"2026-10-01T12:01:00Z","items":[{"assetId":"1","marketHashName":"x"}]}`
	case "POST /api/functions/admin/wallet-ledger/{userId}/entries":
		return path, `{"kind":"deposit","currency":"USD","amount":100}`
	case "POST /api/functions/admin/payment-fee-rules/quote":
		return path, `{"kind":"sale","amount":1000,"currency":"USD"}`
	case "POST /api/keys":
		return path, `{"name":"billing","scopes":["operate:read"]}`
	case "POST /api/operators":
		return path, `{"name":"ben","role":"read","password":"a-password-of-ben"}`
	case "PATCH /api/operators/{operator}":
		return path, `{"role":"read","disabled":true}`
	case "POST /api/listings":
		return path, `{` + at + `"assetId":"2","price":100,"currency":"USD"}`
	case "POST /api/listings/batch":
		return path, `{` + at + `"items":[{"assetId":"2","price":100,"currency":"USD"},{"assetId":"gone","price":100,"currency":"USD"}]}`
	case "POST /api/listings/cancel":
		return path, `{"ids":["1","99"]}`
	case "PATCH /api/listings/{id}":
		return path, `{"price":100}`
	case "POST /api/listings/{id}/purchase":
		return path, `{"buyerId":"u2"}`
	case "POST /api/webhooks":
		return path, `{"url":"` + deadHook + `","events":["job.finished"],"minChange":0.05}`
	case "PATCH /api/webhooks/{id}":
		return path, `{"items":["` + redline + `"],"users":["u1"],"enabled":true}`
	case "POST /api/market-prices/items/refresh":
		return path, `{"items":[{"marketHashName":"AK-47 | Redline"}]}`
	case "POST /api/prices/lookup", "POST /api/prices/quotes":
		return path, `{"items":[{"marketHashName":"AK-47 | Redline"},{"appId":440,"marketHashName":"y","phase":"Ruby"}]}`
	default:
		return path, `{"displayName":"Anna","leaderboard":false}`
	}
}
