package web

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"assay/internal/access"
	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/operator"
)

func TestPages_RedirectToSignIn(t *testing.T) {
	w := newWorld(t)
	v := &visitor{t: t, world: w}
	for target, want := range map[string]string{
		"/":                           "/sign-in",
		"/runs/42?state=failed":       "/sign-in?next=" + url.QueryEscape("/runs/42?state=failed"),
		itemURL(730, "a/b ..", ""):    "/sign-in?next=" + url.QueryEscape(itemURL(730, "a/b ..", "")),
		"/live?seen=none":             "/sign-in",
		"/items?q=%22%3E%3Cscript%3E": "/sign-in?next=" + url.QueryEscape("/items?q=%22%3E%3Cscript%3E"),
	} {
		res := v.get(target)
		if res.StatusCode != http.StatusSeeOther || res.Header.Get("Location") != want {
			t.Errorf("%s: got %d with Location %q, want a redirect to %q", target, res.StatusCode, res.Header.Get("Location"), want)
		}
	}
	script := httptest.NewRequest(http.MethodGet, "/live", nil)
	script.Header.Set("HX-Request", "true")
	if res := v.send(script); res.StatusCode != http.StatusUnauthorized || res.Header.Get("HX-Refresh") != "true" || res.body != "" {
		t.Errorf("script without a session: got %d, body %q, want 401, HX-Refresh and no body", res.StatusCode, res.body)
	}
}

func TestSignIn_OpensSessionWithRoleOfSecret(t *testing.T) {
	w := newWorld(t)
	for secret, role := range map[string]string{marketSecret: "Read only", adminToken: "Admin"} {
		v := w.visit(t, secret)
		c := v.cookie
		if c.Name != "assay_session" || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Secure || len(c.Value) != 43 {
			t.Errorf("got cookie %+v, want a strict, HTTP-only session cookie", c)
		}
		mustContain(t, v.get("/").body, ">"+role+"</span>")
	}
}

func TestSignIn_SecureCookieOnlyBehindTrustedProxy(t *testing.T) {
	w := newWorld(t)
	for peer, want := range map[string]bool{"10.1.2.3:1000": true, "203.0.113.9:1000": false} {
		v := &visitor{t: t, world: w}
		r := v.form("/sign-in", "secret", adminToken)
		r.RemoteAddr = peer
		r.Header.Set("X-Forwarded-Proto", "https")
		c := v.send(r).Cookies()[0]
		if c.Secure != want || strings.HasPrefix(c.Name, "__Host-") != want {
			t.Errorf("from %s: got cookie %+v, want Secure and the prefix __Host- only over HTTPS", peer, c)
		}
	}
}

func TestSignIn_RedirectsOnlyToLocalPaths(t *testing.T) {
	w := newWorld(t)
	for next, want := range map[string]string{
		"/runs/42?state=failed": "/runs/42?state=failed",
		"":                      "/",
		"runs":                  "/",
		"https://evil.example/": "/",
		"//evil.example/":       "/",
		"/\\evil.example/":      "/",
		"/\t/evil.example/":     "/",
		"\\\\evil.example":      "/",
		"javascript:alert(1)":   "/",
		"/%zz":                  "/",
	} {
		v := &visitor{t: t, world: w}
		if got := v.post("/sign-in", "secret", adminToken, "next", next).Header.Get("Location"); got != want {
			t.Errorf("next %q: got a redirect to %q, want %q", next, got, want)
		}
	}
}

func TestSignIn_CountsWrongSecretsAndAcceptsValidOnes(t *testing.T) {
	w := newWorld(t)
	synctest.Test(t, func(t *testing.T) { // responses to wrong secrets are delayed
		v := &visitor{t: t, world: w}
		start := time.Now()
		for i := range access.MaxFailures + 3 {
			res := v.post("/sign-in", "secret", "wrong", "next", "/runs")
			want, wait := http.StatusUnauthorized, ""
			if i >= access.MaxFailures {
				want, wait = http.StatusTooManyRequests, "60"
			}
			if res.StatusCode != want || res.Header.Get("Retry-After") != wait || len(res.Cookies()) != 0 {
				t.Errorf("attempt %d: got %d, Retry-After %q, want %d, %q and no cookie", i+1, res.StatusCode, res.Header.Get("Retry-After"), want, wait)
			}
			mustContain(t, res.body, `role="alert"`, `aria-invalid="true"`, `name="next" value="/runs"`)
		}
		if time.Since(start) < time.Minute {
			t.Errorf("all attempts took %v, want at least 1m because of the delays", time.Since(start))
		}
		for _, empty := range []string{"", " ", strings.Repeat("x", maxForm+1)} {
			if res := v.post("/sign-in", "secret", empty); len(res.Cookies()) != 0 {
				t.Errorf("secret of %d bytes: got a session, want none", len(empty))
			}
		}
	})
	w.visit(t, marketSecret)
}

