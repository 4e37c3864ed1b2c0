package web

import (
	"context"
	"encoding/json"
	"fmt"
	"html/template"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"assay/internal/catalog"
	"assay/internal/db/dbtest"
	"assay/internal/provider"
	"assay/internal/refresh"
	"assay/internal/view"
)

// outage is a provider of one game whose responses all fail with the same error.
type outage struct {
	app   int32
	shape provider.Shape
	items int
	err   provider.Error
	cause string
}

// outages returns three providers with 2,540 failures in total. The providers differ in shape: one
// failed request affects all, some or one of the items.
func outages() []outage {
	return []outage{
		{catalog.CS2, provider.Bulk, 1500, provider.Error{Kind: provider.KindServer, Status: 503, Detail: "Service Unavailable"}, "bulk: server error (HTTP status 503): Service Unavailable"},
		{catalog.Dota, provider.Batch, 800, provider.Error{Kind: provider.KindTimeout, Detail: "no response within 10 s"}, "batch: timeout: no response within 10 s"},
		{catalog.Rust, provider.Single, 240, provider.Error{Kind: provider.KindAuth, Status: 401, Detail: `the key is "wrong" & old`}, `single: access refused (HTTP status 401): the key is "wrong" & old`},
	}
}

func (o outage) provider() provider.Provider {
	name := string(o.shape)
	d := provider.Description{Name: name, Title: name, Shape: o.shape, Markets: []provider.Market{{Key: name, Title: name, AppIDs: []int32{o.app}}}}
	switch o.shape {
	case provider.Bulk:
		d.Files = []provider.File{{Key: "all", AppID: o.app, Markets: []string{name}}}
	case provider.Batch:
		d.BatchSize = 100
	default:
		d.BatchSize = 1
	}
	return &sampleProvider{d, func(context.Context, provider.Call, provider.Sink) error {
		err := o.err
		err.Provider = name
		return &err
	}}
}

var causeRow = regexp.MustCompile(`<b class="n">([^<]+)</b> <span class="error">([^<]+)</span>`)

// TestRun_ShowsCausesOfManyFailures fails 2,540 items with three errors, and retries one.
func TestRun_ShowsCausesOfManyFailures(t *testing.T) {
	for _, engine := range []string{dbtest.SQLite, dbtest.PostgreSQL} {
		t.Run(engine, func(t *testing.T) {
			var providers []provider.Provider
			for _, o := range outages() {
				providers = append(providers, o.provider())
			}
			w := newEmptyWorldOn(t, engine, providers...)
			for _, o := range outages() {
				var keys []catalog.Key
				for i := range o.items {
					keys = append(keys, catalog.Key{AppID: o.app, Name: fmt.Sprintf("Item %04d", i)})
				}
				w.own(fmt.Sprint("collector-", o.app), keys...)
			}
			w.exec(`DELETE FROM missing_price`) // only the bulk run requests the items
			w.bulk(false, "schedule")
			id := w.read(`SELECT max(id) FROM refresh_job WHERE kind = 'bulk'`)

			v := w.visit(t, adminToken)
			body := v.get("/runs/" + id).body
			var got []string
			for _, m := range causeRow.FindAllStringSubmatch(body, -1) {
				got = append(got, m[1]+" "+m[2])
			}
			var want []string
			for _, o := range outages() {
				want = append(want, formatCount(o.items)+" "+template.HTMLEscapeString(o.cause))
			}
			if !slices.Equal(got, want) {
				t.Fatalf("causes: got %q, want %q", got, want)
			}
			mustContain(t, body, "2,540", "Retry 1,500", "Retry 800", "Retry 240")

			cause := outages()[2].cause
			file := v.get("/runs/" + id + "?format=csv&cause=" + url.QueryEscape(cause)).body
			if rows := strings.Count(file, "\n") - 1; rows != 240 {
				t.Errorf("file of one cause: got %d items, want 240", rows)
			}
			target := "/runs/" + id + "/retry-failed"
			mustContain(t, v.post(target, "cause", cause, "back", "/").body, "Retry 240 items of run "+id+"?")
			v.post(target, "cause", cause, "back", "/", "confirmed", "1")
			w.drain()
			retry := w.read(`SELECT max(id) FROM refresh_job WHERE kind = 'bulk'`)
			if total := w.read(`SELECT total FROM refresh_job WHERE id = $1`, retry); retry == id || total != "240" {
				t.Errorf("got run %s with %s items, want a new run with the 240 items of this error", retry, total)
			}
			body = v.get("/runs/" + id).body
			if note := `retried by <a href="/runs/` + retry + `">run ` + retry; strings.Count(body, note) != 1 {
				t.Errorf("causes of the run: got %d with the note of the retry, want 1", strings.Count(body, note))
			}
			body = v.get("/runs/" + retry).body
			if rows := causeRow.FindAllString(body, -1); len(rows) != 1 || !strings.Contains(rows[0], ">240<") {
				t.Errorf("causes of the retry: got %q, want one with 240 items", rows)
			}
		})
	}
}

// TestRun_ListsAllCauses gives a run more errors than a page shows.
func TestRun_ListsAllCauses(t *testing.T) {
	w := newWorld(t)
	var failures []refresh.Failure
	for i := range view.CausesShown + 5 {
		failures = append(failures, refresh.Failure{Error: fmt.Sprintf("sim: error %02d", i), Count: int64(100 - i)})
	}
	stored, err := json.Marshal(failures)
	must(t, err)
	w.exec(`UPDATE refresh_batch_items SET failures = '[]' WHERE job_id = 42`)
	w.exec(`UPDATE refresh_batch_items SET failures = $1 WHERE job_id = 42 AND batch = 0`, string(stored))
	v := w.visit(t, adminToken)
	first := v.get("/runs/42").body
	mustContain(t, first, "sim: error 19", `<b class="n">390</b> for less frequent errors`, `href="/runs/42?causes=20#why" rel="next"`)
	second := v.get("/runs/42?causes=20").body
	if rows := causeRow.FindAllString(second, -1); len(rows) != 5 || !strings.Contains(rows[4], "sim: error 24") {
		t.Errorf("second page: got %q, want the 5 errors that follow", rows)
	}
	mustContain(t, second, "Show 76", "/runs/42?cause=sim%3A&#43;error&#43;24#items", "Retry 76", `href="/runs/42#why"`)
	mustContain(t, v.post("/runs/42/retry-failed", "cause", "sim: error 24", "back", "/").body, "Retry 76 items of run 42?")
	if got := v.get("/runs/42?causes=-1").StatusCode; got != 400 {
		t.Errorf("a negative number: got status %d, want 400", got)
	}
}
