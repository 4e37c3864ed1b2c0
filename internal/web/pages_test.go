package web

import (
	"encoding/json"
	"html"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"assay/internal/catalog"
	"assay/internal/fault"
	"assay/internal/provider"
	"assay/internal/view"
)

// addresses returns a URL of each page.
func addresses() []string {
	return []string{
		"/", "/live", "/live?run=42", "/runs", "/runs?kind=missing", "/runs/42", "/runs/42?state=failed", "/runs/42?state=skipped",
		"/providers", "/items", "/items?q=redline", "/items?held=1&sort=-status", "/items?q=%3Cscript%3E", "/items?appId=999", "/dry-run", "/dry-run?force=1",
		itemURL(730, "AK-47 | Redline (Field-Tested)", ""), itemURL(730, trapNames[1], ""),
	}
}

func TestPages_HaveStrictHeaders(t *testing.T) {
	v := newWorld(t).visit(t, adminToken)
	for _, target := range addresses() {
		res := v.get(target)
		if res.StatusCode != http.StatusOK {
			t.Errorf("%s: %d", target, res.StatusCode)
		}
		csp := res.Header.Get("Content-Security-Policy")
		if !strings.HasPrefix(csp, "default-src 'none'; script-src 'self'; style-src 'self'") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: policy %q", target, csp)
		}
		if res.Header.Get("Cache-Control") != "no-store" || res.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: headers %v", target, res.Header)
		}
	}
}

func TestPages_EscapeHostileNames(t *testing.T) {
	v := newWorld(t).visit(t, adminToken)
	for _, target := range addresses() {
		body := v.get(target).body
		if strings.Contains(body, "<script>alert") || strings.Contains(body, `value="<script>`) {
			t.Errorf("%s contains an unescaped name", target)
		}
	}
	mustContain(t, v.get(itemURL(730, trapNames[1], "")).body, "&lt;script&gt;alert(1)&lt;/script&gt;")
}

