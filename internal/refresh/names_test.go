package refresh_test

import (
	"context"
	"testing"
	"time"

	"assay/internal/provider"
	"assay/internal/refresh"
	"assay/internal/view"
)

// requestedTimes counts how often each name was requested.
func requestedTimes(calls []provider.Call) map[string]int {
	out := map[string]int{}
	for _, c := range calls {
		for _, n := range c.Names {
			out[n]++
		}
	}
	return out
}

// No provider quotes the game. The items and the job must state the reason.
func TestPlan_GameWithoutProviderFails(t *testing.T) {
	const why = "no configured provider quotes this game"
	w := newWorld(t, single("alpha", []string{"A"}, "a1"))
	w.push("u", 999, "A")
	w.drain()
	for _, j := range []refresh.Job{w.last(refresh.Missing), w.run(true)} {
		equal(t, "state", j.State, refresh.Failed)
		equal(t, "failed", j.Counts.Failed, 1)
		equal(t, "the last error", j.LastError, why)
		items, err := view.JobItems(t.Context(), w.store, j.ID, refresh.ItemFailed, -1, 0, 10)
		must(t, err)
		equal(t, "error", items[0].Error, why)
	}
	equal(t, "estimated", w.count(`SELECT count(*) FROM item WHERE estimated_at <> 0`), 0)
	equal(t, "waiting names", w.count(`SELECT count(*) FROM missing_price`), 1)
}

func TestNames_FailingNameFailsAlone(t *testing.T) {
	list := names("Item", 120)
	s := single("alpha", list, "a1", "a2", "a3")
	w := newWorld(t, s)
	w.push("u", 730, list...)
	w.clearMissing()
	s.fail = func(_ int, c provider.Call) error {
		if c.Names[0] == list[7] || c.Names[0] == list[77] {
			return s.broken(provider.KindProtocol)
		}
		return nil
	}
	j := w.run(false)
	equal(t, "updated", j.Counts.Updated, 118)
	equal(t, "failed", j.Counts.Failed, 2)
	equal(t, "state", w.states(j.ID)[list[7]], refresh.ItemFailed)
	equal(t, "the last error", j.LastError, "alpha: unexpected response: scripted failure")
	for n, times := range requestedTimes(s.requested()) {
		equal(t, "calls for "+n, times, 1)
	}
	equal(t, "requests counted", w.count(`SELECT sum(requests) FROM fetch_unit`), 120)
	w.checkIdle()
}

func TestNames_SuccessfulCallIsNotRepeated(t *testing.T) {
	list := names("Item", 120)
	s := single("alpha", list, "a1", "a2", "a3")
	w := newWorld(t, s)
	w.push("u", 730, list...)
	w.clearMissing()
	left := 0 // a budget of 20 requests a minute
	s.fail = func(int, provider.Call) error {
		if left--; left < 0 {
			return &provider.Error{Provider: "alpha", Kind: provider.KindBudget, RetryAfter: time.Minute}
		}
		return nil
	}
	id := w.begin(false)
	minutes := 0
	for ; w.job(id).State.Live() && minutes < 100; minutes++ {
		left = 20
		w.drain()
		w.checkCounts()
		w.clock.Add(time.Minute)
	}
	equal(t, "updated", w.job(id).Counts.Updated, 120)
	if minutes > 7 {
		t.Errorf("the job took %d minutes, want at most 7", minutes)
	}
	refused := len(s.requested()) - 120
	if refused > 3*minutes {
		t.Errorf("got %d repeated calls, want at most %d", refused, 3*minutes)
	}
	w.checkIdle()
}

func TestNames_BudgetSkipsTheRest(t *testing.T) {
	list := names("Item", 50)
	s := single("alpha", list, "a1", "a2", "a3")
	w := newWorld(t, s)
	w.push("u", 730, list...)
	w.clearMissing()
	left := 20
	s.fail = func(int, provider.Call) error {
		if left--; left < 0 {
			return s.broken(provider.KindBudget)
		}
		return nil
	}
	j := w.run(false)
	equal(t, "updated", j.Counts.Updated, 20)
	equal(t, "items skipped for the budget", j.Counts.SkippedBudget, 30)
	equal(t, "calls", len(s.requested()), 21)
	w.checkIdle()
}

func TestNames_UnitIsAbandonedAfterThreeFailures(t *testing.T) {
	list := names("Item", 50)
	s := single("alpha", list, "a1", "a2", "a3")
	w := newWorld(t, s)
	w.push("u", 730, list...)
	w.clearMissing()
	s.fail = func(n int, _ provider.Call) error {
		if n > 10 {
			return s.broken(provider.KindConnect)
		}
		return nil
	}
	j := w.run(false)
	equal(t, "updated", j.Counts.Updated, 10)
	equal(t, "failed", j.Counts.Failed, 40)
	equal(t, "calls", len(s.requested()), 13)
	w.checkIdle()
}

func TestNames_StopKeepsResponses(t *testing.T) {
	list := names("Item", 50)
	s := single("alpha", list, "a1", "a2", "a3")
	w := newWorld(t, s)
	w.push("u", 730, list...)
	w.clearMissing()
	id := w.begin(false)
	_, err := w.engine.Plan(t.Context())
	must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	calls := 0
	s.before = func(context.Context, provider.Call) {
		if calls++; calls == 30 {
			stop()
		}
	}
	_, err = w.engine.Fetch(ctx, "alpha", "")
	must(t, err)
	w.restart()
	w.drain()
	equal(t, "updated", w.job(id).Counts.Updated, 50)
	equal(t, "calls", len(s.requested()), 51)
	w.checkIdle()
}

func TestLimit_EveryNameIsRequestedInTheEnd(t *testing.T) {
	list := names("Item", 1_000)
	s := batch("alpha", 100, list, "a1")
	w := newWorld(t, s, bulk("beta", list, "b1")) // beta gives all names the same age
	w.push("u", 730, list...)
	w.clearMissing()
	left := 0 // a job may send three calls
	s.fail = func(int, provider.Call) error {
		if left--; left < 0 {
			return &provider.Error{Provider: "alpha", Kind: provider.KindBudget, RetryAfter: time.Hour}
		}
		return nil
	}
	times := map[string]int{}
	for run := range 10 {
		left = 3
		w.run(true)
		for _, c := range s.requested()[:3] {
			for _, n := range c.Names {
				times[n]++
			}
		}
		w.clock.Add(time.Hour)
		least, most := 1_000, 0
		for _, n := range list {
			least, most = min(least, times[n]), max(most, times[n])
		}
		if most-least > 1 {
			t.Fatalf("after %d jobs: got %d and %d requests for two names, want a difference of at most 1", run+1, least, most)
		}
	}
	equal(t, "requested names", len(times), len(list))
	w.checkIdle()
}
