package refresh_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"assay/internal/fault"
	"assay/internal/money"
	"assay/internal/provider"
	"assay/internal/refresh"
)

func code(err error) string {
	if f := fault.Of(err); f != nil {
		return f.Code
	}
	return ""
}

func TestStart_ReturnsTheLiveJob(t *testing.T) {
	w := newWorld(t, bulk("alpha", []string{"A"}, "a1"))
	w.push("u", 730, "A")
	w.clearMissing()
	id := w.begin(false)
	for _, forced := range []bool{false, true} {
		for i := range 5 { // queued, planned, fetched, validated, estimated
			s, err := w.engine.Start(t.Context(), forced, "test")
			must(t, err)
			equal(t, "result", s, refresh.Started{JobID: id, ForcedIgnored: forced})
			if forced {
				continue
			}
			work := []func(context.Context) (bool, error){
				w.engine.Plan, func(ctx context.Context) (bool, error) { return w.engine.Fetch(ctx, "alpha", "") },
				w.engine.Estimate, w.engine.Estimate, w.engine.Estimate,
			}
			more, err := work[i](t.Context())
			must(t, err)
			equal(t, "work was done", more, true)
		}
	}
	w.drain()
	forced := w.begin(true)
	s, err := w.engine.Start(t.Context(), true, "test")
	must(t, err)
	equal(t, "result of a second forced refresh", s, refresh.Started{JobID: forced})
	equal(t, "jobs", w.count(`SELECT count(*) FROM refresh_job`), 2)
}

func TestStart_WithoutProviderFails(t *testing.T) {
	w := newWorld(t)
	w.push("u", 730, "A")
	j := w.run(false)
	equal(t, "state", j.State, refresh.Failed)
	if !strings.Contains(j.LastError, "MARKET_PRICE_PROVIDERS") {
		t.Errorf("got the last error %q, want a hint to MARKET_PRICE_PROVIDERS", j.LastError)
	}
	equal(t, "entries that wait for a provider", w.count(`SELECT count(*) FROM missing_price WHERE job_id = 0`), 1)
}

func TestStart_WithoutItemsFinishes(t *testing.T) {
	w := newWorld(t, bulk("alpha", []string{"A"}, "a1"))
	j := w.run(false)
	equal(t, "state", j.State, refresh.Finished)
	equal(t, "items", j.Counts.Total, 0)
	w.checkIdle()
}

func TestRetryFailed_RetriesFailedItemsWithinTTL(t *testing.T) {
	list := names("Item", 60)
	s := batch("alpha", 20, list, "a1")
	w := newWorld(t, s)
	w.push("u", 730, list...)
	w.clearMissing()
	s.fail = func(n int, _ provider.Call) error {
		if n == 2 {
			return s.broken(provider.KindTimeout)
		}
		return nil
	}
	first := w.run(false)
	equal(t, "failed", first.Counts.Failed, 20)
	equal(t, "state", first.State, refresh.Finished)
	s.requested()
	started, err := w.engine.RetryFailed(t.Context(), first.ID, "", "test")
	must(t, err)
	if _, err := w.engine.RetryFailed(t.Context(), started.JobID, "", "test"); code(err) != "job_running" {
		t.Errorf("retry of a live job: got error %v, want job_running", err)
	}
	w.drain()
	j := w.job(started.JobID)
	equal(t, "the id of the retried job", j.RetryOf, first.ID)
	equal(t, "items", j.Counts.Total, 20)
	equal(t, "updated", j.Counts.Updated, 20)
	equal(t, "calls", len(s.requested()), 1)
	if _, err := w.engine.RetryFailed(t.Context(), j.ID, "", "test"); code(err) != "nothing_failed" {
		t.Errorf("retry of a job without failures: got error %v, want nothing_failed", err)
	}
	if _, err := w.engine.RetryFailed(t.Context(), 999, "", "test"); code(err) != "job_not_found" {
		t.Errorf("retry of an unknown job: got error %v, want job_not_found", err)
	}
	w.checkIdle()
}

