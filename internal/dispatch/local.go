package dispatch

import (
	"context"
	"log/slog"
	"maps"
	"math/rand/v2"
	"sync"
	"time"
)

// Local is the Dispatcher of a process that has the database for itself.
type Local struct {
	log   *slog.Logger
	now   func() time.Time
	sweep time.Duration
	bells map[string]chan struct{}

	workers []Worker
	tasks   []Task

	mu   sync.Mutex
	next map[string]time.Time
}

// Backoff of a worker after consecutive errors: it doubles from firstPause to
// lastPause, so that work resumes soon after, for example, a full disk has room.
const (
	firstPause = 200 * time.Millisecond
	lastPause  = 10 * time.Second
)

// LocalOptions are the dependencies of a Local.
type LocalOptions struct {
	Workers []Worker
	Tasks   []Task
	Sweep   time.Duration // how often every worker looks for work without a hint; default 2s
	Now     func() time.Time
	Logger  *slog.Logger
}

// NewLocal makes a dispatcher. Run starts it.
func NewLocal(o LocalOptions) *Local {
	l := &Local{
		log: o.Logger, now: o.Now, sweep: o.Sweep, workers: o.Workers, tasks: o.Tasks,
		bells: map[string]chan struct{}{}, next: map[string]time.Time{},
	}
	if l.sweep <= 0 {
		l.sweep = 2 * time.Second
	}
	for _, w := range o.Workers {
		l.bells[w.Kind] = make(chan struct{}, max(w.Slots, 1))
	}
	return l
}

// Wake wakes the workers of a kind. It never blocks, and ignores kinds without a
// worker.
func (l *Local) Wake(kind string) {
	bell, ok := l.bells[kind]
	if !ok {
		return
	}
	for {
		select {
		case bell <- struct{}{}:
		default:
			return // every slot has its hint already
		}
	}
}

// Scheduled returns when each task runs next.
func (l *Local) Scheduled() map[string]time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.next)
}

// Run works until ctx ends, and returns when every worker has stopped.
func (l *Local) Run(ctx context.Context) {
	var wg sync.WaitGroup
	for _, w := range l.workers {
		for range max(w.Slots, 1) {
			wg.Go(func() { l.work(ctx, w) })
		}
	}
	for _, t := range l.tasks {
		wg.Go(func() { l.keep(ctx, t) })
	}
	wg.Wait()
}

// Close implements Dispatcher. A Local holds nothing.
func (l *Local) Close() {}

// work drains one slot's work whenever it is woken, and at every sweep.
func (l *Local) work(ctx context.Context, w Worker) {
	for failures := 0; ctx.Err() == nil; {
		var more bool
		err := guard(func() (err error) {
			more, err = w.Work(ctx)
			return err
		})
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			failures++
			pause := min(firstPause<<min(failures-1, 16), lastPause)
			withStack(l.log, err).Error("work failed; retrying", "kind", w.Kind, "error", err, "pause", pause)
			if !Wait(ctx, pause) {
				return
			}
		case more:
			failures = 0
		default:
			failures = 0
			// Jitter spreads the slots' queries over time.
			t := time.NewTimer(l.sweep/2 + rand.N(l.sweep))
			select {
			case <-ctx.Done():
			case <-l.bells[w.Kind]:
			case <-t.C:
			}
			t.Stop()
		}
	}
}

// keep runs a task at its times. It reads the clock regularly, so that a clock that
// is set forward or back neither skips nor stalls a run.
func (l *Local) keep(ctx context.Context, t Task) {
	const look = time.Second
	last := l.wall()
	at := t.Next(last)
	for !at.IsZero() {
		l.mu.Lock()
		l.next[t.Name] = at
		l.mu.Unlock()
		if !Wait(ctx, look) {
			return
		}
		now := l.wall()
		if now.Before(last) { // set back: the next run must not be delayed by the difference
			if again := t.Next(now); !again.IsZero() && again.Before(at) {
				at = again
			}
		}
		last = now
		if now.Before(at) {
			continue
		}
		_ = t.Try(ctx, l.log) // logged
		at = t.Next(l.wall())
	}
}

// wall reads the clock without its monotonic part, which hides that the clock was
// set back.
func (l *Local) wall() time.Time { return l.now().Round(0) }
