package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"assay/internal/catalog"
	"assay/internal/provider"
)

// action is a form of the page with its expected effect.
type action struct {
	target  string
	fields  []string
	before  func(w *world)
	query   string // selects the effect from the database
	want    string
	message string
}

func startAction(forced, want, message string) action {
	return action{
		"/runs",
		[]string{"force", forced},
		nil,
		`SELECT id || ' ' || kind || ' ' || forced || ' ' || requested_by || ' ' || state FROM refresh_job WHERE id > 42`, want, message,
	}
}

func pauseAction(target, before, want, message string) action {
	return action{
		target, nil, func(w *world) { w.exec(`UPDATE provider_state SET paused = $1 WHERE provider = 'sim'`, before) },
		`SELECT paused FROM provider_state WHERE provider = 'sim'`, want, message,
	}
}

const (
	quarantined = `SELECT count(*) FROM market_file WHERE quarantine <> ''`
	changedItem = "a\nb " // a name that a form field would change
)

// oddMarket is a market key that looks like a format verb.
const oddMarket = "m%s"

// quarantineOddMarket stores a quarantined response of oddMarket.
func quarantineOddMarket(w *world) {
	w.exec(`INSERT INTO market_file (market_id, app_id, file, quarantine, quarantined_since) SELECT id, 730, 'odd', 'a test', 1 FROM market WHERE key = $1`, oddMarket)
}

func TestActions_ChangeDatabase(t *testing.T) {
	for _, a := range []action{
		startAction("0", "43 bulk 0 page queued", "Run 43 is started."),
		startAction("1", "43 bulk 1 page queued", "Run 43 has started and refreshes every item."),
		{"/runs/43/cancel", nil, func(w *world) { w.start() }, `SELECT state FROM refresh_job WHERE id = 43`, "cancelled", "Run 43 is cancelled."},
		{"/runs/42/retry-failed", nil, nil, `SELECT retry_of || ' ' || requested_by FROM refresh_job WHERE id = 43`, "42 page", "Run 43 retries the failed items of run 42."},
		pauseAction("/providers/sim/pause", "0", "1", "sim is paused"),
		pauseAction("/providers/sim/resume", "1", "0", "sim gets requests again"),
		pauseAction("/providers/unknown/pause", "0", "0", "No provider &#34;unknown&#34; is configured."),
		{"/providers/pricelist/accept", nil, nil, quarantined, "0", "The quarantine of pricelist has ended."},
		{"/providers/odd/accept", []string{"market", oddMarket}, quarantineOddMarket, quarantined, "1", "The quarantine of m%s of odd has ended."},
		{"/item/accept?appId=730&name=a%0Ab%20&phase=Ruby", nil, func(w *world) {
			w.own("holder", catalog.Key{AppID: catalog.CS2, Name: changedItem, Phase: "Ruby"})
			w.exec(`UPDATE item SET price = 1000000, status = 2, candidate = 5000000, candidate_at = 1 WHERE name = $1 AND phase = 'Ruby'`, changedItem)
		}, `SELECT price FROM item WHERE phase = 'Ruby'`, "5000000", "The new price is accepted."},
	} {
		market := provider.Market{Key: oddMarket, Title: "Odd", AppIDs: []int32{catalog.CS2}}
		w := newWorld(t, &sampleProvider{provider.Description{Name: "odd", Title: "Odd", Shape: provider.Batch, BatchSize: 10, Markets: []provider.Market{market}}, nil})
		if a.before != nil {
			a.before(w)
		}
		v := w.visit(t, adminToken)
		res := v.post(a.target, append(a.fields, "back", "/runs?kind=bulk", "confirmed", "1")...)
		if res.StatusCode != http.StatusSeeOther || res.Header.Get("Location") != "/runs?kind=bulk" {
			t.Errorf("%s: got %d with Location %q, want a redirect to /runs?kind=bulk", a.target, res.StatusCode, res.Header.Get("Location"))
		}
		if got := w.read(a.query); got != a.want {
			t.Errorf("%s: got the effect %q, want %q", a.target, got, a.want)
		}
		mustContain(t, v.get("/").body, a.message)
		want := "1 page POST " + a.target
		if len(a.fields) > 0 {
			want += "?" + strings.Join(a.fields, "=")
		}
		if strings.Contains(a.message, "No provider") {
			want = "0"
		}
		if got := w.read(`SELECT count(*) || coalesce(max(' ' || actor || ' POST ' || target), '') FROM audit_entry`); got != want {
			t.Errorf("%s: got the audit entries %q, want %q", a.target, got, want)
		}
	}
}

