package api

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// publishedRoutes are the routes of API v1. The route table must contain exactly these.
var publishedRoutes = []string{
	"GET /api/community/top-traders", "GET /api/health",
	"POST /api/listings", "POST /api/listings/batch", "POST /api/listings/cancel", "GET /api/listings", "GET /api/listings/{id}", "DELETE /api/listings/{id}",
	"POST /api/listings/{id}/purchase", "GET /api/trades", "GET /api/trades/{id}", "POST /api/trades/{id}/complete", "POST /api/trades/{id}/reverse",
	"GET /api/inventory/{userId}", "GET /api/inventory/{userId}/values", "POST /api/inventory/{userId}/sync",
	"GET /api/market-prices/job-debug", "GET /api/market-prices/jobs", "GET /api/market-prices/jobs/{id}",
	"POST /api/market-prices/jobs/{id}/cancel", "GET /api/market-prices/jobs/{id}/items", "POST /api/market-prices/jobs/{id}/retry-failed",
	"POST /api/market-prices/items/{name}/accept", "POST /api/market-prices/items/refresh", "GET /api/market-prices/provider-debug", "POST /api/market-prices/refresh",
	"POST /api/market-prices/providers/{provider}/accept", "POST /api/market-prices/providers/{provider}/pause",
	"POST /api/market-prices/providers/{provider}/resume", "GET /api/market-prices/status",
	"GET /api/prices/items", "GET /api/prices/items/{name}", "POST /api/prices/lookup", "POST /api/prices/quotes", "GET /api/prices/items/{name}/history", "GET /api/prices/items/{name}/at", "GET /api/prices/items/{name}/figures", "GET /api/prices/snapshot/manifest",
	"GET /api/prices/snapshot.json", "GET /api/prices/snapshot.ndjson", "GET /api/prices/changes", "GET /api/prices/stream", "GET /api/events", "GET /api/users",
	"GET /api/webhooks", "POST /api/webhooks", "GET /api/webhooks/{id}", "PATCH /api/webhooks/{id}", "DELETE /api/webhooks/{id}", "POST /api/webhooks/{id}/rotate",
	"POST /api/webhooks/{id}/test", "GET /api/webhooks/{id}/deliveries", "POST /api/webhooks/{id}/deliveries/{number}/resend",
	"GET /api/users/{userId}", "PUT /api/users/{userId}", "DELETE /api/users/{userId}",
	"POST /api/functions/admin/wallet-ledger/{userId}/entries", "GET /api/functions/admin/wallet-ledger/{userId}/entries",
	"GET /api/functions/admin/wallet-ledger/{userId}/balance", "GET /api/functions/admin/wallet-ledger/{userId}/verify",
	"GET /api/functions/admin/payment-fee-rules", "POST /api/functions/admin/payment-fee-rules/quote",
	"POST /api/functions/admin/payment-fee-rules/refresh", "POST /api/functions/admin/payment-fee-rules/rollback",
	"GET /docs", "GET /metrics", "GET /openapi.json", "PATCH /api/listings/{id}",
	"GET /api/keys", "POST /api/keys", "GET /api/keys/{key}", "POST /api/keys/{key}/rotate", "DELETE /api/keys/{key}", "GET /api/operators", "POST /api/operators", "GET /api/operators/{operator}", "PATCH /api/operators/{operator}", "GET /api/audit",
}

// allowedRoles returns the roles that may use a path of API v1.
func allowedRoles(path string) []string {
	for prefix, roles := range map[string][]string{
		"/api/market-prices/": {"market", "admin"},
		"/api/prices/":        {"market", "platform", "admin"},
		"/api/events":         {"market", "platform", "admin"},
		"/api/webhooks":       {"admin"},
		"/api/users":          {"platform", "admin"},
		"/api/inventory/":     {"platform", "admin"},
		"/api/functions/":     {"admin"},
		"/api/keys":           {"admin"},
		"/api/audit":          {"admin"},
		"/api/operators":      {"admin"},
		"/api/listings":       {"platform", "admin"},
		"/api/trades":         {"platform", "admin"},
		"/metrics":            {"admin"},
	} {
		if strings.HasPrefix(path, prefix) {
			return roles
		}
	}
	return []string{"none", "wrong", "market", "platform", "admin"}
}

func TestRoutes_AreTheExpectedOnes(t *testing.T) {
	var have []string
	for _, op := range startServer(t, nil).api.routes.operations {
		have = append(have, op.method+" "+op.path)
	}
	want := slices.Clone(publishedRoutes)
	slices.Sort(have)
	slices.Sort(want)
	if d := cmp.Diff(want, have); d != "" {
		t.Errorf("routes (-want +got):\n%s", d)
	}
}