func TestSignIn_ReplacesPreviousSession(t *testing.T) {
	w := newWorld(t)
	v := w.visit(t, marketSecret)
	former := *v
	v.cookie = v.post("/sign-in", "secret", adminToken).Cookies()[0]
	if res := former.get("/"); res.StatusCode != http.StatusSeeOther {
		t.Errorf("previous session: got status %d, want a redirect", res.StatusCode)
	}
	if res := v.get("/"); res.StatusCode != http.StatusOK {
		t.Errorf("new session: got status %d, want 200", res.StatusCode)
	}
}

func TestSignIn_RejectsOtherSites(t *testing.T) {
	w := newWorld(t)
	v := &visitor{t: t, world: w}
	r := v.form("/sign-in", "secret", adminToken)
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	if res := v.send(r); res.StatusCode != http.StatusForbidden || len(res.Cookies()) != 0 {
		t.Errorf("form from another site got status %d and %d cookies, want %d and none", res.StatusCode, len(res.Cookies()), http.StatusForbidden)
	}
}

func TestSignOut_EndsSession(t *testing.T) {
	w := newWorld(t)
	v := w.visit(t, marketSecret)
	res := v.post("/sign-out")
	if res.StatusCode != http.StatusSeeOther || res.Cookies()[0].MaxAge >= 0 {
		t.Errorf("sign-out: got %d with cookies %v, want a redirect that deletes the cookie", res.StatusCode, res.Cookies())
	}
	if res := v.get("/"); res.StatusCode != http.StatusSeeOther {
		t.Errorf("session after sign-out: got status %d, want a redirect", res.StatusCode)
	}
}

func TestSession_EndsWhenSecretIsRotated(t *testing.T) {
	w := newWorld(t)
	reader, admin := w.visit(t, marketSecret), w.visit(t, adminToken)
	w.rotate(Admin, adminToken, "the-next-token-of-the-tests")
	if res := admin.get("/"); res.StatusCode != http.StatusOK {
		t.Errorf("old and new secret valid: got status %d, want 200", res.StatusCode)
	}
	w.rotate(Admin, "the-next-token-of-the-tests")
	if res := admin.get("/"); res.StatusCode != http.StatusSeeOther {
		t.Errorf("after the rotation: got status %d, want a redirect", res.StatusCode)
	}
	w.rotate(Admin, adminToken)
	if res := admin.get("/"); res.StatusCode != http.StatusSeeOther {
		t.Errorf("ended session after the secret is valid again: got status %d, want a redirect", res.StatusCode)
	}
	if res := reader.get("/"); res.StatusCode != http.StatusOK {
		t.Errorf("session of the other secret: got status %d, want 200", res.StatusCode)
	}
}

func TestSession_ExpiresWhenIdle(t *testing.T) {
	w := newWorld(t)
	v := w.visit(t, adminToken)
	w.clock.add(operator.IdleTimeout + time.Second)
	if res := v.get("/runs"); res.StatusCode != http.StatusSeeOther {
		t.Errorf("after the idle time: got status %d, want a redirect", res.StatusCode)
	}
}

