package web

import (
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// visitor is a browser without scripts. It stores the cookie and form token of its session.
type visitor struct {
	t      *testing.T
	world  *world
	cookie *http.Cookie
	flash  *http.Cookie // nil: no message
	csrf   string
}

// reply is the response to a visitor's request.
type reply struct {
	*http.Response
	body string
}

var csrfField = regexp.MustCompile(`name="csrf" value="([^"]+)"`)

func (v *visitor) send(r *http.Request) reply {
	v.t.Helper()
	for _, c := range []*http.Cookie{v.cookie, v.flash} {
		if c != nil {
			r.AddCookie(c)
		}
	}
	if r.Header.Get("Accept") == "" {
		r.Header.Set("Accept", "text/html")
	}
	rec := httptest.NewRecorder()
	v.world.handler.ServeHTTP(rec, r)
	res := rec.Result()
	for _, c := range res.Cookies() {
		if strings.HasSuffix(c.Name, flashCookie) {
			if v.flash = c; c.MaxAge < 0 {
				v.flash = nil
			}
		}
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return reply{res, string(body)}
}

func (v *visitor) get(target string) reply {
	v.t.Helper()
	return v.send(httptest.NewRequest(http.MethodGet, target, nil))
}

// form returns the request that a form of the page sends.
func (v *visitor) form(target string, fields ...string) *http.Request {
	values := url.Values{"csrf": {v.csrf}}
	for i := 0; i+1 < len(fields); i += 2 {
		values.Set(fields[i], fields[i+1])
	}
	r := httptest.NewRequest(http.MethodPost, target, strings.NewReader(values.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return r
}

func (v *visitor) post(target string, fields ...string) reply {
	v.t.Helper()
	return v.send(v.form(target, fields...))
}

// visit signs in with the given secret.
func (w *world) visit(t *testing.T, secret string) *visitor {
	t.Helper()
	return w.visitAs(t, "", secret)
}

// visitAs signs in as an operator.
func (w *world) visitAs(t *testing.T, name, secret string) *visitor {
	t.Helper()
	v := &visitor{t: t, world: w}
	res := v.post("/sign-in", "name", name, "secret", secret)
	if res.StatusCode != http.StatusSeeOther || len(res.Cookies()) != 1 {
		t.Fatalf("sign-in: got status %d with %d cookies, want a redirect with one", res.StatusCode, len(res.Cookies()))
	}
	v.cookie = res.Cookies()[0]
	found := csrfField.FindStringSubmatch(v.get("/").body)
	if found == nil {
		t.Fatal("the page has no form token")
	}
	v.csrf = html.UnescapeString(found[1])
	return v
}

func mustContain(t *testing.T, body string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}
