package refresh_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"assay/internal/event"
	"assay/internal/provider"
	"assay/internal/refresh"
)

// checkOutcome compares the outcome and the gaps of an ended job. A gap is written as
// "reason items share" or "provider/market reason share".
func (w *world) checkOutcome(what string, j refresh.Job, outcome refresh.JobOutcome, gaps ...string) {
	w.tb.Helper()
	equal(w.tb, what+": outcome", j.Outcome, outcome)
	var got []string
	for _, g := range j.Gaps().Items {
		got = append(got, fmt.Sprint(g.Reason, " ", g.Items, " ", g.Share))
	}
	for _, g := range j.Gaps().Markets {
		got = append(got, fmt.Sprint(g.Provider, "/", g.Market, " ", g.Reason, " ", g.Share))
	}
	equal(w.tb, what+": gaps", strings.Join(got, ", "), strings.Join(gaps, ", "))
	events, err := event.List(w.tb.Context(), w.store, 100)
	must(w.tb, err)
	want := map[refresh.JobOutcome]event.Kind{refresh.JobComplete: event.JobFinished, refresh.JobPartial: event.JobPartial, refresh.JobFailed: event.JobFailed}
	for _, e := range events {
		if strings.Contains(string(e.Data), fmt.Sprintf(`"jobId":"%d"`, j.ID)) {
			equal(w.tb, what+": event", e.Kind, want[outcome])
			return
		}
	}
	if j.State != refresh.Cancelled {
		w.tb.Errorf("%s: got no event, want one", what)
	}
}

func TestOutcome_ReportsGapsWithReasons(t *testing.T) {
	list := names("Item", 200)
	a, b, c := bulk("alpha", list, "a1", "a2"), batch("beta", 100, list, "b1"), bulk("gamma", list[:50], "c1")
	w := newWorld(t, a, b, c)
	w.push("u", 730, list...)
	w.clearMissing()
	w.checkOutcome("all respond", w.run(false), refresh.JobComplete)
	w.checkOutcome("nothing is due", w.run(false), refresh.JobComplete)

	w.clock.Add(7 * time.Hour)
	b.fail = func(n int, _ provider.Call) error {
		if n%2 == 0 {
			return b.broken(provider.KindServer)
		}
		return nil
	}
	b.requested()
	c.fail = func(int, provider.Call) error { return c.broken(provider.KindBreaker) }
	j := w.run(false)
	equal(t, "state", j.State, refresh.Finished)
	w.checkOutcome("all items have a quote, but markets are missing", j, refresh.JobPartial, "beta/b1 failed 0.5", "gamma/c1 backoff 1")
	equal(t, "detail", j.MarketGaps[0].Detail, "beta: server error: scripted failure")

	w.clock.Add(7 * time.Hour)
	c.fail = nil
	b.fail = func(n int, _ provider.Call) error {
		return b.broken([]provider.Kind{provider.KindServer, provider.KindTimeout}[n%2])
	}
	j = w.run(false)
	equal(t, "detail of two errors", j.MarketGaps[0].Detail, "beta: server error: scripted failure (and 1 other error)")
	c.fail = func(int, provider.Call) error { return c.broken(provider.KindBreaker) }

	// Half of the names fail on one market, and all names fail on the other.
	a.fail = func(int, provider.Call) error { return a.broken(provider.KindConnect) }
	c.fail = nil
	must(t, w.engine.PauseProvider(t.Context(), "beta"))
	j = w.run(true)
	w.checkOutcome("most items are missing", j, refresh.JobPartial,
		"failed 150 0.75", "alpha/a1 failed 1", "alpha/a2 failed 1", "beta/b1 paused 1")

	c.fail = func(int, provider.Call) error { return c.broken(provider.KindTimeout) }
	j = w.run(true)
	equal(t, "state", j.State, refresh.Failed)
	w.checkOutcome("no response", j, refresh.JobFailed,
		"failed 200 1", "alpha/a1 failed 1", "alpha/a2 failed 1", "beta/b1 paused 1", "gamma/c1 failed 1")

	a.fail, c.fail, c.silent = nil, nil, []string{"c1"}
	c.edit = func(*provider.Quote) bool { return false }
	must(t, w.engine.ResumeProvider(t.Context(), "beta"))
	b.fail = nil
	w.checkOutcome("a market is missing", w.run(true), refresh.JobPartial, "gamma/c1 silent 1")
	w.checkIdle()
}

func TestOutcome_CancelledAndUnplannedJobs(t *testing.T) {
	w := newWorld(t, bulk("alpha", names("Item", 5), "a1"))
	w.push("u", 730, names("Item", 5)...)
	w.clearMissing()
	id := w.begin(false)
	must(t, w.engine.Cancel(t.Context(), id))
	w.checkOutcome("cancelled before its plan", w.job(id), refresh.JobFailed)
	id = w.begin(false)
	_, err := w.engine.Plan(t.Context())
	must(t, err)
	must(t, w.engine.Cancel(t.Context(), id))
	w.drain()
	w.checkOutcome("cancelled before it fetched", w.job(id), refresh.JobFailed, "cancelled 5 1", "alpha/a1 cancelled 1")

	w = newWorld(t)
	w.checkOutcome("without a provider", w.run(false), refresh.JobFailed)
}

// Jobs do not wait for a background provider. Its deferred names make no job partial.
func TestOutcome_IgnoresBackgroundProviders(t *testing.T) {
	list := names("Item", 100)
	w := priced(t, list, slow("steam", list, "s1"))
	j := w.runFirst(false)
	equal(t, "updated", j.Counts.Updated, 100)
	w.checkOutcome("names are left for later", j, refresh.JobComplete)
}
