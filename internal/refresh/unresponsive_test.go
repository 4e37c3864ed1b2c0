package refresh_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"assay/internal/pricing"
	"assay/internal/provider"
	"assay/internal/refresh"
	"assay/internal/view"
)

// timed makes the engine's monotonic clock follow the test's clock.
func (w *world) timed() *world {
	w.elapsed = func() time.Duration { return w.clock.Now().Sub(epoch) }
	w.restart()
	return w
}

// estimateAll does all work of the estimate and apply stages. It sends no request.
func (w *world) estimateAll() {
	w.tb.Helper()
	for more := true; more; {
		more = false
		for _, work := range []func(context.Context) (bool, error){w.engine.Estimate, w.engine.Apply} {
			m, err := work(w.tb.Context())
			must(w.tb, err)
			more = more || m
		}
	}
}

// The provider refuses two connections. Then its circuit breaker rejects all calls.
func TestWait_JobContinuesWithoutAFailingProvider(t *testing.T) {
	list := names("Item", 300)
	down, live := batch("alpha", 10, list, "a1"), bulk("beta", list[:200], "b1")
	w := newWorld(t, down, live).timed()
	w.push("u", 730, list...)
	w.drain()
	before := timesOf(w.named(list[250]))
	down.fail = func(n int, _ provider.Call) error {
		if n < 3 {
			return down.broken(provider.KindConnect)
		}
		return &provider.Error{Provider: "alpha", Kind: provider.KindBreaker, RetryAfter: 30 * time.Second}
	}
	down.requested()
	w.clock.Add(7 * time.Hour)
	started := w.clock.Now()
	id := w.begin(false)
	for w.job(id).State.Live() {
		w.drain()
		if w.clock.Add(time.Second); w.clock.Now().Sub(started) > 3*time.Minute {
			t.Fatal("got no progress of the job within 3m, want it to continue")
		}
	}
	j := w.job(id)
	equal(t, "the duration of the job", j.FinishedAt.Sub(started), time.Minute)
	equal(t, "updated", j.Counts.Updated, 200)
	equal(t, "items that failed or were skipped by the breaker", j.Counts.Failed+j.Counts.SkippedBackoff, 100)
	if j.Counts.Failed > 20 {
		t.Errorf("got %d failed items, want at most 20", j.Counts.Failed)
	}
	late := j.Counts.SkippedBackoff
	equal(t, "outcome", j.Outcome, refresh.JobPartial)
	if !strings.HasPrefix(j.LastError, "alpha: no successful response for 1m0s; last error: alpha: circuit breaker open") {
		t.Errorf("got the last error %q, want one that reports no response from alpha for 1m", j.LastError)
	}
	if now := timesOf(w.named(list[250])); now != before {
		t.Errorf("the item changed from %+v to %+v, want no change", before, now)
	}
	w.checkCounts()

	// The retries continue, and the next job uses their response.
	down.fail = nil
	w.clock.Add(time.Minute)
	w.drain()
	equal(t, "quotes that await an estimate", w.count(`SELECT count(*) FROM market_snapshot WHERE reason IN ($1, $2)`, string(pricing.Awaiting), string(pricing.Confirmed)), 280)
	came := w.clock.Now()
	w.clock.Add(time.Minute)
	down.fail = func(int, provider.Call) error { return down.broken(provider.KindConnect) }
	j = w.run(false)
	equal(t, "items updated by late quotes", j.Counts.Updated, late)
	equal(t, "the check time", w.named(list[250]).CheckedAt, came)
	w.checkIdle()
}

// The breaker is open from the start, so the job sends no request.
func TestWait_JobContinuesWithAnOpenBreaker(t *testing.T) {
	list := names("Item", 20)
	down, live := bulk("alpha", list, "a1"), bulk("beta", list, "b1")
	w := newWorld(t, down, live).timed()
	w.push("u", 730, list...)
	w.clearMissing()
	down.admit = func(context.Context, provider.Call) error {
		return &provider.Error{Provider: "alpha", Kind: provider.KindBreaker, RetryAfter: 50 * time.Second}
	}
	id := w.begin(false)
	for w.job(id).State.Live() {
		w.drain()
		w.clock.Add(time.Second)
	}
	j := w.job(id)
	equal(t, "the duration of the job", j.FinishedAt.Sub(j.StartedAt), time.Minute)
	w.checkOutcome("job with an open breaker", j, refresh.JobPartial, "alpha/a1 backoff 1")
}

