package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"assay/internal/api/apitest"
	"assay/internal/apikey"
	"assay/internal/db"
	"assay/internal/event"
	"assay/internal/view"
	"assay/internal/webhook"
)

// neededScope returns the scope that an API key needs for a route, or an empty string if no
// key has access.
func neededScope(method, path string) string {
	for prefix, area := range map[string]string{
		"/api/market-prices/": "operate", "/metrics": "operate", "/api/webhooks": "operate", "/api/keys": "operate", "/api/audit": "operate", "/api/prices/": "prices", "/api/events": "prices", "/api/users": "inventory",
		"/api/inventory/": "inventory", "/api/listings": "market", "/api/trades": "market", "/api/functions/": "wallet",
	} {
		if !strings.HasPrefix(path, prefix) {
			continue
		}
		if method == "GET" || area == "prices" || strings.HasSuffix(path, "/quote") {
			return area + ":read"
		}
		return area + ":write"
	}
	return ""
}

// newKey creates an API key and returns its credential.
func (h *harness) newKey(k apikey.Key) header {
	h.t.Helper()
	_, secret, err := h.deps.Keys.Create(h.t.Context(), nil, k)
	h.must(err)
	return header("Authorization: Bearer " + secret)
}

func (h *harness) auditLog() []view.AuditEntry {
	h.t.Helper()
	page, err := h.deps.Readers.Access.Audit(h.t.Context(), "", "", 100)
	h.must(err)
	return page.Items
}

// TestKeys_AllowOnlyTheirScopes sends a request to each route with a key of each scope.
func TestKeys_AllowOnlyTheirScopes(t *testing.T) {
	shared := newHarness(t, trustLoopback)
	d := shared.document()
	const remote header = "X-Forwarded-For: 203.0.113.5"
	for _, scope := range apikey.Scopes() {
		name := strings.ReplaceAll(scope, ":", "-")
		create := func(h *harness) header {
			return h.newKey(apikey.Key{Name: name, Scopes: []string{scope}})
		}
		key := create(shared)
		for _, op := range shared.api.routes.operations {
			if slices.Contains(allowedRoles(op.path), "none") {
				continue
			}
			needed := neededScope(op.method, op.path)
			allowed := scope == needed || strings.TrimSuffix(scope, ":write")+":read" == needed
			path, body := example(op)
			path = strings.Replace(path, "/api/keys/reader", "/api/keys/"+name, 1) // a key may manage itself
			h, credential := shared, key
			if allowed && op.method != http.MethodGet {
				h = newHarness(t, trustLoopback)
				credential = create(h)
				if strings.HasPrefix(op.path, "/api/webhooks") {
					credential = h.newKey(apikey.Key{Name: "receiver", Scopes: []string{scope, apikey.PricesRead, apikey.InventoryRead, apikey.MarketRead, apikey.WalletRead}})
				}
			}
			got := h.request(op.method, path, body, credential, remote, "Idempotency-Key: k")
			switch {
			case allowed && got.StatusCode >= 300:
				t.Errorf("%s %s with %s: got status %d: %s; want success", op.method, op.path, scope, got.StatusCode, got.body)
			case !allowed && (got.StatusCode != http.StatusForbidden || got.problem(t).Code != "forbidden" || !strings.Contains(got.body, needed)):
				t.Errorf("%s %s with %s: got %d %s, want 403 forbidden that names the scope %q", op.method, op.path, scope, got.StatusCode, got.body, needed)
			}
			described := d.At("paths", op.path, strings.ToLower(op.method))
			documented, _ := apitest.At(described, "x-scope").(string)
			if keys := strings.Contains(fmt.Sprint(apitest.At(described, "security")), "apiKey:"); documented != needed || keys != (needed != "") {
				t.Errorf("%s %s: got the documented scope %q, API keys %v; want %q", op.method, op.path, documented, keys, needed)
			}
		}
	}
}

