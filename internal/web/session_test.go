package web

import (
	"net/http"
	"strings"
	"testing"

	"assay/internal/config"
)

func TestSession_SurvivesRestartAndHoldsOnOtherInstances(t *testing.T) {
	w := newWorld(t)
	v := w.visit(t, adminToken)
	v.post("/runs")
	w.serve() // another instance with the same database and secrets
	mustContain(t, v.get("/").body, "Run 43 is started")
	if res := v.post("/runs/43/cancel", "confirmed", "1"); res.StatusCode != http.StatusSeeOther {
		t.Errorf("form of the first instance: got status %d, want a redirect", res.StatusCode)
	}
	w.rotate(Admin, "the-next-token-of-the-tests")
	if res := v.get("/"); res.StatusCode != http.StatusSeeOther {
		t.Errorf("after a restart with another secret: got status %d, want a redirect", res.StatusCode)
	}
}

func TestSession_StoresNoSecret(t *testing.T) {
	w := newWorld(t)
	v := w.visit(t, adminToken)
	row := w.read(`SELECT id || ' ' || bond FROM web_session`)
	if strings.Contains(row, v.cookie.Value) || strings.Contains(row, v.csrf) || strings.Contains(row, adminToken) {
		t.Errorf("got the row %q, want only hashes", row)
	}
	if a, b := (config.Fingerprint{1}).Bond("x"), (config.Fingerprint{1}).Bond("y"); a == b {
		t.Error("got the same bond for two tokens of one secret, want different bonds")
	}
}

func TestFlash_IsShownOnce(t *testing.T) {
	v := newWorld(t).visit(t, adminToken)
	v.post("/providers/sim/pause", "back", "/providers")
	if v.flash == nil || !v.flash.HttpOnly || strings.Contains(v.flash.Value, "paused") {
		t.Fatalf("got the cookie %v, want one that scripts cannot read", v.flash)
	}
	mustContain(t, v.get("/providers").body, "sim is paused")
	if strings.Contains(v.get("/providers").body, "sim is paused") {
		t.Error("the page shows the message twice, want once")
	}
}

func TestFlash_OfAnotherSessionIsIgnored(t *testing.T) {
	w := newWorld(t)
	v, other := w.visit(t, adminToken), w.visit(t, adminToken)
	v.post("/providers/sim/pause", "back", "/providers")
	other.flash = v.flash
	if strings.Contains(other.get("/providers").body, "sim is paused") {
		t.Error("the page shows a message that another session signed, want none")
	}
	v.post("/providers/"+strings.Repeat("x", 5000)+"/pause", "back", "/providers")
	if v.flash == nil || len(v.flash.Value) > 4000 {
		t.Errorf("long message: got a cookie of more than 4000 bytes or none, want a short one")
	}
}

