package web

import (
	"strings"
	"testing"
	"time"

	"assay/internal/db"
	"assay/internal/provider"
)

// section returns the part of the providers page about one provider.
func (v *visitor) section(name string) string {
	v.t.Helper()
	_, rest, found := strings.Cut(v.get("/providers").body, `id="provider-`+name+`"`)
	if !found {
		v.t.Fatalf("the page has no provider %s", name)
	}
	text, _, _ := strings.Cut(rest, "</section>")
	return text
}

func TestProviders_WithoutLimit(t *testing.T) {
	v := newWorld(t).visit(t, marketSecret)
	mustContain(t, v.section("pricelist"), "<dt>Budget</dt><dd>no limit</dd>")
	mustContain(t, v.section("sim"), "<dt>Budget</dt><dd>213 of 1,000 per 1 h, resets")
}

func TestProviders_ShowBudgetCountsAndForecast(t *testing.T) {
	w := newWorld(t)
	now := w.clock.Now()
	month, _ := provider.Month.Bounds(now)
	w.exec(`INSERT INTO budget_quota (provider, host, period, starts_at, used) VALUES ('cs2cap', '', 'month', $1, 950)`, db.Micros(month))
	w.exec(`INSERT INTO budget_hour (provider, host, hour, starts_at, used) VALUES ('cs2cap', '', 1, $1, 640)`, db.Micros(now.Add(-2*time.Hour).Truncate(time.Hour)))
	w.exec(`INSERT INTO reported_quota (provider, host, reported_limit, reported_left, reported_at, resets_at) VALUES ('cs2cap', '', 1000, 31, $1, $2)`, db.Micros(now), db.Micros(now.Add(7*time.Hour)))
	v := w.visit(t, marketSecret)
	mustContain(t, v.section("cs2cap"), "950 of 1,000 this month", "31 of 1,000 left this month (reported)",
		`title="640 requests in the last `, "used up", "Budget low")
	w.exec(`UPDATE reported_quota SET reported_left = 0, reported_limit = 0`)
	mustContain(t, v.section("cs2cap"), "0 left this month (reported), resets", "Budget spent")
}

func TestProviders_ShowHealthOfLastFetches(t *testing.T) {
	w := newWorld(t)
	must(t, w.engine.AcceptProvider(t.Context(), "pricelist", "")) // a quarantine has its own badge
	w.exec(`UPDATE provider_file SET failures = 7 WHERE file = 'prices.csv'`)
	v := w.visit(t, adminToken)
	mustContain(t, v.get("/").body, `<span class="badge good">Healthy</span>`, `<span class="badge warn"`, "Degraded", `<span class="badge bad"`, "Down")
	mustContain(t, v.section("sim"), "Healthy")
	mustContain(t, v.section("pricelist"), "Degraded", "503", "Service Unavailable", "7 consecutive", "skinport.csv")
	mustContain(t, v.section("waxpeer"), "Down", "timeout")
	if strings.Contains(v.get("/providers").body, "Ready") {
		t.Error("got a provider with the badge Ready, want none")
	}
}

func TestProviders_ShowRequests(t *testing.T) {
	w := newWorld(t)
	w.sample.clients.request(t)
	v := w.visit(t, marketSecret)
	mustContain(t, v.section("sim"), "Last 50 requests", "/v1/markets/aurum/batch/49", "48,211", `title="Service Unavailable">503 <b>1</b>`)
	if strings.Contains(v.section("sim"), "key=secret") {
		t.Error("the page shows the query of a request, want none: it may contain a key")
	}
	mustContain(t, v.section("waxpeer"), "Not responding", "<dd>Open</dd>")
	mustContain(t, v.get("/").body, "Not responding")
}

// insertSamples inserts two days of requests to cs2cap: 20 successful requests in each half hour,
// and 3 failed requests in every fourth half hour.
func (w *world) insertSamples() {
	w.Helper()
	now := w.clock.Now().Truncate(provider.SamplePeriod)
	for i := range 96 {
		at := db.Micros(now.Add(-time.Duration(i) * provider.SamplePeriod))
		w.exec(`INSERT INTO request_sample (provider, host, at, result, up_to, requests, duration, bytes) VALUES ('cs2cap', '', $1, 'ok', 250000, 20, 3600000, 90000)`, at)
		if i%4 == 1 {
			w.exec(`INSERT INTO request_sample (provider, host, at, result, up_to, requests, duration, bytes) VALUES ('cs2cap', '', $1, 'failed', 5000000, 3, 9000000, 0)`, at)
		}
	}
	month, _ := provider.Month.Bounds(w.clock.Now())
	w.exec(`INSERT INTO budget_quota (provider, host, period, starts_at, used) VALUES ('cs2cap', '', 'month', $1, 950)`, db.Micros(month))
	w.exec(`INSERT INTO budget_hour (provider, host, hour, starts_at, used) VALUES ('cs2cap', '', 1, $1, 640)`, db.Micros(w.clock.Now().Add(-2*time.Hour).Truncate(time.Hour)))
}

