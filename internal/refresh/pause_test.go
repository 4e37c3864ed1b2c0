package refresh_test

import (
	"testing"
	"time"

	"assay/internal/money"
	"assay/internal/provider"
	"assay/internal/refresh"
)

func TestPause_JobsContinueWithoutTheProvider(t *testing.T) {
	list := names("Item", 20)
	a, b := bulk("alpha", list, "a1"), batch("beta", 5, list, "b1")
	w := newWorld(t, a, b)
	w.push("u", 730, list...)
	w.clearMissing()
	if err := w.engine.PauseProvider(t.Context(), "unknown"); code(err) != "provider_not_found" {
		t.Errorf("pause of an unknown provider: got error %v, want provider_not_found", err)
	}
	must(t, w.engine.PauseProvider(t.Context(), "beta"))
	j := w.run(false)
	equal(t, "updated", j.Counts.Updated, 20)
	equal(t, "calls of the paused provider", len(b.requested()), 0)
	must(t, w.engine.ResumeProvider(t.Context(), "beta"))
	w.run(true)
	equal(t, "calls of the resumed provider", len(b.requested()), 4)

	// An operator pauses the provider during a job, while one of its units must be retried.
	w.begin(true)
	_, err := w.engine.Plan(t.Context())
	must(t, err)
	b.fail = func(int, provider.Call) error {
		must(t, w.engine.PauseProvider(t.Context(), "beta"))
		return b.wait(time.Second)
	}
	w.drain()
	w.clock.Add(time.Minute)
	w.drain()
	equal(t, "calls after the pause", len(b.requested()), 1)
	j = w.last(refresh.Bulk)
	equal(t, "state", j.State, refresh.Finished)
	equal(t, "updated", j.Counts.Updated, 20)
	w.checkIdle()
}

func TestPause_OnlyProviderSkipsItemsAsPaused(t *testing.T) {
	s := bulk("alpha", []string{"A"}, "a1")
	w := newWorld(t, s)
	w.push("u", 730, "A")
	must(t, w.engine.PauseProvider(t.Context(), "alpha"))
	w.drain()
	equal(t, "entries", w.count(`SELECT count(*) FROM missing_price WHERE job_id = 0 AND attempts = 0`), 1)
	equal(t, "items skipped for a pause", w.run(false).Counts.SkippedPaused, 1)
	must(t, w.engine.ResumeProvider(t.Context(), "alpha"))
	w.clock.Add(time.Hour)
	w.drain()
	equal(t, "price", w.named("A").Price, units(10))
	w.checkIdle()
}

func TestRemovedProvider_DelaysNoJobAndDropsItsQuotes(t *testing.T) {
	list := names("Item", 30)
	for _, done := range []bool{false, true} { // without and with the complete response of the removed provider
		a, gone := bulk("alpha", list, "a1", "a2", "a3"), bulk("beta", list, "b1", "b2", "b3")
		gone.price = func(string, string) money.Micro { return units(12) }
		w := newWorld(t, a, gone)
		w.push("u", 730, list...)
		w.clearMissing()
		id := w.begin(false)
		_, err := w.engine.Plan(t.Context())
		must(t, err)
		for range 2 { // the unit of the third file stays open
			_, err := w.engine.Fetch(t.Context(), "beta", "")
			must(t, err)
		}
		if done {
			_, err := w.engine.Fetch(t.Context(), "beta", "")
			must(t, err)
		}
		w.providers = w.providers[:1]
		w.restart()
		w.drain()
		j := w.job(id)
		equal(t, "state", j.State, refresh.Finished)
		equal(t, "updated", j.Counts.Updated, 30)
		equal(t, "price", w.named(list[0]).Price, units(10))
		if !done && j.LastError != "beta: no longer configured" {
			t.Errorf("last error: got %q, want %q", j.LastError, "beta: no longer configured")
		}
		w.checkIdle()
		w.stop()
	}
}

func TestRemovedProvider_WithoutAnyProviderTheJobEnds(t *testing.T) {
	w := newWorld(t, batch("alpha", 10, []string{"A"}, "a1"))
	w.push("u", 730, "A")
	w.clearMissing()
	id := w.begin(false)
	_, err := w.engine.Plan(t.Context())
	must(t, err)
	w.providers = nil
	w.restart()
	w.drain()
	equal(t, "state", w.job(id).State, refresh.Failed)
	equal(t, "failed", w.job(id).Counts.Failed, 1)
	w.checkIdle()
}