// A webhook sends events to its address, so a key needs the right to read them.
func TestKeys_CannotSendOtherEventsToAWebhook(t *testing.T) {
	h := newHarness(t, nil)
	deploy := h.newKey(apikey.Key{Name: "deploy", Scopes: []string{"operate:write"}})
	prices := h.newKey(apikey.Key{Name: "prices", Scopes: []string{"operate:write", apikey.PricesRead, apikey.WalletRead}})
	for _, c := range []struct {
		key                        header
		method, path, events, want string
	}{
		{deploy, "POST", "/api/webhooks", `["job.failed"]`, apikey.PricesRead},
		{deploy, "PATCH", "/api/webhooks/1", `["job.failed"]`, apikey.PricesRead},
		{prices, "POST", "/api/webhooks", `[]`, "trade.overdue"},
		{prices, "POST", "/api/webhooks", `["price.changed","trade.settled"]`, "trade.settled"},
		{prices, "PATCH", "/api/webhooks/1", `[]`, "trade.overdue"},
		{prices, "POST", "/api/webhooks", `["price.changed","job.failed","ledger.problem"]`, ""},
		{prices, "PATCH", "/api/webhooks/1", `["price.changed"]`, ""},
	} {
		got := h.request(c.method, c.path, `{"url":"`+deadHook+`","events":`+c.events+`}`, c.key)
		if refused := got.StatusCode == http.StatusForbidden; refused != (c.want != "") || !strings.Contains(got.body, c.want) || !refused && got.StatusCode >= 300 {
			t.Errorf("%s %s with %s: got %d %s, want a refusal that names %q", c.method, c.path, c.events, got.StatusCode, got.body, c.want)
		}
	}
}

func TestKeys_LiveFromCreationToRevocation(t *testing.T) {
	h := newHarness(t, nil)
	secretOf := func(got result) header {
		var made view.NewAPIKey
		h.must(json.Unmarshal([]byte(got.body), &made))
		return header("Authorization: Bearer " + made.Secret)
	}
	wantStatus := func(what string, key header, want int) {
		t.Helper()
		if got := h.request("GET", "/api/users", "", key); got.StatusCode != want {
			t.Errorf("%s: got status %d, want %d", what, got.StatusCode, want)
		}
	}
	expires := h.clock.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339)
	got := h.request("POST", "/api/keys", `{"name":"sync","scopes":["inventory:read"],"expiresAt":"`+expires+`"}`, asAdmin)
	if got.StatusCode != http.StatusCreated || got.Header.Get("Location") != "/api/keys/sync" {
		t.Fatalf("got %d with Location %q, want 201 with /api/keys/sync", got.StatusCode, got.Header.Get("Location"))
	}
	first := secretOf(got)
	wantStatus("new key", first, http.StatusOK)
	second := secretOf(h.request("POST", "/api/keys/sync/rotate?keepHours=1", "", asAdmin))
	wantStatus("old secret during the rotation", first, http.StatusOK)
	wantStatus("new secret during the rotation", second, http.StatusOK)
	if list := h.request("GET", "/api/keys", "", asAdmin).body; !strings.Contains(list, `"oldSecretUntil":"`) || strings.Contains(list, strings.Fields(string(second))[2]) {
		t.Errorf("got the list %s, want the end of the old secret and no secret", list)
	}
	h.clock.set(h.clock.Now().Add(time.Hour))
	wantStatus("old secret after the rotation", first, http.StatusUnauthorized)
	wantStatus("new secret after the rotation", second, http.StatusOK)
	h.clock.set(h.clock.Now().Add(23 * time.Hour))
	wantStatus("expired key", second, http.StatusUnauthorized)
	third := secretOf(h.request("POST", "/api/keys", `{"name":"again","scopes":["inventory:write"]}`, asAdmin))
	wantStatus("key without an expiry", third, http.StatusOK)
	if got := h.request("DELETE", "/api/keys/again", "", asAdmin); got.StatusCode != http.StatusNoContent {
		t.Errorf("DELETE: got status %d, want 204", got.StatusCode)
	}
	wantStatus("revoked key", third, http.StatusUnauthorized)
}

