package view

import (
	"context"
	"sync"
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

const (
	// resultKept is how long requests get the same result of a slow read.
	resultKept = 15 * time.Second
	// resultRenew is the age at which KeepState reads a result in use again, so that requests need
	// not.
	resultRenew = 8 * time.Second
)

// kept holds the last result of a slow read.
type kept[T any] struct {
	mu   sync.Mutex
	at   time.Time // start of the read; zero: none yet
	used time.Time // last call of use
	last T
}

// use returns the result if it is younger than resultKept, and the start of its read. The result is
// in use for the next minute.
func (k *kept[T]) use(now time.Time) (T, time.Time, bool) {
	k.mu.Lock()
	k.used = now
	k.mu.Unlock()
	return k.younger(now, resultKept)
}

// younger returns the result if it is younger than an age, and the start of its read.
func (k *kept[T]) younger(now time.Time, than time.Duration) (T, time.Time, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	age := now.Sub(k.at)
	return k.last, k.at, !k.at.IsZero() && age >= 0 && age < than
}

// isDue reports whether the result is in use and soon too old.
func (k *kept[T]) isDue(now time.Time) bool {
	_, _, ok := k.younger(now, resultRenew)
	k.mu.Lock()
	defer k.mu.Unlock()
	return !ok && now.Sub(k.used) < inUse
}

// set stores a result whose read started at a time.
func (k *kept[T]) set(at time.Time, result T) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.at, k.last = at, result
}