// TestRoutes_AllowOnlyTheirRoles sends a request to each route with every credential, from
// a remote address.
func TestRoutes_AllowOnlyTheirRoles(t *testing.T) {
	shared := newHarness(t, trustLoopback)
	credentials := map[string][]header{
		"none":     nil,
		"wrong":    {"X-Market-Sync-Secret: " + wrongSecret, "Authorization: Bearer " + wrongSecret},
		"market":   {asMarket},
		"platform": {asPlatform},
		"admin":    {asAdmin},
	}
	for i, op := range shared.api.routes.operations {
		path, body := example(op)
		elsewhere := header(fmt.Sprintf("X-Forwarded-For: 203.0.113.%d", i))
		for name, headers := range credentials {
			t.Run(fmt.Sprintf("%s %s as %s", op.method, op.path, name), func(t *testing.T) {
				h := shared
				if op.method != http.MethodGet && slices.Contains(allowedRoles(op.path), name) {
					h = newHarness(t, trustLoopback)
				}
				got := h.request(op.method, path, body, append(headers, elsewhere)...)
				switch {
				case slices.Contains(allowedRoles(op.path), name):
					if got.StatusCode >= 300 {
						t.Errorf("got status %d: %s; want success", got.StatusCode, got.body)
					}
				case name == "none" || name == "wrong":
					p := got.problem(t)
					if got.StatusCode != http.StatusUnauthorized || p.Code != "unauthorized" || got.Header.Get("WWW-Authenticate") == "" {
						t.Errorf("got %d %s, want 401 unauthorized with WWW-Authenticate", got.StatusCode, p.Code)
					}
				default:
					if p := got.problem(t); got.StatusCode != http.StatusForbidden || p.Code != "forbidden" {
						t.Errorf("got %d %s, want 403 forbidden", got.StatusCode, p.Code)
					}
				}
				if got.StatusCode >= 300 {
					h.wantUnchanged(got)
				}
			})
		}
	}
}

func TestAuth_AcceptsTheAdminTokenInEitherHeader(t *testing.T) {
	h := startServer(t, nil)
	for _, path := range []string{"/api/market-prices/status", "/api/inventory/u1"} {
		for _, head := range []header{asAdmin, "X-Market-Sync-Secret: " + adminToken, "Authorization: bearer " + adminToken} {
			if got := h.request("GET", path, "", head); got.StatusCode != http.StatusOK {
				t.Errorf("%s: got status %d, want 200", path, got.StatusCode)
			}
		}
	}
}

func TestAuth_AcceptsCredentialsOnlyInTheirHeader(t *testing.T) {
	h := startServer(t, nil)
	for _, c := range []struct {
		path string
		head header
	}{
		{"/api/market-prices/status", "Authorization: Bearer " + marketSecret},
		{"/api/market-prices/status", "Authorization: Basic " + marketSecret},
		{"/api/market-prices/status", "Authorization: " + adminToken},
		{"/api/inventory/u1", "X-Market-Sync-Secret: " + platformToken},
		{"/api/inventory/u1", "Cookie: token=" + platformToken},
		{"/api/inventory/u1?token=" + platformToken, "Accept: */*"},
	} {
		if got := h.request("GET", c.path, "", c.head); got.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s with %s: got status %d, want 401", c.path, c.head, got.StatusCode)
		}
	}
}

func TestAuth_RespondsAlikeToMissingAndWrongSecrets(t *testing.T) {
	h := startServer(t, nil)
	const id header = "X-Request-Id: same"
	missing := h.request("GET", "/api/market-prices/status", "", id)
	wrong := h.request("GET", "/api/market-prices/status", "", id, "X-Market-Sync-Secret: "+wrongSecret)
	for _, a := range []result{missing, wrong} {
		a.Header.Del("Date")
	}
	if d := cmp.Diff(missing.Header, wrong.Header); d != "" || missing.body != wrong.body {
		t.Errorf("responses to a missing and a wrong secret: got\n%s and\n%s, want the same; headers (-missing +wrong):\n%s", missing.body, wrong.body, d)
	}
}

