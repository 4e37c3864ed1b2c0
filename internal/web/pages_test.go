package web

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"assay/internal/admission"
	"assay/internal/catalog"
	"assay/internal/fault"
	"assay/internal/refresh"
)

// addresses returns a URL of each page.
func addresses() []string {
	return []string{
		"/", "/live", "/live?run=42", "/runs", "/runs?kind=missing", "/runs?kind=items", "/runs/42", "/runs/42?state=failed", "/runs/42?state=skipped",
		"/providers", "/providers/sim", "/providers/pricelist?period=7d&outcome=failed&q=%3Cscript%3E", "/items", "/items?q=redline", "/items?held=1&sort=-status", "/items?q=%3Cscript%3E", "/items?appId=999", "/items?minMove=1&sort=-dayChange", "/held", "/missing", "/dry-run", "/dry-run?force=1", "/keys", "/operators", "/password", "/search?q=redline", "/search?q=%3Cscript%3E", "/health", "/audit", "/audit?actor=%3Cscript%3E",
		"/users", "/users?q=%3Cscript%3E", "/users/collector", "/users?user=trader&days=90", "/listings", "/listings?state=active&user=%3Cscript%3E", "/trades", "/trades?state=pending", "/sellers",
		"/ledger", "/ledger?of=holds", "/ledger?user=collector", "/fees", "/fees?kind=sale&amount=12.50&currency=USD",
		"/events", "/events?of=market", "/webhooks", "/settings", "/settings?name=%3Cscript%3E",
		itemURL(730, redline, ""), itemURL(730, trapNames[1], ""), itemURL(730, dragonLore, "") + "&range=all",
	}
}

func TestPages_HaveStrictHeaders(t *testing.T) {
	v := newWorld(t).visit(t, adminToken)
	for _, target := range addresses() {
		res := v.get(target)
		if res.StatusCode != http.StatusOK {
			t.Errorf("%s: got status %d, want 200", target, res.StatusCode)
		}
		csp := res.Header.Get("Content-Security-Policy")
		if !strings.HasPrefix(csp, "default-src 'none'; script-src 'self'; style-src 'self'") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: got Content-Security-Policy %q, want only own scripts and styles", target, csp)
		}
		if res.Header.Get("Cache-Control") != "no-store" || res.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: got headers %v, want no-store and nosniff", target, res.Header)
		}
	}
}

func TestPages_EscapeHostileNames(t *testing.T) {
	v := newWorld(t).visit(t, adminToken)
	for _, target := range addresses() {
		body := v.get(target).body
		if strings.Contains(body, "<script>alert") || strings.Contains(body, `value="<script>`) {
			t.Errorf("%s: the page contains an unescaped name, want all names escaped", target)
		}
	}
	mustContain(t, v.get(itemURL(730, trapNames[1], "")).body, "&lt;script&gt;alert(1)&lt;/script&gt;")
}

// TestTemplates_ContainNoInlineCode finds inline code, which the content security policy blocks.
// A page is parsed when it is first shown, so a fault in a template would be found late.
func TestTemplates_Parse(t *testing.T) {
	s := &pages{assets: loadAssets()}
	s.parse()
	for name, parsed := range s.templates {
		if parsed().Lookup("main") == nil {
			t.Errorf("page %s: got no template main, want one", name)
		}
	}
	if n := len(s.templates); n < 20 {
		t.Errorf("got %d pages, want at least 20", n)
	}
}