// The file arrives after its job has ended.
func TestWait_LateFileServesTheNextJob(t *testing.T) {
	list := names("Item", 200)
	for _, later := range []time.Duration{2 * time.Minute, time.Hour} {
		s := bulk("alpha", list, "a1")
		w := newWorld(t, s).timed()
		w.push("u", 730, list...)
		w.clearMissing()
		var id int64
		s.before = func(context.Context, provider.Call) {
			w.clock.Add(59 * time.Second)
			w.estimateAll()
			equal(t, "the state of the job", w.job(id).State, refresh.Running)
			w.clock.Add(time.Second)
			w.estimateAll()
			equal(t, "the state of the job", w.job(id).State, refresh.Failed)
			// Regression: the health of a provider that never responded remained "unknown".
			equal(t, "stored failures", fmt.Sprint(w.failures("alpha")), "[1]")
			w.clock.Add(time.Minute)
		}
		id = w.begin(false)
		w.drain()
		equal(t, "stored failures after the late response", fmt.Sprint(w.failures("alpha")), "[0]")
		j := w.job(id)
		equal(t, "failed", j.Counts.Failed, 200)
		equal(t, "the last error", j.LastError, "alpha: no successful response for 1m0s")
		came := w.clock.Now()

		s.before = nil
		s.requested()
		s.fail = func(int, provider.Call) error { return s.broken(provider.KindConnect) }
		w.clock.Add(later)
		j = w.run(false)
		equal(t, "updated", j.Counts.Updated, 200)
		equal(t, "the check time", w.named(list[7]).CheckedAt, came)
		equal(t, "the quote time", w.named(list[7]).QuotesAt, came)
		if later < 5*time.Minute {
			equal(t, "requests", len(s.requested()), 0)
			equal(t, "outcome", j.Outcome, refresh.JobComplete)
		} else {
			equal(t, "requests", len(s.requested()), 1)
			w.checkOutcome("job with another late response", j, refresh.JobPartial, "alpha/a1 failed 0.5")
		}
		s.fail = nil
		w.clock.Add(7 * time.Hour)
		equal(t, "items updated again", w.run(false).Counts.Updated, 200)
		equal(t, "the check time", w.named(list[7]).CheckedAt, w.clock.Now())
		w.checkIdle()
		w.stop()
	}
}

// The requests fail after their job has continued without them. The failure is counted
// already.
func TestWait_UnresponsiveHostCountsAsOneFailure(t *testing.T) {
	list := names("Item", 20)
	for _, s := range []*fakeProvider{bulk("alpha", list, "a1"), batch("alpha", 20, list, "a1")} {
		w := newWorld(t, s).timed()
		w.push("u", 730, list...)
		w.run(false)
		w.clock.Add(7 * time.Hour)
		for failures := range 3 {
			var id int64
			s.before = func(context.Context, provider.Call) {
				w.clock.Add(time.Minute)
				w.estimateAll()
				equal(t, "the state of the job", w.job(id).State, refresh.Failed)
				equal(t, "stored failures", fmt.Sprint(w.failures("alpha")), fmt.Sprint([]int{failures + 1}))
				w.clock.Add(time.Minute)
			}
			s.fail = func(int, provider.Call) error { return s.broken(provider.KindTimeout) }
			id = w.begin(false)
			w.drain()
			equal(t, "stored failures after the request failed", fmt.Sprint(w.failures("alpha")), fmt.Sprint([]int{failures + 1}))
			w.clock.Add(time.Hour)
		}
		w.stop()
	}
}

// failures returns the number of consecutive failures of each file of a provider.
func (w *world) failures(provider string) (all []int64) {
	w.tb.Helper()
	files, err := view.ProviderFiles(w.tb.Context(), w.store)
	must(w.tb, err)
	for _, f := range files[provider] {
		all = append(all, f.Failures)
	}
	return all
}

