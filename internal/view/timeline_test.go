package view_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"assay/internal/db"
	"assay/internal/event"
	"assay/internal/refresh"
	"assay/internal/view"
)

// unit writes a fetch unit of a job. Times are seconds after start. A negative time means that
// the time is missing.
func (w *world) unit(job int64, name, state string, start time.Time, from, to int, requests int64, why string) {
	w.Helper()
	at := func(seconds int) int64 {
		if seconds < 0 {
			return 0
		}
		return db.Micros(start.Add(time.Duration(seconds) * time.Second))
	}
	w.tx(func(tx *db.Tx) error {
		_, err := tx.Exec(`INSERT INTO fetch_unit (job_id, provider, app_id, file, batch_from, batch_to, state, started_at, fetched_at, requests, bytes, error)
			VALUES ($1, $2, 730, 'f', 0, 0, $3, $4, $5, $6, $7, $8)`, job, name, state, at(from), at(to), requests, requests*100, why)
		return err
	})
}

// The run plans for 2 s and fetches for 100 s. The first provider waits before and between its
// requests, and its breaker is open for 20 s. The second provider is deferred.
func TestTimeline_ShowsStagesWaitsAndBreakerGaps(t *testing.T) {
	w := newWorld(t, false)
	w.own("u", "x")
	start := w.now
	id, _, err := int64(0), false, error(nil)
	w.tx(func(tx *db.Tx) error {
		id, _, err = refresh.InsertJob(tx, refresh.Job{Kind: refresh.Bulk})
		return err
	})
	w.now = start.Add(2 * time.Second)
	w.tx(func(tx *db.Tx) error { _, err := refresh.StartJob(tx, id, 1, 0); return err })
	w.unit(id, "a", "done", start, 5, 10, 1, "")
	w.unit(id, "a", "done", start, 9, 12, 2, "")
	w.unit(id, "a", "failed", start, 60, 70, 3, "a: timeout")
	w.unit(id, "b", "deferred", start, -1, -1, 0, "b: paused by an operator")
	for at, d := range map[int]event.Data{
		20: event.ProviderDown{Provider: "a", Why: event.WhyBreaker, Detail: "repeated failures"},
		40: event.ProviderUp{Provider: "a", Why: event.WhyBreaker},
		45: event.ProviderDown{Provider: "a", Why: event.WhyQuarantine, Market: "m"},
	} {
		w.now = start.Add(time.Duration(at) * time.Second)
		w.tx(func(tx *db.Tx) error { return event.Add(tx, d) })
	}
	w.tx(func(tx *db.Tx) error { // the map has no order
		_, err := tx.Exec(`UPDATE event SET id = id + 100 + at - $1`, db.Micros(start))
		return err
	})
	w.now = start.Add(102 * time.Second)
	show := func() string {
		t.Helper()
		line, err := w.Timeline(t.Context(), id)
		w.must(err)
		span := func(s view.Span) string {
			return fmt.Sprintf("%s %v-%v", s.Kind, s.From.Sub(start).Seconds(), s.To.Sub(start).Seconds())
		}
		var out []string
		for _, s := range line.Stages {
			out = append(out, span(s))
		}
		for _, l := range line.Providers {
			out = append(out, fmt.Sprintf("%s: requests %d, bytes %d, open %d, failed %d, deferred %d, error %q", l.Provider, l.Requests, l.Bytes, l.Open, l.Failed, l.Deferred, l.Error))
			for _, s := range l.Spans {
				out = append(out, "  "+span(s))
			}
		}
		return strings.Join(out, "\n")
	}
	lanes := `
a: requests 6, bytes 600, open 0, failed 1, deferred 0, error "a: timeout"
  wait 2-5
  requests 5-12
  wait 12-60
  requests 60-70
  breaker 20-40
b: requests 0, bytes 0, open 0, failed 0, deferred 1, error "b: paused by an operator"`
	if got, want := show(), "plan 0-2\nfetch 2-102"+lanes; got != want {
		t.Errorf("during the fetch:\ngot\n%s\nwant\n%s", got, want)
	}
	w.tx(func(tx *db.Tx) error { _, err := refresh.StoreValidation(tx, id, nil, nil); return err })
	w.now = start.Add(110 * time.Second)
	w.tx(func(tx *db.Tx) error { return refresh.EndEstimating(tx, id) })
	w.now = start.Add(111 * time.Second)
	w.tx(func(tx *db.Tx) error { _, err := refresh.FinishJob(tx, id, nil); return err })
	w.now = start.Add(time.Hour)
	if got, want := show(), "plan 0-2\nfetch 2-102\nestimate 102-110\napply 110-111"+lanes; got != want {
		t.Errorf("after the end:\ngot\n%s\nwant\n%s", got, want)
	}
}