func TestAuth_LimitsOnlyWrongSecrets(t *testing.T) {
	for _, addresses := range []int{1, 100} {
		t.Run(fmt.Sprintf("1,000 from %d", addresses), func(t *testing.T) {
			inBubble(t, trustLoopback, func(t *testing.T, h *harness) {
				const path = "/api/market-prices/status"
				statuses := map[int]int{}
				for i := range 1000 {
					from := header(fmt.Sprintf("X-Forwarded-For: 198.51.100.%d", i%addresses))
					got := h.request("GET", path, "", from, "X-Market-Sync-Secret: "+wrongSecret)
					statuses[got.StatusCode]++
					if got.StatusCode == http.StatusTooManyRequests {
						checkLimited(t, got)
					}
				}
				allowed := min(1000, 20*addresses)
				if statuses[401] != allowed || statuses[429] != 1000-allowed {
					t.Errorf("got statuses %v, want %d times 401 and 429 for the rest", statuses, allowed)
				}
				for _, from := range []header{"X-Forwarded-For: 198.51.100.0", "X-Forwarded-For: 203.0.113.1"} {
					if got := h.request("GET", path, "", from, asMarket); got.StatusCode != http.StatusOK {
						t.Errorf("valid secret: got status %d, want 200", got.StatusCode)
					}
					if got := h.request("GET", path, "", from, asPlatform); got.StatusCode != http.StatusForbidden {
						t.Errorf("valid secret of another role: got status %d, want 403", got.StatusCode)
					}
				}
				if got := h.request("GET", path, "", "X-Forwarded-For: 198.51.100.0"); got.StatusCode != http.StatusUnauthorized {
					t.Errorf("no secret: got status %d, want 401", got.StatusCode)
				}
				if got := h.request("GET", "/metrics", ""); !strings.Contains(got.body, "\nassay_wrong_secrets_total 1000\n") {
					t.Error("got metrics without assay_wrong_secrets_total 1000, want only wrong secrets counted")
				}
			})
		})
	}
}

// checkLimited checks the code and headers of a response with status 429.
func checkLimited(t *testing.T, got result) {
	t.Helper()
	after, err := strconv.Atoi(got.Header.Get("Retry-After"))
	if err != nil || after < 1 || after > 60 || got.Header.Get("RateLimit") == "" || got.Header.Get("RateLimit-Policy") == "" {
		t.Errorf("got headers %v, want Retry-After from 1 to 60 and both rate limit headers", got.Header)
	}
	if p := got.problem(t); p.Code != "too_many_failures" {
		t.Errorf("got code %s, want too_many_failures", p.Code)
	}
}

func TestAuth_CountsWrongSecretsOnPublicRoutes(t *testing.T) {
	for _, path := range []string{"/api/health", "/metrics"} {
		inBubble(t, trustLoopback, func(t *testing.T, h *harness) {
			wrong := header("Authorization: Bearer " + wrongSecret)
			for range 20 {
				if got := h.request("GET", path, "", wrong); got.StatusCode != http.StatusOK || strings.Contains(got.body, "details") {
					t.Fatalf("%s: got status %d: %s; want 200 without details", path, got.StatusCode, got.body)
				}
			}
			if got := h.request("GET", "/api/inventory/u1", "", wrong); got.StatusCode != http.StatusTooManyRequests {
				t.Errorf("after %s: got status %d, want 429", path, got.StatusCode)
			}
			if got := h.request("GET", path, "", wrong); got.StatusCode != http.StatusOK {
				t.Errorf("%s: got status %d, want 200", path, got.StatusCode)
			}
		})
	}
}

func TestHealth_ShowsDetailsToAdminsOnly(t *testing.T) {
	h := startServer(t, nil)
	for head, more := range map[header]bool{"Accept: */*": false, asMarket: false, asPlatform: false, asAdmin: true} {
		got := h.request("GET", "/api/health", "", head)
		if got.StatusCode != http.StatusOK || strings.Contains(got.body, "details") != more {
			t.Errorf("got status %d, %s; want details: %v", got.StatusCode, got.body, more)
		}
	}
}

func TestMetrics_AreOpenToThisMachineOnly(t *testing.T) {
	h := startServer(t, nil)
	h.request("GET", "/api/health", "") // the metrics count this request
	if got := h.request("GET", "/metrics", ""); got.StatusCode != http.StatusOK || !strings.Contains(got.body, `assay_http_requests_total{method="GET",route="/api/health",status="200"} 1`) {
		t.Errorf("from this machine: got status %d, %s; want 200", got.StatusCode, got.body)
	}
	if got := h.request("GET", "/metrics", "", "X-Forwarded-For: 203.0.113.9"); got.StatusCode != http.StatusUnauthorized {
		t.Errorf("through an untrusted proxy: got status %d, want 401", got.StatusCode)
	}
	if got := h.request("GET", "/metrics", "", "X-Forwarded-For: 203.0.113.9", asAdmin); got.StatusCode != http.StatusOK {
		t.Errorf("with the admin token: got status %d, want 200", got.StatusCode)
	}
}