func TestOperators_SignInWithNameAndRole(t *testing.T) {
	w := newWorld(t)
	admin := w.visit(t, adminToken)
	const password = "a-password-of-anna"
	for _, bad := range [][]string{{"name", "Anna", "role", "admin", "password", password}, {"name", "anna", "role", "owner", "password", password}, {"name", "anna", "role", "read", "password", "short"}} {
		if body := admin.post("/operators", append(bad, "back", "/operators")...).body; strings.Contains(body, `<th scope="row">`) || !strings.Contains(body, `id="problem"`) {
			t.Errorf("operator %v: got a new operator or no error message, want only an error message", bad)
		}
	}
	admin.post("/operators", "name", "anna", "role", "admin", "password", password)
	admin.post("/operators", "name", "ben", "role", "read", "password", "a-password-of-ben")

	anna := w.visitAs(t, "anna", password)
	mustContain(t, anna.get("/").body, ">anna</a> · Admin</span>")
	anna.post("/runs")
	if got := w.read(`SELECT requested_by FROM refresh_job ORDER BY id DESC LIMIT 1`); got != "operator:anna" {
		t.Errorf("requester of the run: got %q, want operator:anna", got)
	}
	if got := w.read(`SELECT actor FROM audit_entry ORDER BY id DESC LIMIT 1`); got != "operator:anna" {
		t.Errorf("actor of the audit log: got %q, want operator:anna", got)
	}
	mustContain(t, anna.get("/runs/43").body, "<dt>Requested by</dt><dd>anna</dd>")
	mustContain(t, anna.get("/audit").body, `<a href="/audit?actor=operator%3aanna" title="Only entries of operator:anna">anna</a>`)
	ben := w.visitAs(t, "ben", "a-password-of-ben")
	mustContain(t, ben.get("/").body, ">ben</a> · Read only</span>")
	if res := ben.post("/runs"); res.StatusCode != http.StatusForbidden {
		t.Errorf("reader starts a run: got status %d, want 403", res.StatusCode)
	}
	v := &visitor{t: t, world: w}
	for _, wrong := range [][]string{{"anna", "a-password-of-ben"}, {"carl", password}, {"anna", adminToken}, {"admin", adminToken}} {
		res := v.post("/sign-in", "name", wrong[0], "secret", wrong[1])
		if res.StatusCode != http.StatusUnauthorized && res.StatusCode != http.StatusTooManyRequests {
			t.Errorf("%v: got status %d, want 401", wrong, res.StatusCode)
		}
	}

	admin.post("/operators/anna/password", "password", "the-next-password-of-anna")
	if res := anna.get("/"); res.StatusCode != http.StatusSeeOther {
		t.Errorf("session after a new password: got status %d, want a redirect", res.StatusCode)
	}
	w.visitAs(t, "anna", "the-next-password-of-anna")
	admin.post("/operators/ben/disable")
	if res := ben.get("/"); res.StatusCode != http.StatusSeeOther {
		t.Errorf("session of a disabled operator: got status %d, want a redirect", res.StatusCode)
	}
}

func TestPassword_IsChangedByItsOperator(t *testing.T) {
	w := newWorld(t)
	admin := w.visit(t, adminToken)
	const old, next = "a-password-of-ben", "the-next-password-of-ben"
	admin.post("/operators", "name", "ben", "role", "read", "password", old)
	ben, other := w.visitAs(t, "ben", old), w.visitAs(t, "ben", old)
	mustContain(t, ben.get("/password").body, `name="current"`, `name="again"`)
	for message, fields := range map[string][]string{
		"The current password is wrong.":         {"current", next, "password", next, "again", next},
		"The two new passwords differ.":          {"current", old, "password", next, "again", old},
		"A password has at least 12 characters":  {"current", old, "password", "short", "again", "short"},
		"The current password is wrong. Nothing": {"password", next, "again", next},
	} {
		ben.post("/password", append(fields, "back", "/password")...)
		mustContain(t, ben.get("/password").body, message)
	}
	res := ben.post("/password", "current", old, "password", next, "again", next, "back", "/password")
	for _, c := range res.Cookies() {
		if c.Name == tokenCookie {
			ben.cookie = c
		}
	}
	mustContain(t, ben.get("/password").body, "Your password is changed.", ">ben</a> · Read only")
	if res := other.get("/"); res.StatusCode != http.StatusSeeOther {
		t.Errorf("another session after the change: got status %d, want a redirect to the sign-in", res.StatusCode)
	}
	w.visitAs(t, "ben", next)
	admin.post("/operators/ben/role", "role", "admin", "back", "/operators")
	mustContain(t, admin.get("/operators").body, "The operator ben has the role admin.", "Make ben read-only")
	mustContain(t, w.visitAs(t, "ben", next).get("/").body, ">ben</a> · Admin")

	mustContain(t, admin.get("/password").body, "opened with a secret of the settings")
	admin.post("/password", "current", adminToken, "password", next, "again", next, "back", "/password")
	mustContain(t, admin.get("/password").body, "belongs to no operator")
}