func TestProvider_ShowsItsHistory(t *testing.T) {
	w := newWorld(t)
	w.insertSamples()
	v := w.visit(t, adminToken)
	body := v.get("/providers/cs2cap?period=7d").body
	mustContain(t, body, "CS2Cap in the last 24 hours: 0 of 48 half hours", "23 requests, 3 without a usable response", "Responses by status: 2xx 1,920, 5xx 72", `: 2xx 140, 5xx 6</title>`,
		`aria-label="Latency: `, "Monthly quota", "50 of 1,000 left; used up in", "requests left")
	mustContain(t, v.get("/").body, "CS2Cap in the last 24 hours")
	mustContain(t, v.get("/providers/waxpeer").body, "No request in this period.", "No request in the last 24 hours.")
	mustContain(t, v.get("/providers/pricelist").body, "In quarantine for <time data-for datetime=", "fewer than half of the 90 names before", "Accept skinport",
		"<dt>Names before</dt><dd>90</dd>", "<dt>Names after</dt><dd>30</dd>", "<dt>Names in both</dt><dd>30</dd>", "Sticker | Team 89 (Holo)", "missing")
	mustContain(t, v.get("/providers/pricelist").body, "The last valid response is used until")
	w.exec(`UPDATE market_file SET refused = '{"before":0,"after":30}' WHERE quarantine <> ''`)
	mustContain(t, v.get("/providers/pricelist").body, "Nothing of this market is used until a response is valid or you accept it.")
	must(t, w.engine.AcceptProvider(t.Context(), "pricelist", ""))
	if body := v.get("/providers/pricelist").body; strings.Contains(body, "quarantine") {
		t.Error("after the acceptance: got a page with a quarantine, want none")
	}
	for target, want := range map[string]int{"/providers/none": 404, "/providers/sim?period=1y": 400} {
		if got := v.get(target).StatusCode; got != want {
			t.Errorf("%s: got status %d, want %d", target, got, want)
		}
	}
}

func TestProvider_FiltersRequestsAndSendsTest(t *testing.T) {
	w := newWorld(t)
	mustContain(t, w.visit(t, adminToken).get("/providers/sim").body, "No request since the server started.")
	w.sample.clients.request(t)
	v := w.visit(t, adminToken)
	mustContain(t, v.get("/providers/sim").body, "/v1/markets/aurum/batch/49", "503")
	failed := v.get("/providers/sim?outcome=failed").body
	mustContain(t, failed, "503")
	if strings.Contains(failed, "/v1/markets/aurum/batch/49") {
		t.Error("the list of failed requests has a request with a usable response, want only failed requests")
	}
	mustContain(t, v.get("/providers/sim?q=nothing").body, "No recorded request matches.")
	v.post("/providers/sim/test", "back", "/providers/sim")
	mustContain(t, v.get("/providers/sim").body, "sim responded in", "Nothing was stored.")
	v.post("/providers/none/test", "back", "/providers/sim")
	mustContain(t, v.get("/providers/sim").body, "No provider &#34;none&#34; is configured.")
}

// TestHealth_DotAgreesWithTheOverview pauses all providers. The next page must show it, although the dot may otherwise be a minute old.
func TestHealth_DotAgreesWithTheOverview(t *testing.T) {
	w := newWorld(t)
	v := w.visit(t, adminToken)
	dot := func() string {
		t.Helper()
		_, after, _ := strings.Cut(v.get("/keys").body, `id="health"`)
		tag, _, _ := strings.Cut(after, ">")
		return tag
	}
	before := dot()
	for _, name := range []string{"sim", "cs2cap", "waxpeer", "pricelist"} {
		v.post("/providers/"+name+"/pause", "back", "/providers")
	}
	if after := dot(); after == before {
		t.Errorf("dot after all providers were paused: got %s, want another state", after)
	}
}
