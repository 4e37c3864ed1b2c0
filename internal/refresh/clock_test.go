package refresh_test

import (
	"testing"
	"time"

	"assay/internal/money"
	"assay/internal/provider"
	"assay/internal/randtest"
	"assay/internal/refresh"
)

func TestClock_ChangeLosesAndStopsNothing(t *testing.T) {
	r := randtest.New(t)
	list := names("Item", 60)
	jumps := []time.Duration{time.Hour, -time.Hour, 30 * time.Minute, -30 * time.Minute, 400 * 24 * time.Hour, -400 * 24 * time.Hour}
	for range randtest.Count(15, 1000) {
		a, b := bulk("alpha", list, "a1", "a2"), batch("beta", 20, list, "b1")
		price := units(10)
		for _, s := range []*fakeProvider{a, b} {
			s.price = func(string, string) money.Micro { return price }
		}
		w := newWorld(t, a, b)
		w.push("u", 730, list...)
		w.push("v", 730, "Unknown to all")
		w.drain()
		price = units(12)
		b.fail = func(int, provider.Call) error {
			if r.IntN(3) == 0 {
				return b.wait(time.Minute)
			}
			return nil
		}
		id := w.begin(true)
		jump := jumps[r.IntN(len(jumps))]
		at := r.IntN(8)
		for step := 0; ; step++ {
			if step == at {
				w.clock.Add(jump)
			}
			more, err := w.step()
			must(t, err)
			w.checkCounts()
			if !w.job(id).State.Live() {
				break
			}
			if !more {
				w.clock.Add(time.Minute) // ends one wait, or two waits if the clock was set back
			}
			if step > 300 {
				t.Fatalf("after a clock change of %v at step %d: got the job %+v, want an ended job", jump, at, w.job(id))
			}
		}
		b.fail = nil
		w.drain()
		w.clock.Add(2 * time.Minute)
		w.drain()
		j := w.job(id)
		equal(t, "state", j.State, refresh.Finished)
		equal(t, "items", j.Counts.Total, 61)
		equal(t, "failed", j.Counts.Failed, 0)
		w.checkIdle()
		if j.Counts.Updated < 60 { // some responses of the job are now 400 days old
			equal(t, "the clock change", jump, 400*24*time.Hour)
			w.run(true)
		}
		equal(t, "value", w.valueOf("u", 5), units(12))
		// The queue is not stuck: a pause ends after at most 72 hours.
		before := w.count(`SELECT attempts FROM missing_price`)
		w.clock.Add(refresh.MaxMissingRetry + time.Microsecond)
		w.drain()
		if after := w.count(`SELECT attempts FROM missing_price`); after <= before {
			t.Errorf("got no new attempt of the queued item after a clock change of %v, want one", jump)
		}
		w.stop()
	}
}

// The pause between attempts doubles up to MaxMissingRetry, whatever the first pause is.
func TestRule3_PauseDoublesUpToItsMaximum(t *testing.T) {
	for _, first := range []time.Duration{time.Second, time.Hour, refresh.MaxMissingRetry} {
		w := newWorld(t, batch("alpha", 10, nil, "a1"))
		w.stop()
		w.cfg.MissingRetry = first
		w.start()
		w.push("u", 730, "A")
		want := first
		for attempt, last := 1, 0; last < 2; attempt++ {
			w.drain()
			equal(t, "attempts", w.count(`SELECT attempts FROM missing_price`), int64(attempt))
			due := time.UnixMicro(w.count(`SELECT due_at FROM missing_price`))
			if pause := due.Sub(w.clock.Now()); pause != want {
				t.Fatalf("pause after attempt %d: got %v, want %v", attempt, pause, want)
			}
			if want == refresh.MaxMissingRetry {
				last++
			}
			w.clock.Add(want)
			want = min(2*want, refresh.MaxMissingRetry)
		}
		w.stop()
	}
}
