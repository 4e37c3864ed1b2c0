package river

import (
	"context"
	"sync"
	"time"

	"assay/internal/dispatch"
)

// clock reads the wall clock and detects when it is changed.
type clock struct {
	now func() time.Time

	mu       sync.Mutex
	skipped  time.Time // wall clock time before it was last set forward
	detected time.Time // when the change was detected, by the monotonic clock
}

// reading is the state of the wall clock and the monotonic clock.
type reading struct{ wall, mono time.Time }

func (c *clock) read() reading { return reading{wall: c.now().Round(0), mono: time.Now()} }

// watch waits until the wall clock is changed, and returns the difference. It returns 0 if ctx ends.
func (c *clock) watch(ctx context.Context, last reading) (by time.Duration) {
	const (
		clockInterval = time.Second
		drift         = 2 * time.Second
	)
	for dispatch.Wait(ctx, clockInterval) {
		r := c.read()
		by = r.wall.Sub(last.wall) - r.mono.Sub(last.mono)
		if by > drift {
			c.mu.Lock()
			c.skipped, c.detected = last.wall, r.mono
			c.mu.Unlock()
		}
		if by.Abs() > drift {
			return by
		}
		last = r
	}
	return 0
}

// since returns the time from which a new leader must run missed tasks. Usually this is overlap
// before now. If the clock was just set forward, it is the time before the change, if earlier.
func (c *clock) since(now time.Time) time.Time {
	since := now.Add(-overlap)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.detected.IsZero() && time.Since(c.detected) < catchUp && c.skipped.Before(since) {
		return c.skipped
	}
	return since
}