func TestRetryFailed_RetriesSkippedItems(t *testing.T) {
	list := names("Item", 20)
	s := bulk("alpha", list, "a1")
	w := newWorld(t, s)
	w.push("u", 730, list...)
	w.run(false)
	w.clock.Add(7 * time.Hour)
	must(t, w.engine.PauseProvider(t.Context(), "alpha"))
	j := w.run(false)
	equal(t, "items skipped for a pause", j.Counts.SkippedPaused, 20)
	must(t, w.engine.ResumeProvider(t.Context(), "alpha"))
	started, err := w.engine.RetryFailed(t.Context(), j.ID, "", "test")
	must(t, err)
	w.drain()
	equal(t, "items updated by the retry", w.job(started.JobID).Counts.Updated, 20)
	j = w.run(false)
	equal(t, "items skipped by their TTL", j.Counts.SkippedTTL, 20)
	if _, err := w.engine.RetryFailed(t.Context(), j.ID, "", "test"); code(err) != "nothing_failed" {
		t.Errorf("retry of items that were skipped by their TTL: got error %v, want nothing_failed", err)
	}
}

// Retention deletes the job while its retry waits for the end of another bulk job.
func TestRetryFailed_OfADeletedJobFails(t *testing.T) {
	list := names("Item", 5)
	s := bulk("alpha", list, "a1")
	w := newWorld(t, s)
	w.push("u", 730, list...)
	w.clearMissing()
	s.fail = func(int, provider.Call) error { return s.broken(provider.KindTimeout) }
	first := w.run(false)
	started, err := w.engine.RetryFailed(t.Context(), first.ID, "", "test")
	must(t, err)
	w.clock.Add(8 * 24 * time.Hour)
	w.cfg.Retention = refresh.Retention{Age: time.Hour}
	w.restart()
	must(t, w.engine.Retain(t.Context()))
	w.drain()
	j := w.job(started.JobID)
	equal(t, "state", j.State, refresh.Failed)
	equal(t, "error", j.LastError, fmt.Sprintf("job %d was deleted because of its age before its items were retried: start a refresh instead", first.ID))
	w.checkIdle()
}

func TestCancel_KeepsEstimatedItemsAtEachStage(t *testing.T) {
	list := names("Item", 600) // two batches
	price := units(10)
	s := bulk("alpha", list, "a1")
	b := batch("beta", 200, list, "b1")
	for _, s := range []*fakeProvider{s, b} {
		s.price = func(string, string) money.Micro { return price }
	}
	w := newWorld(t, s, b)
	w.push("u", 730, list...)
	w.drain()
	stages := map[refresh.Stage]int{}
	for steps := 0; steps < 200; steps += 2 {
		w.clock.Add(7 * time.Hour)
		price += units(1) / 10
		id := w.begin(false)
		work := w.engine.Workers()
		for i := range steps {
			_, err := work[i%len(work)].Work(t.Context())
			must(t, err)
		}
		j := w.job(id)
		if !j.State.Live() {
			break
		}
		stages[j.Stage]++
		must(t, w.engine.Cancel(t.Context(), id))
		w.checkCounts()
		estimated := w.job(id).Counts.Updated
		w.drain()
		j = w.job(id)
		equal(t, "state", j.State, refresh.Cancelled)
		equal(t, "estimated items", j.Counts.Updated, estimated)
		if j.Stage == refresh.StageDone && j.StartedAt.IsZero() {
			equal(t, "items of a job cancelled before its plan", j.Counts.Total, 0)
		} else {
			equal(t, "cancelled and estimated items", j.Counts.Cancelled+estimated, 600)
		}
		equal(t, "items at the new price", w.count(`SELECT count(*) FROM item WHERE `+around("price", price)), estimated)
		if err := w.engine.Cancel(t.Context(), id); code(err) != "job_ended" {
			t.Errorf("second cancellation: got error %v, want job_ended", err)
		}
		w.checkIdle()
	}
	for _, stage := range []refresh.Stage{refresh.StagePlan, refresh.StageFetch, refresh.StageEstimate, refresh.StageApply} {
		if stages[stage] == 0 {
			t.Errorf("got no job cancelled in stage %s, want one: %v", stage, stages)
		}
	}
}