// actions returns every form of the page that only admins may send.
func actions() []string {
	return []string{
		"/runs", "/runs/42/cancel", "/runs/42/retry-failed", "/providers/sim/pause", "/providers/sim/resume", "/providers/pricelist/accept",
		"/users/resync?user=collector", "/trades/1/complete", "/trades/1/reverse", "/ledger/verify?user=collector", "/ledger/verify-all", "/fees/activate", "/fees/rollback?version=1",
		"/keys", "/keys/shop/rotate", "/keys/shop/revoke", "/providers/sim/test",
		"/webhooks", "/webhooks/1", "/webhooks/1/enable", "/webhooks/1/disable", "/webhooks/1/rotate", "/webhooks/1/delete", "/webhooks/1/test", "/webhooks/1/deliveries/1/resend",
		"/operators", "/operators/anna/password", "/operators/anna/role", "/operators/anna/disable", "/operators/anna/enable",
		"/item/accept?" + itemQuery(catalog.Key{AppID: catalog.CS2, Name: dragonLore}),
	}
}

func TestActions_RejectForeignForms(t *testing.T) {
	w := newWorld(t)
	v := w.visit(t, adminToken)
	other := w.visit(t, adminToken)
	before := w.version()
	for _, target := range append(actions(), "/password", "/sign-out") {
		foreign := map[string]*http.Request{
			"no token":           v.form(target, "csrf", ""),
			"a wrong token":      v.form(target, "csrf", "x"),
			"another's token":    v.form(target, "csrf", other.csrf),
			"from another site":  v.form(target),
			"another's origin":   v.form(target),
			"token in the query": v.form(target+"?csrf="+v.csrf, "csrf", ""),
		}
		foreign["from another site"].Header.Set("Sec-Fetch-Site", "cross-site")
		foreign["another's origin"].Header.Del("Sec-Fetch-Site")
		foreign["another's origin"].Header.Set("Origin", "http://evil.example")
		for what, r := range foreign {
			if res := v.send(r); res.StatusCode != http.StatusForbidden {
				t.Errorf("%s, %s: got status %d, want 403", target, what, res.StatusCode)
			}
		}
	}
	if w.version() != before {
		t.Error("rejected form: got a changed database, want no change")
	}
}

func TestActions_RequireAdminToken(t *testing.T) {
	w := newWorld(t)
	v := w.visit(t, marketSecret)
	before := w.version()
	for _, target := range actions() {
		if res := v.post(target); res.StatusCode != http.StatusForbidden {
			t.Errorf("%s: got status %d, want 403", target, res.StatusCode)
		}
		if res := (&visitor{t: t, world: w}).post(target); res.Header.Get("Location") != "/sign-in" {
			t.Errorf("%s without a session: got status %d, want a redirect to sign-in", target, res.StatusCode)
		}
	}
	if res := v.get("/dry-run"); res.StatusCode != http.StatusForbidden {
		t.Errorf("dry run: got status %d, want 403", res.StatusCode)
	}
	if w.version() != before {
		t.Error("rejected form: got a changed database, want no change")
	}
	mustContain(t, v.get("/").body, "Sign in with the admin token", `value="0" disabled>Start`, "disabled>Dry run", "disabled>Retry failed")
	mustContain(t, v.get("/providers").body, "disabled>Pause", "disabled>Accept")
}

func TestSignIn_ExplainsReadOnlyDatabase(t *testing.T) {
	w := newWorld(t)
	v := w.visit(t, adminToken)
	path := filepath.Join(t.TempDir(), "read-only.db")
	w.exec(`VACUUM INTO $1`, path)
	readOnly := dbtest.Database{Engine: dbtest.SQLite, Path: path}.Open(t, db.Options{Now: w.clock.Now, ReadOnly: true})
	w.handler.(*site).Operators.DB = readOnly
	res := (&visitor{t: t, world: w}).post("/sign-in", "secret", adminToken)
	if res.StatusCode != http.StatusServiceUnavailable || len(res.Cookies()) > 0 {
		t.Errorf("sign-in: got status %d with %d cookies, want 503 without one", res.StatusCode, len(res.Cookies()))
	}
	mustContain(t, res.body, "Sign-in is not possible now", "Browsers that are signed in keep working.", "The database is open for reading only", `name="secret"`)
	if res := v.get("/runs"); res.StatusCode != http.StatusOK {
		t.Errorf("open session: got status %d, want 200", res.StatusCode)
	}
	if res := (&visitor{t: t, world: w}).post("/sign-in", "secret", "wrong"); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("wrong secret: got status %d, want 401", res.StatusCode)
	}
}
