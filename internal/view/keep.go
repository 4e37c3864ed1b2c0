package view

import (
	"context"
	"time"
)

// inUse is how long after its last use a result is kept current.
const inUse = time.Minute

// keep calls renew at an interval until ctx ends, so that requests find a current result. The
// requests read a result that is too old themselves, so an error needs no report.
func keep(ctx context.Context, every time.Duration, renew func(context.Context) error) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_ = renew(ctx)
		}
	}
}
