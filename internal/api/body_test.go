package api

import (
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"assay/internal/inventory"
)

func TestServe_AcceptsAnEmptyObjectAsNoBody(t *testing.T) {
	h := newHarness(t, nil)
	for _, op := range h.api.routes.operations {
		path, body := example(op)
		if body != "" || op.method == "GET" {
			continue
		}
		for _, empty := range []string{`{}`, " { }\n"} {
			h := newHarness(t, nil)
			if got := h.request(op.method, path, empty, asAdmin); got.StatusCode >= 300 {
				t.Errorf("%s %s with %q: got %d %s, want success", op.method, path, empty, got.StatusCode, got.body)
			}
		}
	}
	if got := h.request("POST", "/api/inventory/onsteam/sync?source=steam", `{}`, asAdmin); got.StatusCode != http.StatusOK {
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
	got := h.request("POST", "/api/inventory/new/sync", `{"appId":730,"contextId":"2","snapshotAt":"2026-10-01T12:00:00Z","items":[{"assetId":"1","marketHashName":"a b "}]}`, asPlatform)
	if got.StatusCode != http.StatusOK || got.body != `{"added":1,"removed":0,"changed":0,"unchanged":0,"pricedRows":0,"queuedNames":1}` {
		t.Errorf("got status %d, %s; want 200 and one added asset", got.StatusCode, got.body)
	}
	if got := h.request("GET", "/api/inventory/new", "", asPlatform); !strings.Contains(got.body, `"contextId":"2","marketHashName":"a b "`) {
		t.Errorf("got inventory %s, want the asset %q in context 2", got.body, "a b ")
	}
	many := strings.NewReader(`{"appId":730,"contextId":"2","snapshotAt":"2026-01-01T00:00:00Z","items":[` + strings.Repeat(`{},`, inventory.MaxItems) + `{}]}`)
	r, _ := http.NewRequest("POST", h.url+"/api/inventory/u1/sync", many)
	r.Header.Set("Authorization", "Bearer "+platformToken)
	r.Header.Set("Content-Type", "application/json")
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
