package river

import (
	"context"
	"sync"
	"time"

	"assay/internal/dispatch"
)

// clock reads the wall clock and notices when it is set.
type clock struct {
	now func() time.Time

	mu     sync.Mutex
	leaped time.Time // what the clock showed before it was last set forward
	at     time.Time // when that was noticed, by the monotonic clock
}

// reading is the state of both clocks.
type reading struct{ wall, mono time.Time }

func (c *clock) read() reading { return reading{wall: c.now().Round(0), mono: time.Now()} }

// watch returns when ctx ends, or by how much the clock was set.
func (c *clock) watch(ctx context.Context, last reading) (by time.Duration) {
	const (
		look  = time.Second
		drift = 2 * time.Second
	)
	for dispatch.Wait(ctx, look) {
		r := c.read()
		by = r.wall.Sub(last.wall) - r.mono.Sub(last.mono)
		if by > drift {
			c.mu.Lock()
			c.leaped, c.at = last.wall, r.mono
			c.mu.Unlock()
		}
		if by.Abs() > drift {
			return by
		}
		last = r
	}
	return 0
}

// since returns the time from which a task may have missed a run for lack of a leader:
// the overlap, or the time that the clock has just skipped.
func (c *clock) since(now time.Time) time.Time {
	since := now.Add(-overlap)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.at.IsZero() && time.Since(c.at) < catchUp && c.leaped.Before(since) {
		return c.leaped
	}
	return since
}