func TestTemplates_ContainNoInlineCode(t *testing.T) {
	inline := regexp.MustCompile(`(?i)\sstyle=|<style|\son[a-z]+=|<script>|<script [^>]*[^r]>|javascript:|https?://`)
	err := fs.WalkDir(templateFiles, "templates", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := templateFiles.ReadFile(name)
		for _, found := range inline.FindAllString(string(text), -1) {
			t.Errorf("%s: got the inline code %q, want none", name, found)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestRun_GroupsFailuresByError(t *testing.T) {
	w := newWorld(t)
	failures := []refresh.Failure{{Error: "sim: no response within 10 s", Count: 3}, {Error: "pricelist: 503 Service Unavailable", Count: 27}}
	for i := range 23 {
		failures = append(failures, refresh.Failure{Error: fmt.Sprint("error ", i), Count: 1})
	}
	v := w.visit(t, marketSecret)
	body := v.get("/runs/42?state=skipped").body
	mustContain(t, body, "Service Unavailable", "the row of this item was rejected", `<b class="n">27</b>`, `<b class="n">3</b>`, "MP9 | Hot Rod", "no sales lately")
	if strings.Index(body, `<b class="n">27</b>`) > strings.Index(body, `<b class="n">3</b>`) {
		t.Error("got the error of 3 items before the error of 27, want the most frequent error first")
	}
	text, err := json.Marshal(failures)
	must(t, err)
	w.exec(`UPDATE refresh_batch_items SET failures = $1 WHERE job_id = 42`, string(text))
	mustContain(t, v.get("/runs/42").body, `<b class="n">27</b>`, `<b class="n">3</b>`, `<b class="n">5</b> for less frequent errors`)
}

func TestLive_SendsButtonsAfterStateChange(t *testing.T) {
	w := newWorld(t)
	v := w.visit(t, adminToken)
	same := v.get("/live?seen=42.finished")
	if strings.Contains(same.body, `id="actions"`) || same.Header.Get("HX-Trigger") != "" {
		t.Error("got buttons or a trigger, want neither while the state is unchanged")
	}
	mustContain(t, same.body, `hx-trigger="every 5s, stream"`)
	v.post("/runs")
	w.plan()
	changed := v.get("/live?seen=42.finished")
	mustContain(t, changed.body, `id="actions"`, `hx-swap-oob="true"`, `hx-trigger="every 1s, stream"`, "seen=43.running", `aria-valuenow="78"`)
	if changed.Header.Get("HX-Trigger") != "run-changed" {
		t.Errorf("after the state changed: got HX-Trigger %q, want run-changed", changed.Header.Get("HX-Trigger"))
	}
}

func TestPages_ReloadWithoutScripts(t *testing.T) {
	w := newWorld(t)
	v := w.visit(t, adminToken)
	v.post("/runs")
	files := w.handler.(*site).assets.files
	delete(files, htmxFile)
	plain := v.get("/").body
	mustContain(t, plain, "\n"+`<meta http-equiv="refresh" content="3">`)
	if strings.Contains(plain, "htmx.min.js") {
		t.Error("got a link to the missing htmx.min.js, want none")
	}
	files[htmxFile] = asset{version: "1"}
	mustContain(t, v.get("/").body, `<noscript><meta http-equiv="refresh" content="3"></noscript>`, `src="/static/vendor/htmx.min.js?v=1"`)
}

func TestPages_OfEmptyServer(t *testing.T) {
	v := newEmptyWorld(t).visit(t, adminToken)
	mustContain(t, v.get("/").body, "No run yet", "No provider is configured", "MARKET_PRICE_PROVIDERS")
	for _, target := range []string{"/live", "/runs", "/providers", "/items"} {
		if res := v.get(target); res.StatusCode != http.StatusOK {
			t.Errorf("%s: got status %d, want 200", target, res.StatusCode)
		}
	}
}

func TestOverview_ShowsEvents(t *testing.T) {
	body := newWorld(t).visit(t, adminToken).get("/").body
	mustContain(t, body, "The budget (day) of cs2cap is low: 9 of 100 requests left.", `<a href="/runs/42">Run 42 priced 108 of 140 items`,
		"A response of pricelist skinport is in quarantine: the response has 30 names, fewer than half of the 90 names before.")
}

func TestOverview_ShowsRunOfMissingPrices(t *testing.T) {
	w := newWorld(t)
	w.exec(`DELETE FROM refresh_job WHERE kind <> 'missing'`)
	body := w.visit(t, adminToken).get("/").body
	mustContain(t, body, `href="/runs/40">Run 40`, "missing", "items in run 40, missing prices")
	if strings.Contains(body, "No run yet") || strings.Contains(body, "once there was one") {
		t.Error("the page shows no run, want the recorded one")
	}
}

func TestPages_HideInternalErrors(t *testing.T) {
	w := newWorld(t)
	v := w.visit(t, adminToken)
	w.exec(`DROP TABLE refresh_job`)
	w.exec(`DROP TABLE item`)
	for _, target := range []string{"/", "/live", "/runs/42", itemURL(730, "x", "")} {
		res := v.get(target)
		internal := slices.ContainsFunc([]string{"SELECT", "no such table", "refresh_job", w.database.Path}, func(s string) bool { return strings.Contains(res.body, s) })
		if res.StatusCode != http.StatusInternalServerError || internal {
			t.Errorf("%s: got %d %s, want 500 without the internal error", target, res.StatusCode, res.body)
		}
	}
}

func TestPages_OfBusyServerSuggestRetry(t *testing.T) {
	w := newWorld(t)
	v := w.visit(t, adminToken)
	leave, err := w.gate.Enter(t.Context(), admission.Search)
	must(t, err)
	defer leave()
	synctest.Test(t, func(t *testing.T) { // the request waits for the only slot
		if res := v.get("/items"); res.StatusCode != http.StatusServiceUnavailable || !strings.Contains(res.body, "Retry later.") {
			t.Errorf("busy server: got status %d, want 503 and a hint to retry", res.StatusCode)
		}
	})
}

func TestRefuse_SendsPagesToBrowsersAndProblemsToOthers(t *testing.T) {
	w := newWorld(t)
	v := w.visit(t, adminToken)
	mustContain(t, v.get("/nowhere").body, "There is no page at this address.", "Sign out")
	for method, want := range map[string]int{http.MethodGet: http.StatusNotFound, http.MethodDelete: http.StatusMethodNotAllowed} {
		target := map[string]string{http.MethodGet: "/nowhere", http.MethodDelete: "/runs"}[method]
		r := httptest.NewRequest(method, target, nil)
		r.Header.Set("Accept", "*/*")
		res := v.send(r)
		if res.StatusCode != want || res.Header.Get("Content-Type") != "application/problem+json" || !strings.Contains(res.body, `"code":`) {
			t.Errorf("%s %s: got %d %s, want %d and a problem", method, target, res.StatusCode, res.body, want)
		}
		if allow := res.Header.Get("Allow"); (allow == "GET, HEAD, POST") != (method == http.MethodDelete) {
			t.Errorf("%s %s: got Allow %q, want GET, HEAD, POST with 405 and none with 404", method, target, allow)
		}
	}
}

// A browser requests the address of a form when the user reloads or bookmarks the result of the form.
func TestRefuse_AddressOfFormRedirectsToPageAbove(t *testing.T) {
	v := newWorld(t).visit(t, adminToken)
	for target, want := range map[string]string{
		"/ledger/verify?user=u1":                           "/ledger?user=u1",
		"/ledger/verify-all":                               "/ledger",
		"/runs/42/retry-failed":                            "/runs/42",
		"/items/accept":                                    "/items",
		"/item/accept?appId=730&name=x":                    "/item?appId=730&name=x",
		"/webhooks/1/deliveries/7/resend":                  "/webhooks/1",
		"/operators/anna/role":                             "/operators",
		"/providers/a%2Fb/pause?q=%22%0D%0A":               "/providers/a%2Fb?q=%22%0D%0A",
		"/sign-out":                                        "/",
		"/providers/%3Cscript%3E/test?next=//example.com/": "/providers/%3Cscript%3E?next=//example.com/",
	} {
		for method, status := range map[string]int{http.MethodGet: http.StatusSeeOther, http.MethodHead: http.StatusSeeOther, http.MethodDelete: http.StatusMethodNotAllowed} {
			res := v.send(httptest.NewRequest(method, target, nil))
			if got := res.Header.Get("Location"); res.StatusCode != status || status == http.StatusSeeOther && got != want {
				t.Errorf("%s %s: got %d with Location %q, want %d and %q", method, target, res.StatusCode, got, status, want)
			}
			if allow := res.Header.Get("Allow"); status == http.StatusMethodNotAllowed && allow != http.MethodPost {
				t.Errorf("%s %s: got Allow %q, want POST", method, target, allow)
			}
		}
	}
}

func TestRefuse_ProblemHasRequestID(t *testing.T) {
	w := newWorld(t)
	for method, target := range map[string]string{http.MethodGet: "/static/nope.js", http.MethodPost: "/nowhere", http.MethodDelete: "/runs"} {
		rec := httptest.NewRecorder()
		rec.Header().Set("X-Request-Id", "r-17") // the API sets this header first
		w.handler.ServeHTTP(rec, httptest.NewRequest(method, target, nil))
		var p fault.Problem
		if err := json.Unmarshal(rec.Body.Bytes(), &p); err != nil || rec.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s %s: got %d, want a problem: %s", method, target, rec.Code, rec.Body)
		}
		if p.RequestID != "r-17" || p.Status != rec.Code || p.Code == "" || p.Detail == "" || p.Title == "" {
			t.Errorf("%s %s: got the problem %s, want all members", method, target, rec.Body)
		}
	}
}

func TestServe_DoesNotRedirectSimilarPaths(t *testing.T) {
	v := newWorld(t).visit(t, adminToken)
	for _, target := range []string{"//api/health", "/x/../api/health", "/./docs", "//runs", "/runs/../items", "/runs//42", "/runs/", "/static/../runs"} {
		r := httptest.NewRequest(http.MethodGet, "http://assay.example/", nil)
		r.URL.Path = target
		if res := v.send(r); res.StatusCode != http.StatusNotFound || res.Header.Get("Location") != "" {
			t.Errorf("%s: got %d with Location %q, want 404 without one", target, res.StatusCode, res.Header.Get("Location"))
		}
	}
}

func TestStatic_IsCachedPermanently(t *testing.T) {
	v := &visitor{t: t, world: newWorld(t)}
	link := v.world.handler.(*site).assets.link("app.css")
	for target, want := range map[string]string{
		link:                  "public, max-age=31536000, immutable",
		"/static/app.css":     "no-cache",
		"/static/app.css?v=x": "no-cache",
	} {
		res := v.get(target)
		if res.StatusCode != http.StatusOK || res.Header.Get("Cache-Control") != want || res.Header.Get("Content-Type") != "text/css; charset=utf-8" {
			t.Errorf("%s: got %d %v, want 200, text/css and Cache-Control %s", target, res.StatusCode, res.Header, want)
		}
	}
	for _, target := range []string{"/static/", "/static/none.css", "/static/%2e%2e/web.go"} {
		if res := v.get(target); res.StatusCode != http.StatusNotFound {
			t.Errorf("%s: got status %d, want 404", target, res.StatusCode)
		}
	}
}

// TestDryRun_IsAtMostFifteenSecondsOld opens the forecast again while items are added.
func TestDryRun_IsAtMostFifteenSecondsOld(t *testing.T) {
	w := newWorld(t)
	v := w.visit(t, adminToken)
	scope := regexp.MustCompile(`Items in scope</dt><dd>(\d+)<`)
	count := func() string { return scope.FindStringSubmatch(v.get("/dry-run").body)[1] }
	first := count()
	w.own("collector", catalog.Key{AppID: catalog.CS2, Name: "A new item"})
	w.clock.add(14 * time.Second)
	if got := count(); got != first {
		t.Errorf("after 14 s: got %s items, want %s", got, first)
	}
	w.clock.add(2 * time.Second)
	if got := count(); got == first {
		t.Errorf("after 16 s: got %s items, want one more", got)
	}
}
