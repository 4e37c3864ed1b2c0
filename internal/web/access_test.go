package web

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestKeys_ShowASecretOnce(t *testing.T) {
	shownSecret := regexp.MustCompile(`assay_[A-Z2-7]{26}`)
	w := newWorld(t)
	v := w.visit(t, adminToken)
	create := v.post("/keys", "name", "shop", "scope", "prices:read", "perMinute", "600", "days", "30", "back", "/keys")
	if create.StatusCode != http.StatusSeeOther || create.Header.Get("Location") != "/keys" {
		t.Fatalf("got %d to %q, want a redirect to /keys", create.StatusCode, create.Header.Get("Location"))
	}
	body := v.get("/keys").body
	secret := shownSecret.FindString(body)
	k, err := w.keys.Find(t.Context(), secret)
	if err != nil || k == nil || k.Name != "shop" || k.PerMinute != 600 || !k.ExpiresAt.Equal(w.clock.Now().AddDate(0, 0, 30)) {
		t.Fatalf("got the key %+v, %v for the shown secret; want shop with its limit and expiry", k, err)
	}
	if again := v.get("/keys").body; shownSecret.MatchString(again) || !strings.Contains(again, "shop") {
		t.Error("second page: got the secret or no key, want the key without its secret")
	}

	v.post("/keys/shop/rotate", "back", "/keys")
	body = v.get("/keys").body
	next := shownSecret.FindString(body)
	if next == "" || next == secret {
		t.Errorf("got the secret %q after the rotation, want a new one", next)
	}
	mustContain(t, body, "old secret ends", "The old secret stays valid for 24 hours.")
	w.clock.add(23 * time.Hour)
	for _, valid := range []string{secret, next} {
		if k, err := w.keys.Find(t.Context(), valid); err != nil || k == nil {
			t.Errorf("got %v, %v during the rotation, want both secrets valid", k, err)
		}
	}
	v = w.visit(t, adminToken)
	v.post("/keys/shop/revoke", "back", "/keys")
	mustContain(t, v.get("/keys").body, "The key shop is revoked.", "There is no API key.")
	if k, err := w.keys.Find(t.Context(), next); err != nil || k != nil {
		t.Errorf("got %v, %v after the revocation, want no key", k, err)
	}
}

func TestKeys_ExplainInvalidForms(t *testing.T) {
	w := newWorld(t)
	v := w.visit(t, adminToken)
	v.post("/keys", "name", "taken", "scope", "prices:read")
	v.get("/keys")
	before := w.version()
	for message, fields := range map[string][]string{
		"begins with a letter":           {"name", "Shop", "scope", "prices:read"},
		"needs at least one":             {"name", "shop"},
		"Unknown scope":                  {"name", "shop", "scope", "everything"},
		"whole number from 1 to 1000000": {"name", "shop", "scope", "prices:read", "perMinute", "0"},
		"whole number from 1 to 3650":    {"name", "shop", "scope", "prices:read", "days", "x"},
		"an API key with this name":      {"name", "taken", "scope", "prices:read"},
	} {
		mustContain(t, v.post("/keys", append(fields, "back", "/keys")...).body, message)
	}
	v.post("/keys/nope/rotate", "back", "/keys")
	mustContain(t, v.get("/keys").body, "There is no such API key.")
	if w.version() != before {
		t.Error("refused form: got a changed database, want no change")
	}
}

func TestAudit_ShowsWhoChangedWhat(t *testing.T) {
	w := newWorld(t)
	v := w.visit(t, adminToken)
	mustContain(t, v.get("/audit").body, "There are no changes")
	v.post("/providers/sim/pause")
	for range auditPerPage {
		v.post("/providers/sim/resume")
	}
	body := v.get("/audit").body
	mustContain(t, body, "POST /providers/{provider}/resume", "/providers/sim/resume", "192.0.2.1", `rel="next">Older`)
	if strings.Contains(body, "/providers/sim/pause") {
		t.Error("the first page has the oldest entry, want only the newest entries")
	}
	older := regexp.MustCompile(`href="([^"]+)" rel="next"`).FindStringSubmatch(body)
	mustContain(t, v.get(strings.ReplaceAll(older[1], "&amp;", "&")).body, "/providers/sim/pause")
	mustContain(t, v.get("/audit?actor=key:x").body, "No change by API key x is recorded.")
}