// The provider is slow, or waits for its own rate limit.
func TestWait_RespondingProviderIsWaitedFor(t *testing.T) {
	list := names("Item", 120)
	slow, limited := single("alpha", list, "a1"), batch("beta", 10, list, "b1")
	w := newWorld(t, slow, limited).timed()
	w.push("u", 730, list...)
	w.clearMissing()
	slow.before = func(context.Context, provider.Call) {
		w.clock.Add(40 * time.Second)
		w.estimateAll()
	}
	limited.admit = func(context.Context, provider.Call) error {
		w.clock.Add(2 * time.Minute)
		w.estimateAll()
		return nil
	}
	j := w.run(false)
	equal(t, "outcome", j.Outcome, refresh.JobComplete)
	equal(t, "detached units", w.count(`SELECT count(*) FROM fetch_unit WHERE detached <> 0`), 0)
	w.checkIdle()
}

// The requests of the second job are not sent.
func TestWait_SecondJobContinuesWithoutTheHost(t *testing.T) {
	list := names("Item", 20)
	s, live := bulk("alpha", list, "a1"), bulk("beta", append(list, "New"), "b1")
	w := newWorld(t, s, live).timed()
	w.push("u", 730, list...)
	w.clearMissing()
	s.before = func(context.Context, provider.Call) {
		s.before = nil
		w.clock.Add(30 * time.Second)
		w.push("v", 730, "New")
		_, err := w.engine.Missing(t.Context())
		must(t, err)
		_, err = w.engine.Plan(t.Context())
		must(t, err)
		for range 100 {
			w.clock.Add(time.Second)
			_, err := w.engine.Fetch(t.Context(), "beta", "")
			must(t, err)
			w.estimateAll()
		}
	}
	w.run(false)
	equal(t, "the price of the new name", w.named("New").Price, units(10))
	j := w.last(refresh.Missing)
	if took := j.FinishedAt.Sub(j.StartedAt); took < time.Minute || took > time.Minute+5*time.Second {
		t.Errorf("the job took %v, want from 1m to 1m5s", took)
	}
	w.checkOutcome("job for the new name", j, refresh.JobPartial, "alpha/a1 failed 1")
}

func TestRequestCount_NeverFalls(t *testing.T) {
	list := names("Item", 130)
	a, b := single("alpha", list, "a1"), bulk("beta", list, "b1", "b2")
	w := newWorld(t, a, b)
	a.fail = func(n int, _ provider.Call) error {
		switch n % 20 {
		case 7:
			return a.broken(provider.KindServer)
		case 13:
			return a.wait(time.Second)
		}
		return nil
	}
	b.admit = func(_ context.Context, call provider.Call) error { // the unit is claimed, but its request is not sent
		if call.File == "b2.json" {
			return b.broken(provider.KindBreaker)
		}
		return nil
	}
	w.push("u", 730, list...)
	w.clearMissing()
	last, looks := map[int64]int64{}, 0
	look := func() {
		jobs, err := view.Jobs(t.Context(), w.store, "", 1<<62, 10)
		must(t, err)
		for _, j := range jobs {
			uses, err := view.RequestCounts(t.Context(), w.store, []int64{j.ID})
			must(t, err)
			var n int64
			for _, u := range uses {
				n += u.Requests
			}
			if n < last[j.ID] {
				t.Fatalf("job %d: got a request count that fell from %d to %d, want no decrease", j.ID, last[j.ID], n)
			}
			last[j.ID] = n
			looks++
		}
	}
	kills := 0
	a.before = func(context.Context, provider.Call) {
		look()
		if kills++; kills == 60 || kills == 120 { // the claim is lost during the unit
			w.exec(`UPDATE fetch_unit SET state = 'pending', token = token + 1 WHERE state = 'running'`)
			look()
		}
	}
	w.everyStep = look
	id := w.begin(false)
	for w.job(id).State.Live() {
		w.drain()
		w.clock.Add(time.Second)
	}
	a.before = nil
	look()
	sent := int64(len(a.requested()) + len(b.requested()))
	if got := last[id]; got < sent || got > sent+20 {
		t.Errorf("got %d requests counted by the job, want the %d that the providers got and at most 20 more", got, sent)
	}
	if looks < 100 {
		t.Fatalf("got %d reads of the jobs, want at least 100", looks)
	}
}