func TestStart_DoesNotStartSecondRun(t *testing.T) {
	for force, message := range map[string]string{"0": "is already running", "1": "is not forced"} {
		w := newWorld(t)
		v := w.visit(t, adminToken)
		v.post("/runs")
		v.get("/")
		v.post("/runs", "force", force, "confirmed", "1")
		mustContain(t, v.get("/").body, "Run 43", message, "No new run was started")
		if runs := w.read(`SELECT count(*) FROM refresh_job WHERE id > 42`); runs != "1" {
			t.Errorf("got %s new runs, want 1", runs)
		}
	}
}

func TestActions_RejectInvalidRunIDs(t *testing.T) {
	v := newWorld(t).visit(t, adminToken)
	for _, id := range []string{"0", "-1", "+1", "x", "9223372036854775808", "1e3"} {
		if res := v.post("/runs/" + id + "/cancel"); res.StatusCode != http.StatusNotFound {
			t.Errorf("cancel run %q: got status %d, want 404", id, res.StatusCode)
		}
	}
}

func TestActions_AskBeforeTheyChangeMuch(t *testing.T) {
	w := newWorld(t)
	w.start()
	v := w.visit(t, adminToken)
	before := w.version()
	for target, question := range map[string][]string{
		"/runs":                       {"Refresh all 140 items?", "force", "1"},
		"/runs/43/cancel":             {"Cancel run 43?"},
		"/runs/42/retry-failed":       {"Retry 30 items of run 42?"},
		"/providers/pricelist/accept": {"Accept the responses of 1 market?"},
	} {
		mustContain(t, v.post(target, append(question[1:], "back", "/runs")...).body, question[0], `name="confirmed"`)
	}
	if w.version() != before {
		t.Error("a confirmation page changed the database, want no change")
	}
}

func TestRun_RetriesOneCause(t *testing.T) {
	w := newWorld(t)
	v := w.visit(t, adminToken)
	body := v.get("/runs/42").body
	mustContain(t, body, "Timeline", "Plan:", "Show 27", "Retry 27", "Show 3", "Retry 3")
	const cause = "pricelist: in quarantine: skinport.csv; pricelist: server error (HTTP status 503): Service Unavailable"
	listed := v.get("/runs/42?cause=" + url.QueryEscape(cause)).body
	mustContain(t, listed, "Only items with the error: "+cause, "MP9 | Hot Rod 07")
	mustContain(t, v.post("/runs/42/retry-failed", "cause", cause, "back", "/").body, "Retry 27 items of run 42?")
	v.post("/runs/42/retry-failed", "cause", cause, "back", "/", "confirmed", "1")
	w.plan()
	if got := w.read(`SELECT total FROM refresh_job WHERE id = 43`); got != "27" {
		t.Errorf("got %s items in the retry, want the 27 with this error", got)
	}
}

func TestRun_SearchesAndSendsItems(t *testing.T) {
	v := newWorld(t).visit(t, adminToken)
	body := v.get("/runs/42?q=rod+07").body
	mustContain(t, body, "MP9 | Hot Rod 07 (Factory New)")
	if strings.Contains(body, "Hot Rod 09 (Factory New)</a></th>") {
		t.Error("the list has an item that does not match the search, want only matches")
	}
	file := v.get("/runs/42?state=failed&format=csv")
	lines := strings.Split(strings.TrimSpace(file.body), "\n")
	if got := file.Header.Get("Content-Type"); got != "text/csv; charset=utf-8" || !strings.HasPrefix(lines[0], "appId,marketHashName,phase,state") || strings.Count(file.body, ",failed,") != 30 {
		t.Errorf("got %q with %d lines, want a CSV file with 30 failed items", got, len(lines))
	}
	if got := v.get("/runs/999?format=csv").StatusCode; got != http.StatusNotFound {
		t.Errorf("got status %d for the file of an unknown run, want 404", got)
	}
}
