package view

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// counter simulates a slow count and records the number of calls.
type counter struct {
	takes time.Duration
	made  atomic.Int64
	err   error
}

func (c *counter) count(context.Context, time.Time) (Freshness, error) {
	n := c.made.Add(1)
	time.Sleep(c.takes)
	return Freshness{Fresh: n}, c.err
}

var (
	running  = ofJob(true, freshKey{job: 1})
	applying = ofJob(true, freshKey{job: 1, estimated: true})
	ended    = ofJob(false, freshKey{job: 1, estimated: true})
)

func ofJob(running bool, key freshKey) *counted {
	return &counted{Status{Status: RunStatus{Running: running}}, key}
}

// get returns the number of the count that f returned, and the time that the call took.
func get(t *testing.T, f *freshness, of *counted, c *counter) (which int64, took time.Duration) {
	t.Helper()
	began := time.Now()
	got, err := f.get(t.Context(), of, time.Now, c.count)
	if err != nil && c.err == nil {
		t.Error(err)
	}
	return got.Fresh, time.Since(began)
}

// want fails the test unless f returns the given count after the given time.
func want(t *testing.T, f *freshness, of *counted, c *counter, which int64, took time.Duration) {
	t.Helper()
	if n, d := get(t, f, of, c); n != which || d != took {
		t.Errorf("got count %d after %v, want %d after %v", n, d, which, took)
	}
}

func TestFreshness_ReusesRecentCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f freshness
		c := &counter{}
		want(t, &f, running, c, 1, 0)
		time.Sleep(freshRenew - time.Nanosecond)
		want(t, &f, running, c, 1, 0)
		time.Sleep(time.Nanosecond)
		want(t, &f, running, c, 2, 0)
	})
}

// A loop counts before requests have to. Requests then get its count.
func TestFreshness_IsRenewedBesideRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f freshness
		c := &counter{}
		if f.inUse(time.Now()) {
			t.Error("before the first request: got a count in use, want none")
		}
		want(t, &f, running, c, 1, 0)
		time.Sleep(freshSoon)
		if n, err := f.newer(t.Context(), running, freshSoon, time.Now, c.count); err != nil || n.Fresh != 2 {
			t.Errorf("renewed count: got %d, error %v, want 2", n.Fresh, err)
		}
		time.Sleep(freshRenew - time.Nanosecond)
		want(t, &f, running, c, 2, 0)
		time.Sleep(inUse)
		if f.inUse(time.Now()) {
			t.Error("a minute after the last request: got a count in use, want none")
		}
	})
}

func TestFreshness_ReturnsOldCountWhileNewOneRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f freshness
		c := &counter{}
		want(t, &f, running, c, 1, 0)
		time.Sleep(freshRenew)
		c.takes = 100 * time.Millisecond
		go get(t, &f, running, c)
		synctest.Wait()
		for range 10 {
			want(t, &f, running, c, 1, 0)
		}
		time.Sleep(c.takes)
		synctest.Wait()
		want(t, &f, running, c, 2, 0)
	})
}

func TestFreshness_WaitsForSlowCountWhenOldOneExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f freshness
		c := &counter{}
		want(t, &f, running, c, 1, 0)
		time.Sleep(freshRenew)
		c.takes = 10 * time.Second
		go get(t, &f, running, c)
		time.Sleep(freshKeep - freshRenew)
		want(t, &f, running, c, 2, c.takes-(freshKeep-freshRenew))
	})
}

// The loop counts as soon as a job has changed its last price. So requests after its end need
// not count.
func TestFreshness_IsCountedWhileAJobApplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f freshness
		c := &counter{takes: time.Second}
		want(t, &f, running, c, 1, c.takes)
		for _, of := range []*counted{applying, applying, ended} {
			if _, err := f.newer(t.Context(), of, f.soon(of.key), time.Now, c.count); err != nil {
				t.Error(err)
			}
		}
		want(t, &f, applying, c, 2, 0)
		want(t, &f, ended, c, 2, 0)
	})
}

func TestFreshness_CountsAgainWhenAJobEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f freshness
		c := &counter{}
		want(t, &f, running, c, 1, 0)
		want(t, &f, ended, c, 2, 0)
		want(t, &f, ended, c, 2, 0)
		// A count that began before the job ended must not be returned after its end.
		f, c.takes = freshness{}, time.Second
		go get(t, &f, running, c) // third count
		synctest.Wait()
		want(t, &f, ended, c, 4, 2*time.Second)
	})
}

func TestFreshness_WaitingCallerRetriesFailedCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f freshness
		bad, good := &counter{takes: time.Second, err: errors.New("no")}, &counter{}
		go get(t, &f, running, bad)
		synctest.Wait()
		want(t, &f, running, good, 1, time.Second)
	})
}

func TestFreshness_CancelledCallerReturnsImmediately(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f freshness
		go get(t, &f, running, &counter{takes: time.Minute})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := f.get(ctx, running, time.Now, (&counter{}).count); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("call with an ended context: got error %v, want context.DeadlineExceeded", err)
		}
		time.Sleep(time.Minute) // until the other caller's count ends
	})
}

func TestFreshness_CountsAgainAfterClockMovesBack(t *testing.T) {
	var f freshness
	c := &counter{}
	now := time.Now()
	for _, step := range []time.Duration{0, -time.Hour, 0} {
		now = now.Add(step)
		if _, err := f.get(t.Context(), running, func() time.Time { return now }, c.count); err != nil {
			t.Fatal(err)
		}
	}
	if n := c.made.Load(); n != 2 {
		t.Errorf("got %d counts, want 2: one before and one after the clock change", n)
	}
}
