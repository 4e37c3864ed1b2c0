package dispatch_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"assay/internal/dispatch"
)

var errTest = errors.New("test error")

// runner runs a dispatcher in a synctest bubble.
type runner struct {
	*dispatch.Local
	stop func() // cancels the context and waits for Run to return
}

func start(t *testing.T, o dispatch.LocalOptions) runner {
	t.Helper()
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Logger = slog.New(slog.DiscardHandler)
	l := dispatch.NewLocal(o)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { l.Run(ctx) })
	stop := func() {
		cancel()
		running.Wait()
	}
	t.Cleanup(stop)
	return runner{l, stop}
}

// times records when something happened.
type times struct {
	mu   sync.Mutex
	list []time.Time
}

func (h *times) record() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, time.Now())
}

func (h *times) all() []time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.list)
}

// pile is a number of pieces of work.
type pile struct {
	left, done, looks atomic.Int64
}

func (p *pile) work(context.Context) (bool, error) {
	p.looks.Add(1)
	if p.left.Add(-1) < 0 {
		p.left.Add(1)
		return false, nil
	}
	p.done.Add(1)
	return true, nil
}

func TestWorker_ProcessesExistingWorkWithoutDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pile
		p.left.Store(1000)
		start(t, dispatch.LocalOptions{Workers: []dispatch.Worker{{Kind: "k", Slots: 3, Work: p.work}}})
		synctest.Wait() // returns before any time passes
		if n := p.done.Load(); n != 1000 {
			t.Errorf("got %d pieces done, want 1000", n)
		}
	})
}

func TestWorker_RunsImmediatelyAfterAWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pile
		r := start(t, dispatch.LocalOptions{Workers: []dispatch.Worker{{Kind: "k", Slots: 1, Work: p.work}}})
		synctest.Wait()
		for range 5 {
			p.left.Add(2)
			r.Wake("k")
			r.Wake("k")       // a duplicate hint has no effect
			r.Wake("unknown") // an unknown kind is ignored
			synctest.Wait()
			if n := p.left.Load(); n != 0 {
				t.Fatalf("got %d pieces left after a wake, want 0", n)
			}
		}
	})
}

func TestWorker_WakesEverySlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var inside atomic.Int64
		release := make(chan struct{})
		var ready atomic.Bool
		r := start(t, dispatch.LocalOptions{Workers: []dispatch.Worker{{Kind: "k", Slots: 4, Work: func(ctx context.Context) (bool, error) {
			if !ready.Load() {
				return false, nil
			}
			inside.Add(1)
			select {
			case <-release:
			case <-ctx.Done():
			}
			return false, nil
		}}}})
		synctest.Wait()
		ready.Store(true)
		r.Wake("k")
		synctest.Wait()
		if n := inside.Load(); n != 4 {
			t.Errorf("got %d active slots, want 4", n)
		}
		close(release)
	})
}

func TestWorker_KeepsAWakeDuringWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pile
		var r runner
		first := true
		var mu sync.Mutex
		begun := make(chan struct{})
		r = start(t, dispatch.LocalOptions{Workers: []dispatch.Worker{{Kind: "k", Slots: 1, Work: func(ctx context.Context) (bool, error) {
			mu.Lock()
			was := first
			first = false
			mu.Unlock()
			if !was {
				return p.work(ctx)
			}
			more, err := p.work(ctx) // finds no work
			<-begun                  // new work arrives before this call returns
			return more, err
		}}}})
		synctest.Wait()
		p.left.Add(1)
		r.Wake("k")
		close(begun)
		synctest.Wait()
		if n := p.left.Load(); n != 0 {
			t.Error("got new work left, want it done before the next sweep")
		}
	})
}

func TestWorker_SweepFindsWorkWithoutAWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pile
		const sweep = 2 * time.Second
		start(t, dispatch.LocalOptions{Sweep: sweep, Workers: []dispatch.Worker{{Kind: "k", Slots: 1, Work: p.work}}})
		synctest.Wait()
		for range 20 {
			p.left.Add(1)
			time.Sleep(sweep * 3 / 2)
			synctest.Wait()
			if n := p.left.Load(); n != 0 {
				t.Fatal("got work left after one and a half sweep intervals, want none")
			}
		}
		if n := p.looks.Load(); n > 100 {
			t.Errorf("got %d calls in a minute, want at most 100", n)
		}
	})
}

func TestWorker_BacksOffAfterErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failing atomic.Bool
		failing.Store(true)
		var looks times
		start(t, dispatch.LocalOptions{Workers: []dispatch.Worker{{Kind: "k", Slots: 1, Work: func(context.Context) (bool, error) {
			looks.record()
			if failing.Load() {
				return true, errTest
			}
			return false, nil
		}}}})
		time.Sleep(time.Minute)
		synctest.Wait()
		at := looks.all()
		var pauses []time.Duration
		for i := 1; i < len(at); i++ {
			pauses = append(pauses, at[i].Sub(at[i-1]))
		}
		want := []time.Duration{
			200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond, 1600 * time.Millisecond,
			3200 * time.Millisecond, 6400 * time.Millisecond, 10 * time.Second, 10 * time.Second,
		}
		if len(pauses) < len(want) || !slices.Equal(pauses[:len(want)], want) {
			t.Errorf("got pauses %v, want %v", pauses, want)
		}
		failing.Store(false)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		n := len(looks.all())
		failing.Store(true) // the backoff starts again with the minimum
		time.Sleep(3*time.Second + 300*time.Millisecond)
		synctest.Wait()
		if again := len(looks.all()) - n; again < 2 {
			t.Errorf("got %d calls, want at least 2", again)
		}
	})
}