func TestKeys_RefuseToCreateKeysBeyondTheirOwnLimits(t *testing.T) {
	h := newHarness(t, nil)
	key := h.newKey(apikey.Key{Name: "deploy", Scopes: []string{"operate:write"}, PerMinute: 60})
	for _, c := range []struct {
		method, path, body string
		want               int
	}{
		{"POST", "/api/keys", `{"name":"a","scopes":["operate:read"],"requestsPerMinute":60}`, http.StatusCreated},
		{"POST", "/api/keys", `{"name":"b","scopes":["wallet:read"],"requestsPerMinute":60}`, http.StatusForbidden},
		{"POST", "/api/keys", `{"name":"b","scopes":["operate:read"]}`, http.StatusForbidden},
		{"POST", "/api/keys/reader/rotate", "", http.StatusForbidden},
		{"DELETE", "/api/keys/reader", "", http.StatusForbidden},
		{"POST", "/api/keys/a/rotate", "", http.StatusOK},
		{"DELETE", "/api/keys/a", "", http.StatusNoContent},
	} {
		got := h.request(c.method, c.path, c.body, key)
		if got.StatusCode != c.want || c.want == http.StatusForbidden && got.problem(t).Code != "forbidden" {
			t.Errorf("%s %s %s: got %d %s, want %d", c.method, c.path, c.body, got.StatusCode, got.body, c.want)
		}
	}
	var actions []string
	for _, e := range h.auditLog() {
		actions = append(actions, e.Actor+" "+e.Action)
	}
	if got := strings.Join(actions, ", "); got != "key:deploy DELETE /api/keys/{key}, key:deploy POST /api/keys/{key}/rotate, key:deploy POST /api/keys" {
		t.Errorf("got the audit entries %s, want one of each change that was allowed", got)
	}
}

func TestKeys_LimitRequestsPerMinute(t *testing.T) {
	h := newHarness(t, nil)
	h.clock.set(h.clock.Now().Truncate(time.Minute).Add(15 * time.Second))
	key := h.newKey(apikey.Key{Name: "slow", Scopes: []string{"prices:read"}, PerMinute: 2})
	for i, want := range []struct {
		status     int
		limit, end string
	}{{200, `"key";r=1;t=45`, ""}, {200, `"key";r=0;t=45`, ""}, {429, `"key";r=0;t=45`, "45"}} {
		got := h.request("GET", "/api/prices/items", "", key)
		if got.StatusCode != want.status || got.Header.Get("RateLimit") != want.limit || got.Header.Get("RateLimit-Policy") != `"key";q=2;w=60` || got.Header.Get("Retry-After") != want.end {
			t.Errorf("request %d: got %d with %v, want %d, RateLimit %s and Retry-After %q", i+1, got.StatusCode, got.Header, want.status, want.limit, want.end)
		}
		if want.status == http.StatusTooManyRequests && got.problem(t).Code != "rate_limited" {
			t.Errorf("got the code %s, want rate_limited", got.problem(t).Code)
		}
	}
	h.clock.set(h.clock.Now().Add(time.Minute))
	if got := h.request("GET", "/api/prices/items", "", key); got.StatusCode != http.StatusOK {
		t.Errorf("in the next minute: got status %d, want 200", got.StatusCode)
	}
}

func TestKeys_RefuseInvalidBodies(t *testing.T) {
	h := newHarness(t, nil)
	for body, pointer := range map[string]string{
		`{"scopes":["prices:read"]}`:                                               "/name",
		`{"name":"a"}`:                                                             "/scopes",
		`{"name":"a","scopes":[]}`:                                                 "/scopes",
		`{"name":"A","scopes":["prices:read"]}`:                                    "/name",
		`{"name":"1a","scopes":["prices:read"]}`:                                   "/name",
		`{"name":"a/b","scopes":["prices:read"]}`:                                  "/name",
		`{"name":"` + strings.Repeat("a", 65) + `","scopes":["prices:read"]}`:      "/name",
		`{"name":"a","scopes":["prices:delete"]}`:                                  "/scopes/0",
		`{"name":"a","scopes":["prices:read","prices:read"]}`:                      "/scopes/1",
		`{"name":"a","scopes":["prices:read"],"requestsPerMinute":0}`:              "/requestsPerMinute",
		`{"name":"a","scopes":["prices:read"],"expiresAt":"tomorrow"}`:             "/expiresAt",
		`{"name":"a","scopes":["prices:read"],"expiresAt":"2020-01-01T00:00:00Z"}`: "/expiresAt",
	} {
		got := h.request("POST", "/api/keys", body, asAdmin)
		p := got.problem(t)
		if got.StatusCode != http.StatusBadRequest || pointer != "" && (len(p.Errors) != 1 || p.Errors[0].Pointer != pointer) {
			t.Errorf("%s: got %d %s, want 400 at %q", body, got.StatusCode, got.body, pointer)
		}
	}
	if entries := h.auditLog(); len(entries) != 0 {
		t.Errorf("got %d audit entries after refused requests, want none", len(entries))
	}
}

