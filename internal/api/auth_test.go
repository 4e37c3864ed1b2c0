package api

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// contractRoutes is what this version has of the contract, written down a second
// time: the table must hold these and no others.
var contractRoutes = []string{
	"GET /api/community/top-traders", "GET /api/health",
	"POST /api/listings", "POST /api/listings/batch", "POST /api/listings/cancel", "GET /api/listings", "GET /api/listings/{id}", "DELETE /api/listings/{id}",
	"POST /api/listings/{id}/purchase", "GET /api/trades", "GET /api/trades/{id}", "POST /api/trades/{id}/complete", "POST /api/trades/{id}/reverse",
	"GET /api/inventory/{userId}", "POST /api/inventory/{userId}/sync",
	"GET /api/market-prices/job-debug", "GET /api/market-prices/jobs", "GET /api/market-prices/jobs/{id}",
	"POST /api/market-prices/jobs/{id}/cancel", "GET /api/market-prices/jobs/{id}/items", "POST /api/market-prices/jobs/{id}/retry-failed",
	"POST /api/market-prices/items/{name}/accept", "GET /api/market-prices/provider-debug", "POST /api/market-prices/refresh",
	"POST /api/market-prices/providers/{provider}/accept", "POST /api/market-prices/providers/{provider}/pause",
	"POST /api/market-prices/providers/{provider}/resume", "GET /api/market-prices/status",
	"GET /api/prices/items", "GET /api/prices/items/{name}", "POST /api/prices/lookup", "GET /api/users", "GET /api/users/{userId}", "PUT /api/users/{userId}", "DELETE /api/users/{userId}",
	"POST /api/functions/admin/wallet-ledger/{userId}/entries", "GET /api/functions/admin/wallet-ledger/{userId}/entries",
	"GET /api/functions/admin/wallet-ledger/{userId}/balance", "GET /api/functions/admin/wallet-ledger/{userId}/verify",
	"GET /api/functions/admin/payment-fee-rules", "POST /api/functions/admin/payment-fee-rules/quote",
	"POST /api/functions/admin/payment-fee-rules/refresh", "POST /api/functions/admin/payment-fee-rules/rollback",
	"GET /docs", "GET /metrics", "GET /openapi.json", "PATCH /api/listings/{id}",
}

// mayUse says who may use a path, from the contract's own table.
func mayUse(path string) []string {
	for prefix, roles := range map[string][]string{
		"/api/market-prices/": {"market", "admin"},
		"/api/prices/":        {"market", "platform", "admin"},
		"/api/users":          {"platform", "admin"},
		"/api/inventory/":     {"platform", "admin"},
		"/api/functions/":     {"admin"},
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

func TestRoutes_AreThoseOfTheContract(t *testing.T) {
	var have []string
	for _, op := range start(t, nil).api.routes.operations {
		have = append(have, op.method+" "+op.path)
	}
	want := slices.Clone(contractRoutes)
	slices.Sort(have)
	slices.Sort(want)
	if d := cmp.Diff(want, have); d != "" {
		t.Error(d)
	}
}

// TestRoutes_LetInOnlyTheirRoles walks the table with every credential, from an
// address that is not this machine.
func TestRoutes_LetInOnlyTheirRoles(t *testing.T) {
	h := start(t, func(d *Deps) { d.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} })
	const elsewhere header = "X-Forwarded-For: 203.0.113.9"
	credentials := map[string][]header{
		"none":     nil,
		"wrong":    {"X-Market-Sync-Secret: " + wrongSecret, "Authorization: Bearer " + wrongSecret},
		"market":   {asMarket},
		"platform": {asPlatform},
		"admin":    {asAdmin},
	}
	for _, op := range h.api.routes.operations {
		path, body := example(op)
		for name, headers := range credentials {
			t.Run(fmt.Sprintf("%s %s as %s", op.method, op.path, name), func(t *testing.T) {
				got := h.ask(op.method, path, body, append(headers, elsewhere)...)
				switch {
				case slices.Contains(mayUse(op.path), name):
					if got.StatusCode >= 300 {
						t.Errorf("status %d: %s", got.StatusCode, got.body)
					}
				case name == "none" || name == "wrong":
					p := got.problem(t)
					if got.StatusCode != http.StatusUnauthorized || p.Code != "unauthorized" || got.Header.Get("WWW-Authenticate") == "" {
						t.Errorf("status %d, code %s", got.StatusCode, p.Code)
					}
				default:
					if p := got.problem(t); got.StatusCode != http.StatusForbidden || p.Code != "forbidden" {
						t.Errorf("status %d, code %s", got.StatusCode, p.Code)
					}
				}
				if calls := h.fakes.calls(); got.StatusCode >= 300 && len(calls) > 0 {
					t.Errorf("refused, and still did %v", calls)
				}
			})
		}
	}
}

func TestAuth_TakesTheAdminTokenInEitherHeader(t *testing.T) {
	h := start(t, nil)
	for _, path := range []string{"/api/market-prices/status", "/api/inventory/u1"} {
		for _, head := range []header{asAdmin, "X-Market-Sync-Secret: " + adminToken, "Authorization: bearer " + adminToken} {
			if got := h.ask("GET", path, "", head); got.StatusCode != http.StatusOK {
				t.Errorf("%s: status %d", path, got.StatusCode)
			}
		}
	}
}

func TestAuth_KeepsCredentialsToTheirHeaders(t *testing.T) {
	h := start(t, nil)
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
		if got := h.ask("GET", c.path, "", c.head); got.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s with %s: status %d", c.path, c.head, got.StatusCode)
		}
	}
}

