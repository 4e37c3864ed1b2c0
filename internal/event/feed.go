package event

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"assay/internal/db"
)

const (
	// numberDelay is how long the feed waits after a commit of events before it numbers
	// them. One transaction then numbers the events of several commits.
	numberDelay = 50 * time.Millisecond
	// pollWaiting is how often the feed looks for numbers of other processes while clients
	// wait for them.
	pollWaiting = 200 * time.Millisecond
	// pollIdle is how often the feed looks for events that a process left without a number
	// because it was killed.
	pollIdle = 2 * time.Second
)

// Feed assigns numbers to events in the order of their commits and wakes clients that wait
// for them. Each process runs one feed, and a row lock makes the feeds take turns. An
// identity column cannot replace the numbers: a transaction that commits late could have a
// number below a reader's cursor.
type Feed struct {
	db  *db.DB
	log *slog.Logger

	mu      sync.Mutex
	last    int64         // last number that this process knows
	grown   chan struct{} // closed when last grows
	grewAt  time.Time
	waiting int  // calls of Wait
	ended   bool // Run has returned
}

// NewFeed returns the feed of a database. Start it with Run.
func NewFeed(s *db.DB, log *slog.Logger) *Feed {
	return &Feed{db: s, log: log, grown: make(chan struct{})}
}

// added wakes the feed of a database after a commit of events.
type added struct {
	once sync.Once
	c    chan struct{}
}

func (a *added) wakes() chan struct{} {
	a.once.Do(func() { a.c = make(chan struct{}, 1) })
	return a.c
}

func (a *added) note() {
	select {
	case a.wakes() <- struct{}{}:
	default: // a wake-up is pending
	}
}

// Run assigns numbers until ctx ends.
func (f *Feed) Run(ctx context.Context) {
	defer f.end()
	hints := db.Local[added](f.db).wakes()
	failing := false
	for {
		err := f.Number(ctx)
		if err != nil && ctx.Err() == nil && !failing {
			f.log.Warn("numbering of events failed; retrying", "error", err)
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return
		case <-hints:
			select {
			case <-ctx.Done():
				return
			case <-time.After(numberDelay):
			}
		case <-time.After(f.interval(failing)):
		}
	}
}

func (f *Feed) interval(failing bool) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.waiting > 0 && !failing && !f.db.OnlyWriter() {
		return pollWaiting
	}
	return pollIdle
}

// Number assigns numbers to all committed events.
func (f *Feed) Number(ctx context.Context) error {
	ctx = db.OnFirstCommit(ctx, nil) // the numbers are no change of the request
	last, more, err := progress(ctx, f.db.Frequent)
	for more && err == nil {
		err = f.db.InTx(ctx, func(t *db.Tx) (err error) {
			last, more, err = assignNumbers(t)
			return err
		})
	}
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if last > f.last {
		f.last, f.grewAt = last, time.Now()
		close(f.grown)
		f.grown = make(chan struct{})
	}
	return nil
}

// Last returns the last number that this process knows.
func (f *Feed) Last() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
}

// Quiet reports whether the last number has not grown for the given time.
func (f *Feed) Quiet(d time.Duration) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return time.Since(f.grewAt) >= d
}

// Wait waits until the last number is greater than after. It returns false if ctx or Run
// ends first.
func (f *Feed) Wait(ctx context.Context, after int64) bool {
	f.mu.Lock()
	f.waiting++
	defer func() {
		f.waiting--
		f.mu.Unlock()
	}()
	for f.last <= after && !f.ended && ctx.Err() == nil {
		grown := f.grown
		f.mu.Unlock()
		select {
		case <-grown:
		case <-ctx.Done():
		}
		f.mu.Lock()
	}
	return f.last > after
}

// Ended reports whether Run has returned.
func (f *Feed) Ended() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ended
}

// end wakes all calls of Wait.
func (f *Feed) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	close(f.grown)
	f.grown = make(chan struct{})
}