// TestAudit_RecordsEachWriteOnce sends a request to each route. Only requests that change
// something leave an entry.
func TestAudit_RecordsEachWriteOnce(t *testing.T) {
	for _, op := range newHarness(t, nil).api.routes.operations {
		t.Run(op.method+" "+op.path, func(t *testing.T) {
			h := newHarness(t, trustLoopback)
			path, body := example(op)
			writes := op.method != http.MethodGet && !strings.HasPrefix(op.path, "/api/prices/") && !strings.HasSuffix(op.path, "/quote")
			if writes && strings.HasSuffix(op.path, "/refresh") || strings.HasSuffix(op.path, "/retry-failed") {
				h.must(h.deps.Engine.Cancel(t.Context(), queuedJob))
			}
			before := h.clock.Now()
			got := h.request(op.method, path, body, asAdmin, "Idempotency-Key: k", "X-Request-Id: request-17", "X-Forwarded-For: 203.0.113.7")
			if got.StatusCode >= 300 {
				t.Fatalf("got status %d: %s; want success", got.StatusCode, got.body)
			}
			entries := h.auditLog()
			if !writes {
				if len(entries) != 0 {
					t.Errorf("got the entries %v for a read, want none", entries)
				}
				return
			}
			if len(entries) != 1 {
				t.Fatalf("got %d entries, want 1", len(entries))
			}
			want := view.AuditEntry{Actor: "admin", Address: "203.0.113.7", Action: op.method + " " + op.path, Target: path, RequestID: "request-17"}
			if slices.Contains([]string{"POST /api/keys", "POST /api/operators", "POST /api/webhooks"}, want.Action) {
				want.Target = got.Header.Get("Location")
			}
			at := entries[0].At
			if entries[0].At = (time.Time{}); entries[0] != want {
				t.Errorf("got the entry %+v, want %+v", entries[0], want)
			}
			if at.Before(before.Truncate(time.Microsecond)) || at.After(h.clock.Now()) {
				t.Errorf("got the time %v, want the time of the request, %v", at, before)
			}
		})
	}
}

// Before a webhook is stored, a transaction may number events. It must not have the entry of the webhook.
func TestAudit_RecordsAWebhookOnlyIfItIsStored(t *testing.T) {
	h := newHarness(t, nil)
	create := func(want int) {
		t.Helper()
		h.must(h.store.InTx(t.Context(), func(tx *db.Tx) error { return event.Add(tx, event.LedgerProblem{}) }))
		if got := h.request("POST", "/api/webhooks", `{"url":"`+deadHook+`"}`, asAdmin); got.StatusCode != want {
			t.Fatalf("got %d %s, want %d", got.StatusCode, got.body, want)
		}
	}
	create(http.StatusCreated)
	if log := h.auditLog(); len(log) != 1 || log[0].Target != "/api/webhooks/2" {
		t.Fatalf("got the entries %+v, want one with the target /api/webhooks/2", log)
	}
	for id := 3; id <= webhook.MaxWebhooks; id++ {
		create(http.StatusCreated)
	}
	create(http.StatusConflict)
	if log := h.auditLog(); len(log) != webhook.MaxWebhooks-1 {
		t.Errorf("got %d entries, want one for each of the %d new webhooks", len(log), webhook.MaxWebhooks-1)
	}
}

func TestAudit_NamesTheCredential(t *testing.T) {
	h := newHarness(t, nil)
	key := h.newKey(apikey.Key{Name: "sync", Scopes: []string{"inventory:write"}})
	for _, head := range []header{asPlatform, key} {
		h.request("PUT", "/api/users/new", `{"displayName":"New"}`, head)
	}
	h.request("POST", "/api/market-prices/providers/sim/pause", "", asMarket)
	h.request("PUT", "/api/users/new", `{"steamId":"no"}`, asPlatform) // is refused
	h.request("POST", "/api/market-prices/refresh?dryRun=1", "", asMarket)
	var actors []string
	for _, e := range h.auditLog() {
		actors = append(actors, e.Actor)
	}
	if got := strings.Join(actors, " "); got != "market key:sync platform" {
		t.Errorf("got the actors %q, want market key:sync platform", got)
	}
	if log := h.log.String(); !strings.Contains(log, `"actor":"key:sync"`) {
		t.Errorf("request log: got %s, want the actor key:sync in it", log)
	}
	if got := h.request("GET", "/api/audit?actor=key:sync", "", asAdmin); strings.Count(got.body, `"actor"`) != 1 {
		t.Errorf("got %s, want one entry of the key", got.body)
	}
}