// TestTemplates_ContainNoInlineCode keeps the content security policy working in browsers.
func TestTemplates_ContainNoInlineCode(t *testing.T) {
	inline := regexp.MustCompile(`(?i)\sstyle=|<style|\son[a-z]+=|<script>|<script [^>]*[^r]>|javascript:|https?://`)
	err := fs.WalkDir(templateFiles, "templates", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := templateFiles.ReadFile(name)
		for _, found := range inline.FindAllString(string(text), -1) {
			t.Errorf("%s: %q", name, found)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

var itemLink = regexp.MustCompile(`<a class="item" href="([^"]+)">`)

// TestItems_TrapNamesHaveWorkingLinks follows the links of the search results.
func TestItems_TrapNamesHaveWorkingLinks(t *testing.T) {
	w := newWorld(t)
	v := w.visit(t, marketSecret)
	reached := map[string]bool{}
	for _, link := range itemLink.FindAllStringSubmatch(v.get("/items").body, -1) {
		target := html.UnescapeString(link[1])
		parsed, err := url.ParseRequestURI(target)
		if err != nil || parsed.Path != "/item" || parsed.Fragment != "" {
			t.Fatalf("link %q: %v", target, err)
		}
		if res := v.get(target); res.StatusCode != http.StatusOK {
			t.Errorf("%q: %d", target, res.StatusCode)
		}
		reached[parsed.Query().Get("name")] = true
	}
	for _, name := range trapNames {
		if !reached[name] {
			t.Errorf("no link to %q", name)
		}
	}
}

func TestItem_ExplainsUnusedQuotes(t *testing.T) {
	v := newWorld(t).visit(t, marketSecret)
	mustContain(t, v.get(itemURL(730, "AK-47 | Redline (Field-Tested)", "")).body,
		"$32.04", `value="32.04125"`, "outside the deciding group of quotes", "no offers or sales", "own data is more than 7 days old",
		"resells the listings of another market", "the price is their median", "1.02×", "last sale", "€28.99", "1 EUR = 1.0834 USD", "is held</b> since", "Off the scale: Ingot", "26 min ago",
		`title="2026-10-05 13:37:22 UTC"`)
}

// The interval belongs to the newest estimate. If the estimate is held, the interval must not
// be shown next to the accepted price, which may be outside of it.
func TestItem_ShowsIntervalNextToItsPrice(t *testing.T) {
	w := newWorld(t)
	v := w.visit(t, marketSecret)
	at := itemURL(730, "AK-47 | Redline (Field-Tested)", "")
	body := v.get(at).body
	mustContain(t, body, "One more honest market would quote between", "The last accepted price is kept.")
	if strings.Contains(body, `class="range"`) {
		t.Error("got the interval of a held price next to the accepted price")
	}
	mustContain(t, v.get("/items?held=1").body, `<span class="soft">held:</span>`)
	key := catalog.Key{AppID: 730, Name: "AK-47 | Redline (Field-Tested)"}
	detail := w.assay.details[key]
	detail.CandidatePrice, detail.CandidateAt = nil, nil
	w.assay.details[key] = detail
	mustContain(t, v.get(at).body, `class="range"`, "6 of 10")
}

func TestItem_RejectsInvalidNames(t *testing.T) {
	v := newWorld(t).visit(t, marketSecret)
	for query, want := range map[string]int{
		"":         http.StatusBadRequest,
		"name=":    http.StatusBadRequest,
		"name=%00": http.StatusBadRequest,
		"name=%ff": http.StatusBadRequest,
		"name=" + strings.Repeat("x", catalog.MaxName+1): http.StatusBadRequest,
		"name=x&phase=Phase+9":                           http.StatusBadRequest,
		"name=x&appId=0":                                 http.StatusBadRequest,
		"name=x&appId=banana":                            http.StatusBadRequest,
		"name=x&appId=99999999999":                       http.StatusBadRequest,
		"name=Nobody+has+heard+of+it":                    http.StatusNotFound,
	} {
		if res := v.get("/item?" + query); res.StatusCode != want {
			t.Errorf("%q: %d, want %d", query, res.StatusCode, want)
		}
	}
}

func TestItems_RejectsInvalidSearches(t *testing.T) {
	v := newWorld(t).visit(t, marketSecret)
	for _, query := range []string{
		"q=%ff", "q=%00", "q=a%00b", "q=" + strings.Repeat("x", catalog.MaxName+1), "appId=0",
		"market=%00", "minPrice=a", "minPrice=-1", "maxPrice=0", "maxPrice=1,5", "sort=cheap", "held=yes",
	} {
		if res := v.get("/items?" + query); res.StatusCode != http.StatusBadRequest {
			t.Errorf("%q: %d, want 400", query, res.StatusCode)
		}
	}
}

// Filters are passed to the reader, kept in every link of the page, and shown in the form.
func TestItems_FiltersAndSorts(t *testing.T) {
	w := newWorld(t)
	v := w.visit(t, marketSecret)
	body := v.get("/items?q=e&status=ok&market=steam&minPrice=0.5&maxPrice=1000&sort=-price").body
	want := view.ItemFilter{AppID: 730, Search: "e", Status: "ok", Market: "steam", Min: 500_000, Max: 1_000_000_000, Sort: "-price", Fields: view.FieldInterval}
	if w.assay.wanted != want {
		t.Errorf("listed %+v\nwant   %+v", w.assay.wanted, want)
	}
	if !strings.Contains(body, "AK-47 | Redline (Field-Tested)") || strings.Contains(body, "Dragon Lore") {
		t.Error("the form does not show the filter")
	}
	const kept = "appId=730&amp;market=steam&amp;maxPrice=1000&amp;minPrice=0.5&amp;q=e&amp;sort=-price"
	for _, part := range []string{
		`<a href="/items?` + kept + `">All</a>`,
		`<a href="/items?` + kept + `&amp;status=ok" aria-current="true">OK</a>`,
		`<a href="/items?appId=730&amp;held=1&amp;market=steam&amp;maxPrice=1000&amp;minPrice=0.5&amp;q=e&amp;sort=-price">Held</a>`,
		`<a href="/items?appId=730&amp;q=e">Clear</a>`, `<option value="-price" selected>Highest price</option>`,
		`<input type="hidden" name="status" value="ok">`, `<input name="minPrice" aria-label="Lowest price" value="0.5"`,
	} {
		mustContain(t, body, part)
	}
	if next := regexp.MustCompile(`<a href="([^"]*)" rel="next">`).FindStringSubmatch(body); next == nil {
		t.Error("got no next page")
	} else if got := v.get(html.UnescapeString(next[1])); got.StatusCode != http.StatusOK || w.assay.wanted != want {
		t.Errorf("the next page: %d, listed %+v", got.StatusCode, w.assay.wanted)
	}
	body = v.get("/items?held=1").body
	mustContain(t, body, ">Held</span>")
	mustContain(t, body, "Dragon Lore")
	if strings.Contains(body, "Redline") || !w.assay.wanted.Held {
		t.Error("got an item without a held price")
	}
	mustContain(t, v.get("/items?minPrice=9000000").body, "No known CS2 item matches the filters.")
}

func TestProviders_WithoutLimit(t *testing.T) {
	w := newWorld(t)
	w.assay.providers[0].Budget = view.Budget{}
	body := w.visit(t, marketSecret).get("/providers").body
	mustContain(t, body, "<dt>Budget</dt><dd>no limit</dd>")
}

func TestProviders_ShowBudgetCountsAndForecast(t *testing.T) {
	w := newWorld(t)
	now := w.assay.now()
	later := now.Add(7 * time.Hour)
	forecast := view.Forecast{Pace: &view.Pace{Requests: 640, Seconds: 86400}, RunsOutAt: &later}
	b := &w.assay.providers[0].Budget
	*b = view.Budget{
		Quotas: []view.Quota{{Period: "month", Limit: 1000, Used: 950, Left: 50, ResetsAt: later, Forecast: forecast, Low: true}}, Low: true,
		Reported: &view.ReportedQuota{Period: new("month"), Limit: new(int64(1000)), Left: 31, ReportedAt: now, ResetsAt: later},
	}
	v := w.visit(t, marketSecret)
	mustContain(t, v.get("/providers").body, "950 of 1,000 this month", "31 of 1,000 left this month (reported)",
		`title="640 requests in the last `, "used up", "Budget low")
	b.Reported.Left, b.Reported.Limit, b.Reported.Period = 0, nil, nil
	mustContain(t, v.get("/providers").body, "0 left (reported), renews", "Budget spent")
}

func TestRun_GroupsFailuresByError(t *testing.T) {
	v := newWorld(t).visit(t, marketSecret)
	body := v.get("/runs/42?state=skipped").body
	mustContain(t, body, "pricelist: 503 Service Unavailable", "sim: no response within 10 s", `<b class="n">5</b> for other errors`, `<b class="n">27</b>`, `<b class="n">3</b>`, "no sales lately")
	if strings.Index(body, `<b class="n">27</b>`) > strings.Index(body, `<b class="n">3</b>`) {
		t.Error("causes are not sorted by count")
	}
}

func TestLive_SendsButtonsAfterStateChange(t *testing.T) {
	w := newWorld(t)
	v := w.visit(t, adminToken)
	same := v.get("/live?seen=42.finished")
	if strings.Contains(same.body, `id="actions"`) || same.Header.Get("HX-Trigger") != "" {
		t.Error("got buttons although the state is unchanged")
	}
	mustContain(t, same.body, `hx-trigger="every 5s"`)
	v.post("/runs")
	changed := v.get("/live?seen=42.finished")
	mustContain(t, changed.body, `id="actions"`, `hx-swap-oob="true"`, `hx-trigger="every 1s"`, "seen=43.running", `aria-valuenow="1"`)
	if changed.Header.Get("HX-Trigger") != "run-changed" {
		t.Error("got no run-changed trigger")
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
		t.Error("the page links to a missing script")
	}
	files[htmxFile] = asset{version: "1"}
	mustContain(t, v.get("/").body, `<noscript><meta http-equiv="refresh" content="3"></noscript>`, `src="/static/vendor/htmx.min.js?v=1"`)
}

func TestPages_OfEmptyServer(t *testing.T) {
	w := newWorld(t)
	w.assay.jobs, w.assay.providers, w.assay.items = nil, nil, nil
	v := w.visit(t, adminToken)
	mustContain(t, v.get("/").body, "No run yet", "No provider is configured", "MARKET_PRICE_PROVIDERS")
	for _, target := range []string{"/live", "/runs", "/providers", "/items"} {
		if res := v.get(target); res.StatusCode != http.StatusOK {
			t.Errorf("%s: %d", target, res.StatusCode)
		}
	}
}

func TestOverview_ShowsRunOfMissingPrices(t *testing.T) {
	w := newWorld(t)
	w.assay.jobs = slices.DeleteFunc(w.assay.jobs, func(j view.Job) bool { return j.Kind != "missing" })
	body := w.visit(t, adminToken).get("/").body
	newest := w.assay.jobs[0].ID
	mustContain(t, body, `href="/runs/`+newest+`">Run `+newest, "missing")
	if strings.Contains(body, "No run yet") || strings.Contains(body, "once there was one") {
		t.Error("the page shows no run")
	}
}

func TestProviders_ShowHealthOfLastFetches(t *testing.T) {
	w := newWorld(t)
	at := w.assay.now().Add(-time.Hour)
	for i, h := range []provider.Health{provider.HealthHealthy, provider.HealthDegraded, provider.HealthDown} {
		s := &w.assay.providers[i]
		s.Health, s.Breaker, s.BlockedUntil = h, "closed", nil
		for k := range s.Markets {
			s.Markets[k].Quarantine = nil
		}
	}
	w.assay.providers[1].Files = []view.FileDebug{
		{File: "shop", Markets: []string{"skinport"}, Health: provider.HealthDown, Failures: 7, LastError: new("pricelist: shop: 404 Not Found"), LastErrorAt: &at},
		{File: "other", Markets: []string{"other"}, Health: provider.HealthHealthy, LastSuccess: &at},
	}
	v := w.visit(t, adminToken)
	mustContain(t, v.get("/").body, `<span class="badge good">Healthy</span>`, `<span class="badge warn"`, "Degraded", `<span class="badge bad"`, "Down")
	body := v.get("/providers").body
	mustContain(t, body, "pricelist: shop: 404 Not Found", "7 consecutive", "other")
	if strings.Contains(body, "Ready") {
		t.Error("got a provider with the badge Ready")
	}
}

func TestPages_HideInternalErrors(t *testing.T) {
	w := newWorld(t)
	v := w.visit(t, adminToken)
	w.assay.broken = errBroken
	for _, target := range []string{"/", "/live", "/runs/42", itemURL(730, "x", "")} {
		res := v.get(target)
		if res.StatusCode != http.StatusInternalServerError || strings.Contains(res.body, "SELECT") || strings.Contains(res.body, "/var/") {
			t.Errorf("%s: %d", target, res.StatusCode)
		}
	}
	w.assay.broken = fault.New(fault.Unavailable, "busy", "retry later")
	if res := v.get("/"); res.StatusCode != http.StatusServiceUnavailable || !strings.Contains(res.body, "Retry later.") {
		t.Errorf("unavailable: got status %d", res.StatusCode)
	}
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
			t.Errorf("%s %s: %d %s", method, target, res.StatusCode, res.body)
		}
		if allow := res.Header.Get("Allow"); (allow == "GET, HEAD, POST") != (method == http.MethodDelete) {
			t.Errorf("%s %s: Allow %q", method, target, allow)
		}
	}
}

func TestRefuse_ProblemHasRequestID(t *testing.T) {
	w := newWorld(t)
	for method, target := range map[string]string{http.MethodGet: "/static/nope.js", http.MethodPost: "/nowhere", http.MethodDelete: "/runs"} {
		rec := httptest.NewRecorder()
		rec.Header().Set("X-Request-Id", "r-17") // the API has set it before
		w.handler.ServeHTTP(rec, httptest.NewRequest(method, target, nil))
		var p fault.Problem
		if err := json.Unmarshal(rec.Body.Bytes(), &p); err != nil || rec.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s %s: got %d, want a problem: %s", method, target, rec.Code, rec.Body)
		}
		if p.RequestID != "r-17" || p.Status != rec.Code || p.Code == "" || p.Detail == "" || p.Title == "" {
			t.Errorf("%s %s: incomplete problem: %s", method, target, rec.Body)
		}
	}
}

func TestServe_DoesNotRedirectSimilarPaths(t *testing.T) {
	v := newWorld(t).visit(t, adminToken)
	for _, target := range []string{"//api/health", "/x/../api/health", "/./docs", "//runs", "/runs/../items", "/runs//42", "/runs/", "/static/../runs"} {
		r := httptest.NewRequest(http.MethodGet, "http://assay.example/", nil)
		r.URL.Path = target
		if res := v.send(r); res.StatusCode != http.StatusNotFound || res.Header.Get("Location") != "" {
			t.Errorf("%s: %d to %q, want 404", target, res.StatusCode, res.Header.Get("Location"))
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
			t.Errorf("%s: %d %v", target, res.StatusCode, res.Header)
		}
	}
	for _, target := range []string{"/static/", "/static/none.css", "/static/%2e%2e/web.go"} {
		if res := v.get(target); res.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", target, res.StatusCode)
		}
	}
}