func TestAuth_AnswersMissingAndWrongAlike(t *testing.T) {
	h := start(t, nil)
	const id header = "X-Request-Id: same"
	missing := h.ask("GET", "/api/market-prices/status", "", id)
	wrong := h.ask("GET", "/api/market-prices/status", "", id, "X-Market-Sync-Secret: "+wrongSecret)
	for _, a := range []asked{missing, wrong} {
		a.Header.Del("Date")
	}
	if d := cmp.Diff(missing.Header, wrong.Header); d != "" || missing.body != wrong.body {
		t.Errorf("they differ: %s\n%s\n%s", d, missing.body, wrong.body)
	}
}

func TestAuth_LimitsWrongSecretsAndNeverRightOnes(t *testing.T) {
	for _, addresses := range []int{1, 100} {
		t.Run(fmt.Sprintf("1,000 from %d", addresses), func(t *testing.T) {
			h := startCounting(t)
			const path = "/api/market-prices/status"
			statuses := map[int]int{}
			for i := range 1000 {
				from := header(fmt.Sprintf("X-Forwarded-For: 198.51.100.%d", i%addresses))
				got := h.ask("GET", path, "", from, "X-Market-Sync-Secret: "+wrongSecret)
				statuses[got.StatusCode]++
				if got.StatusCode == http.StatusTooManyRequests {
					checkLimited(t, got)
				}
			}
			allowed := min(1000, 20*addresses)
			if statuses[401] != allowed || statuses[429] != 1000-allowed {
				t.Errorf("statuses %v, want %d times 401 and 429 for the rest", statuses, allowed)
			}
			for _, from := range []header{"X-Forwarded-For: 198.51.100.0", "X-Forwarded-For: 203.0.113.1"} {
				if got := h.ask("GET", path, "", from, asMarket); got.StatusCode != http.StatusOK {
					t.Errorf("the right secret: status %d", got.StatusCode)
				}
				if got := h.ask("GET", path, "", from, asPlatform); got.StatusCode != http.StatusForbidden {
					t.Errorf("a right secret of another role: status %d", got.StatusCode)
				}
			}
			if got := h.ask("GET", path, "", "X-Forwarded-For: 198.51.100.0"); got.StatusCode != http.StatusUnauthorized {
				t.Errorf("no secret: status %d", got.StatusCode)
			}
		})
	}
}

// checkLimited fails unless an answer says when to come back.
func checkLimited(t *testing.T, got asked) {
	t.Helper()
	after, err := strconv.Atoi(got.Header.Get("Retry-After"))
	if err != nil || after < 1 || after > 60 || got.Header.Get("RateLimit") == "" || got.Header.Get("RateLimit-Policy") == "" {
		t.Errorf("headers %v", got.Header)
	}
	if p := got.problem(t); p.Code != "too_many_failures" {
		t.Errorf("code %s", p.Code)
	}
}

func TestAuth_CountsWrongSecretsWhereNoneIsNeeded(t *testing.T) {
	for _, path := range []string{"/api/health", "/metrics"} {
		h := startCounting(t)
		wrong := header("Authorization: Bearer " + wrongSecret)
		for range 20 {
			if got := h.ask("GET", path, "", wrong); got.StatusCode != http.StatusOK || strings.Contains(got.body, "details") {
				t.Fatalf("%s: status %d: %s", path, got.StatusCode, got.body)
			}
		}
		if got := h.ask("GET", "/api/inventory/u1", "", wrong); got.StatusCode != http.StatusTooManyRequests {
			t.Errorf("after %s: status %d", path, got.StatusCode)
		}
		if got := h.ask("GET", path, "", wrong); got.StatusCode != http.StatusOK {
			t.Errorf("%s: status %d", path, got.StatusCode)
		}
	}
}

func TestHealth_TellsMoreToAnAdmin(t *testing.T) {
	h := start(t, nil)
	for head, more := range map[header]bool{"Accept: */*": false, asMarket: false, asPlatform: false, asAdmin: true} {
		got := h.ask("GET", "/api/health", "", head)
		if got.StatusCode != http.StatusOK || strings.Contains(got.body, "goroutines") != more {
			t.Errorf("status %d, %s; want more: %v", got.StatusCode, got.body, more)
		}
	}
}

func TestMetrics_AreOpenToThisMachineOnly(t *testing.T) {
	h := start(t, nil)
	if got := h.ask("GET", "/metrics", ""); got.StatusCode != http.StatusOK || got.body != "up 1\n" {
		t.Errorf("from this machine: status %d, %s", got.StatusCode, got.body)
	}
	if got := h.ask("GET", "/metrics", "", "X-Forwarded-For: 203.0.113.9"); got.StatusCode != http.StatusUnauthorized {
		t.Errorf("through a proxy that is not trusted: status %d", got.StatusCode)
	}
	if got := h.ask("GET", "/metrics", "", "X-Forwarded-For: 203.0.113.9", asAdmin); got.StatusCode != http.StatusOK {
		t.Errorf("with the admin token: status %d", got.StatusCode)
	}
}
