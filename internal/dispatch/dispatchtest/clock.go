package dispatchtest

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"assay/internal/dispatch"
)

// setClock is a clock that a test can change.
type setClock struct{ offset atomic.Int64 }

func (c *setClock) now() time.Time { return time.Now().Add(time.Duration(c.offset.Load())) }

func (c *setClock) set(d time.Duration) { c.offset.Add(int64(d)) }

// clockForward sets the clock forward by two hours and so skips three scheduled times of
// a task.
func clockForward(t *testing.T, open Cluster) {
	var c setClock
	var ran, ticks atomic.Int64
	begun := time.Now()
	d := open(withDefaults(Options{Now: c.now, Tasks: []dispatch.Task{
		{Name: "ticks", Next: everySecond, Run: func(context.Context) error { ticks.Add(1); return nil }},
		{
			Name: "task",
			Next: func(after time.Time) time.Time {
				for _, wait := range []time.Duration{20 * time.Minute, 30 * time.Minute, 40 * time.Minute, 100 * time.Hour} {
					if at := begun.Add(wait); after.Before(at) {
						return at
					}
				}
				return time.Time{}
			},
			Run: func(context.Context) error { ran.Add(1); return nil },
		},
	}}))
	Start(t, d)
	Until(t, "the first tick", func() bool { return ticks.Load() > 0 && !d.Scheduled()["task"].IsZero() })
	c.set(2 * time.Hour)
	Until(t, "a run for the skipped times", func() bool { return ran.Load() > 0 })
	n := ticks.Load()
	Until(t, "more ticks", func() bool { return ticks.Load() >= n+2 })
	if n := ran.Load(); n != 1 {
		t.Errorf("got %d runs, want 1", n)
	}
}

func clockBack(t *testing.T, open Cluster) {
	var c setClock
	var ticks atomic.Int64
	Start(t, open(withDefaults(Options{Now: c.now, Tasks: []dispatch.Task{
		{Name: "ticks", Next: everySecond, Run: func(context.Context) error { ticks.Add(1); return nil }},
	}})))
	for _, back := range []time.Duration{0, 3 * time.Second, time.Hour} {
		c.set(-back)
		n := ticks.Load()
		Until(t, "a run after the clock was set back", func() bool { return ticks.Load() >= n+2 })
	}
}
