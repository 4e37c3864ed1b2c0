package web

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// asking returns the handler with a page that has an action that needs a confirmation. It counts
// the actions in done.
func asking(w *world, done *int) http.Handler {
	s := w.handler.(*site)
	s.mux.HandleFunc("POST /try", s.act(Admin, func(rw http.ResponseWriter, r *http.Request, sess session) error {
		ok, err := s.confirmed(rw, r, sess, confirmation{Question: "Accept 12 held prices?", Text: "They apply at once.", Button: "Accept 12 prices"})
		if !ok {
			return err
		}
		*done++
		return s.done(rw, r, sess, flash{Good: true, Text: "12 prices are accepted."}, nil)
	}))
	s.mux.HandleFunc("GET /try", s.read(Read, func(rw http.ResponseWriter, _ *http.Request, sess session) error {
		_, err := rw.Write([]byte(`<!DOCTYPE html><html lang="en"><head><title>x</title><link rel="icon" href="/static/mark.svg"><link rel="stylesheet" href="/static/app.css">
			<script src="/static/dialog.js" defer></script></head><body><main>
			<form data-confirm action="/try" method="post"><input type="hidden" name="csrf" value="` + sess.csrf + `"><input type="hidden" name="back" value="/runs"><button id="go" name="what" value="all">Accept</button></form></main></body></html>`))
		return err
	}))
	return s
}

func TestConfirmed_AsksOnPageWithoutScripts(t *testing.T) {
	w, done := newWorld(t), 0
	asking(w, &done)
	v := w.visit(t, adminToken)
	res := v.post("/try", "what", `all"`, "back", "/runs")
	mustContain(t, res.body, "Accept 12 held prices?", `name="what" value="all&#34;"`, `name="csrf"`, `name="confirmed" value="1"`, `href="/runs"`)
	if res.StatusCode != http.StatusOK || done != 0 {
		t.Errorf("first post: got status %d and %d actions, want 200 and none", res.StatusCode, done)
	}
	if res := v.post("/try", "confirmed", "1", "back", "/runs"); res.Header.Get("Location") != "/runs" || done != 1 {
		t.Errorf("confirmed post: got %q and %d actions, want a redirect and one", res.Header.Get("Location"), done)
	}
}

func TestBrowser_AsksInDialog(t *testing.T) {
	w, done := newWorld(t), 0
	server := httptest.NewServer(asking(w, &done))
	t.Cleanup(server.Close)
	b := openBrowser(t, server.URL)
	b.signIn(adminToken)
	b.open("/try")
	b.do(chromedp.Click(chromedp.CSS("#go")), chromedp.WaitVisible(chromedp.CSS("dialog #question")))
	b.do(chromedp.Click(chromedp.CSS("dialog [data-close]")))
	b.until("the closed dialog", `!document.querySelector("dialog") && document.activeElement.id === "go"`)
	b.do(chromedp.Click(chromedp.CSS("#go")), chromedp.Click(chromedp.CSS(`dialog [name="confirmed"]`)))
	if notice := b.text(".notice"); !strings.Contains(notice, "12 prices are accepted") || done != 1 {
		t.Errorf("got the notice %q and %d actions, want one action", notice, done)
	}
	b.quiet()

	b.open("/try")
	eval[string](b, `document.querySelector("[name=csrf]").value = "of another session"`)
	b.do(chromedp.Click(chromedp.CSS("#go")))
	b.until("the reason of a refusal", `document.activeElement.matches("main h1") && document.querySelector("main").textContent.includes("belongs to another session")`)
}