func TestRun_ReturnsWhenEveryWorkerHasStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stopped atomic.Int64
		hang := func(ctx context.Context) (bool, error) {
			<-ctx.Done()
			time.Sleep(time.Second) // simulates remaining work
			stopped.Add(1)
			return true, ctx.Err()
		}
		r := start(t, dispatch.LocalOptions{
			Workers: []dispatch.Worker{{Kind: "a", Slots: 3, Work: hang}, {Kind: "b", Work: hang}},
			Tasks: []dispatch.Task{{
				Name: "t", Next: func(after time.Time) time.Time { return after.Add(time.Second) },
				Run: func(ctx context.Context) error { _, err := hang(ctx); return err },
			}},
		})
		time.Sleep(5 * time.Second)
		r.stop()
		if n := stopped.Load(); n != 5 {
			t.Errorf("got %d stopped workers and tasks, want 5", n)
		}
	})
}

// setClock is a clock that a test can change.
type setClock struct{ offset atomic.Int64 }

func (c *setClock) now() time.Time { return time.Now().Add(time.Duration(c.offset.Load())) }

func (c *setClock) set(d time.Duration) { c.offset.Add(int64(d)) }

// every returns a task that runs at multiples of d.
func every(d time.Duration, ran *times) dispatch.Task {
	return dispatch.Task{
		Name: "t", Next: func(after time.Time) time.Time { return after.Truncate(d).Add(d) },
		Run: func(context.Context) error {
			ran.record()
			return errTest // the task must still run at its next time
		},
	}
}

func TestTask_RunsAtItsTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ran times
		begun := time.Now()
		r := start(t, dispatch.LocalOptions{Tasks: []dispatch.Task{every(time.Hour, &ran)}})
		synctest.Wait()
		if got, want := r.Scheduled()["t"], begun.Truncate(time.Hour).Add(time.Hour); !got.Equal(want) {
			t.Errorf("got time %v, want %v", got, want)
		}
		time.Sleep(5*time.Hour + time.Second)
		synctest.Wait()
		if len(ran.all()) != 5 {
			t.Fatalf("got %d runs in five hours, want 5", len(ran.all()))
		}
		for i, at := range ran.all() {
			if d := at.Sub(begun.Truncate(time.Hour).Add(time.Duration(i+1) * time.Hour)); d < 0 || d > time.Second {
				t.Errorf("got a delay of %v, want at most 1s", d)
			}
		}
	})
}

func TestTask_WithoutATimeNeverRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, dispatch.LocalOptions{Tasks: []dispatch.Task{{
			Name: "t", Next: func(time.Time) time.Time { return time.Time{} },
			Run: func(context.Context) error { t.Error("the task ran, want it not started"); return nil },
		}}})
		time.Sleep(1000 * time.Hour)
		if len(r.Scheduled()) != 0 {
			t.Error("the task is scheduled, want it not scheduled")
		}
	})
}

func TestTask_RunsOnceWhenTheClockIsSetForward(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ran times
		var c setClock
		start(t, dispatch.LocalOptions{Now: c.now, Tasks: []dispatch.Task{every(time.Hour, &ran)}})
		time.Sleep(time.Second)
		c.set(400 * 24 * time.Hour)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if len(ran.all()) != 1 {
			t.Errorf("got %d runs after the change, want 1", len(ran.all()))
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(ran.all()) != 2 {
			t.Errorf("got %d runs in the next hour, want 1", len(ran.all())-1)
		}
	})
}

func TestTask_ContinuesWhenTheClockIsSetBack(t *testing.T) {
	for _, back := range []time.Duration{time.Second * 3, time.Hour, 400 * 24 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			var ran times
			var c setClock
			start(t, dispatch.LocalOptions{Now: c.now, Tasks: []dispatch.Task{every(time.Hour, &ran)}})
			time.Sleep(10 * time.Second)
			c.set(-back)
			time.Sleep(time.Hour + time.Second)
			synctest.Wait()
			if len(ran.all()) == 0 {
				t.Errorf("got no run in the hour after the clock was set back by %v, want one", back)
			}
		})
	}
}

func TestTask_SmallClockCorrectionsDoNotDelayARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ran times
		var c setClock
		start(t, dispatch.LocalOptions{Now: c.now, Tasks: []dispatch.Task{{
			Name: "t", Next: func(after time.Time) time.Time { return after.Add(30 * time.Minute) },
			Run: func(context.Context) error { ran.record(); return nil },
		}}})
		for range 29 { // the clock is corrected by some seconds each minute
			time.Sleep(time.Minute)
			c.set(-2 * time.Second)
		}
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		if n := len(ran.all()); n != 1 {
			t.Errorf("got %d runs in 32 minutes, want 1", n)
		}
	})
}

func TestTask_GetsTheWallClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start(t, dispatch.LocalOptions{Tasks: []dispatch.Task{{
			Name: "t", Next: func(after time.Time) time.Time {
				if strings.Contains(after.String(), "m=") {
					t.Errorf("got time %v with a monotonic reading, want none", after)
				}
				return after.Add(time.Second)
			},
			Run: func(context.Context) error { return nil },
		}}})
		time.Sleep(10 * time.Second)
	})
}