func TestCancel_MissingJobPostponesItsEntries(t *testing.T) {
	s := batch("alpha", 10, []string{"A"}, "a1")
	w := newWorld(t, s)
	w.push("u", 730, "A")
	_, err := w.engine.Missing(t.Context())
	must(t, err)
	_, err = w.engine.Plan(t.Context())
	must(t, err)
	must(t, w.engine.Cancel(t.Context(), w.last(refresh.Missing).ID))
	w.clock.Add(time.Hour - time.Microsecond)
	w.drain()
	equal(t, "calls", len(s.requested()), 0)
	equal(t, "jobs", w.count(`SELECT count(*) FROM refresh_job`), 1)
	equal(t, "entries", w.count(`SELECT count(*) FROM missing_price WHERE attempts = 0`), 1)
	w.clock.Add(time.Microsecond)
	w.drain()
	equal(t, "price", w.named("A").Price, units(10))
	w.checkIdle()
}

func TestCancel_QueuedMissingJobPostponesDueEntries(t *testing.T) {
	s := batch("alpha", 10, []string{"A"}, "a1")
	w := newWorld(t, s)
	w.push("u", 730, "A")
	_, err := w.engine.Missing(t.Context())
	must(t, err)
	must(t, w.engine.Cancel(t.Context(), w.last(refresh.Missing).ID))
	w.clock.Add(time.Hour - time.Microsecond)
	w.drain()
	equal(t, "jobs", w.count(`SELECT count(*) FROM refresh_job`), 1)
	w.clock.Add(time.Microsecond)
	w.drain()
	equal(t, "price", w.named("A").Price, units(10))
	w.checkIdle()
}

func TestCancel_AbortsRequestInProgress(t *testing.T) {
	s := bulk("alpha", []string{"A"}, "a1")
	calling := make(chan struct{})
	s.before = func(ctx context.Context, _ provider.Call) {
		close(calling)
		<-ctx.Done()
	}
	w := newWorld(t, s)
	w.push("u", 730, "A")
	w.clearMissing()
	id := w.begin(false)
	_, err := w.engine.Plan(t.Context())
	must(t, err)
	var fetched sync.WaitGroup
	fetched.Go(func() {
		_, err := w.engine.Fetch(t.Context(), "alpha", "")
		must(t, err)
	})
	<-calling
	must(t, w.engine.Cancel(t.Context(), id))
	fetched.Wait()
	s.before = nil
	w.drain()
	equal(t, "state", w.job(id).State, refresh.Cancelled)
	equal(t, "requests counted", w.count(`SELECT requests + reserved FROM fetch_unit`), 1)
	equal(t, "failures of the provider", w.count(`SELECT count(*) FROM provider_state WHERE last_error <> ''`), 0)
	w.checkIdle()
}

func TestStop_ReleasesRequestAndKeepsResponse(t *testing.T) {
	list := names("Item", 20)
	s := batch("alpha", 10, list, "a1")
	w := newWorld(t, s)
	w.push("u", 730, list...)
	w.clearMissing()
	id := w.begin(false)
	_, err := w.engine.Plan(t.Context())
	must(t, err)
	for _, hangs := range []bool{true, false} {
		ctx, stop := context.WithCancel(t.Context())
		s.before = func(ctx context.Context, _ provider.Call) {
			stop()
			if hangs {
				<-ctx.Done()
			}
		}
		if !hangs {
			s.before = nil
			s.edit = func(*provider.Quote) bool { stop(); return true } // stops while the response is read
		}
		more, err := w.engine.Fetch(ctx, "alpha", "")
		must(t, err)
		equal(t, "whether there is more work", more, false)
		want := int64(0)
		if !hangs {
			want = 1
		}
		equal(t, "units done", w.count(`SELECT count(*) FROM fetch_unit WHERE state = 'done'`), want)
		equal(t, "claimed units", w.count(`SELECT count(*) FROM fetch_unit WHERE state = 'running'`), 0)
	}
	s.edit, s.before = nil, nil
	w.restart()
	w.drain()
	equal(t, "updated", w.job(id).Counts.Updated, 20)
	w.checkIdle()
}
