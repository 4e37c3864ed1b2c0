package refresh_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"assay/internal/randtest"
	"assay/internal/refresh"
	"assay/internal/view"
)

// past is an ended job in the history.
type past struct {
	id       int64
	kind     string
	state    string
	finished time.Time
}

// history fills the database with random jobs and returns them.
func (w *world) history(r *rand.Rand, n int) []past {
	var out []past
	live := map[string]bool{}
	for range n {
		p := past{
			kind:     []string{"bulk", "missing"}[r.IntN(2)],
			state:    []string{"finished", "failed", "cancelled", "running", "queued"}[r.IntN(5)],
			finished: w.clock.Now().Add(-time.Duration(r.Int64N(int64(20 * 24 * time.Hour)))),
		}
		if p.state == "running" || p.state == "queued" {
			if live[p.kind] {
				continue // only one job of a kind is live at a time
			}
			live[p.kind], p.finished = true, time.Time{}
		}
		var end int64
		if !p.finished.IsZero() {
			end = p.finished.UnixMicro()
		}
		must(w.tb, w.raw.QueryRowContext(w.tb.Context(), `
			INSERT INTO refresh_job (kind, forced, state, stage, requested_by, created_at, finished_at, total)
			VALUES ($1, false, $2, 'done', 'test', 1, $3, 1) RETURNING id`, p.kind, p.state, end).Scan(&p.id))
		w.exec(`INSERT INTO refresh_batch_items (job_id, batch, planned, outcomes) VALUES ($1, 0, '[]', '[[1,0,0,"updated","",""]]')`, p.id)
		w.exec(`INSERT INTO refresh_batch (job_id, batch, state, pending, updated) VALUES ($1, 0, 'estimated', 0, 1)`, p.id)
		w.exec(`INSERT INTO fetch_unit (job_id, provider, app_id, file, batch_from, batch_to, state) VALUES ($1, 's', 730, 'f', 0, 0, 'done')`, p.id)
		w.exec(`INSERT INTO market_fetch (job_id, unit_id, market_id, fetched_at, quotes, rejected, requests, bytes, outcome)
			VALUES ($1, 1, 1, 0, 0, 0, 0, 0, 'ok')`, p.id)
		out = append(out, p)
	}
	return out
}

// kept returns the jobs that retention must keep.
func kept(jobs []past, now time.Time, r refresh.Retention) []int64 {
	var out []int64
	for _, j := range jobs {
		newer := 0
		for _, o := range jobs {
			if o.kind == j.kind && !o.finished.IsZero() &&
				(o.finished.After(j.finished) || (o.finished.Equal(j.finished) && o.id > j.id)) {
				newer++
			}
		}
		unfinished := j.finished.IsZero()
		young := !j.finished.Before(now.Add(-r.Age))
		if unfinished || young || newer < r.MinJobs {
			out = append(out, j.id)
		}
	}
	return out
}

func (w *world) jobIDs() []int64 {
	w.tb.Helper()
	jobs, err := view.Jobs(w.tb.Context(), w.store, "", 1<<62, 10_000)
	must(w.tb, err)
	var out []int64
	for _, j := range jobs {
		out = append(out, j.ID)
	}
	slices.Sort(out)
	return out
}

func TestRule6_RetentionKeepsRecentNewestAndLiveJobs(t *testing.T) {
	r := randtest.New(t)
	for round := range randtest.Count(12, 300) {
		w := newWorld(t)
		w.cfg.Retention = refresh.Retention{
			Age:     time.Duration(r.IntN(10)) * 24 * time.Hour,
			MinJobs: r.IntN(5),
		}
		w.restart()
		jobs := w.history(r, r.IntN(40))
		w.clock.Add([]time.Duration{0, 0, time.Hour, -time.Hour, 400 * 24 * time.Hour, -400 * 24 * time.Hour}[r.IntN(6)])
		want := kept(jobs, w.clock.Now(), w.cfg.Retention)
		for again := range 2 {
			must(t, w.engine.Retain(t.Context()))
			if got := w.jobIDs(); !slices.Equal(got, want) {
				t.Fatalf("round %d, call %d: with %+v at %v: got the kept jobs %v, want %v of %+v", round, again, w.cfg.Retention, w.clock.Now(), got, want, jobs)
			}
		}
		for _, table := range []string{"refresh_batch_items", "refresh_batch", "fetch_unit", "market_fetch"} {
			equal(t, "rows of "+table, w.count(`SELECT count(*) FROM `+table), int64(len(want)))
		}
		w.stop()
	}
}

func TestRule6_RetentionRunsAfterEveryJob(t *testing.T) {
	list := names("Item", 10)
	w := newWorld(t, bulk("alpha", list, "a1"))
	w.push("u", 730, list...)
	w.clearMissing()
	for range 6 {
		w.run(true)
		w.clock.Add(3 * 24 * time.Hour)
	}
	// When the last job ends, the jobs are 15, 12, 9, 6, 3 and 0 days old. Retention always
	// keeps the newest three.
	if got := w.jobIDs(); !slices.Equal(got, []int64{4, 5, 6}) {
		t.Errorf("got the jobs %v, want 4, 5 and 6", got)
	}
	equal(t, "items", w.count(`SELECT count(*) FROM refresh_item`), 30)
	w.checkIdle()
}

func TestRule6_ZeroDaysAndZeroJobsKeepNothing(t *testing.T) {
	w := newWorld(t, bulk("alpha", []string{"A"}, "a1"))
	w.cfg.Retention = refresh.Retention{}
	w.restart()
	w.push("u", 730, "A")
	w.clearMissing()
	w.begin(false)
	for range 3 { // a job that ends now is not older than now
		w.drain()
		w.clock.Add(time.Microsecond)
	}
	must(t, w.engine.Retain(t.Context()))
	equal(t, "jobs", len(w.jobIDs()), 0)
	equal(t, "items of jobs", w.count(`SELECT count(*) FROM refresh_item`), 0)
	equal(t, "price", w.named("A").Price, units(10))

	// The newest response outlives its job. The next response is compared with it.
	w.clock.Add(time.Hour)
	equal(t, "another job", w.job(w.begin(true)).State, refresh.Queued)
	w.drain()
	w.checkIdle()
}

func TestRule6_RetentionKeepsRunningJobs(t *testing.T) {
	w := newWorld(t, bulk("alpha", []string{"A"}, "a1"))
	w.cfg.Retention = refresh.Retention{}
	w.restart()
	w.push("u", 730, "A")
	w.clearMissing()
	id := w.begin(false)
	for {
		more, err := w.step()
		must(t, err)
		if !more || !w.job(id).State.Live() {
			break
		}
		w.clock.Add(400 * 24 * time.Hour)
		must(t, w.engine.Retain(t.Context()))
	}
	equal(t, "state", w.job(id).State, refresh.Finished)
}
