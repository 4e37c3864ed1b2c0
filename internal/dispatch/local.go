package dispatch

import (
	"context"
	"log/slog"
	"maps"
	"math/rand/v2"
	"sync"
	"time"
)

// Local is a Dispatcher for a single process that uses the database alone.
type Local struct {
	log     *slog.Logger
	now     func() time.Time
	sweep   time.Duration
	signals map[string]chan struct{}

	workers []Worker
	tasks   []Task

	mu   sync.Mutex
	next map[string]time.Time
}

// A worker waits after an error. The delay doubles from minBackoff to maxBackoff. The
// maximum is short, so that work resumes soon after the cause, such as a full disk, is gone.
const (
	minBackoff = 200 * time.Millisecond
	maxBackoff = 10 * time.Second
)

// LocalOptions configures a Local.
type LocalOptions struct {
	Workers []Worker
	Tasks   []Task
	Sweep   time.Duration // interval at which every worker looks for work without a hint; default 2s
	Now     func() time.Time
	Logger  *slog.Logger
}

// NewLocal returns a dispatcher. Call Run to start it.
func NewLocal(o LocalOptions) *Local {
	l := &Local{
		log: o.Logger, now: o.Now, sweep: o.Sweep, workers: o.Workers, tasks: o.Tasks,
		signals: map[string]chan struct{}{}, next: map[string]time.Time{},
	}
	if l.sweep <= 0 {
		l.sweep = 2 * time.Second
	}
	for _, w := range o.Workers {
		l.signals[w.Kind] = make(chan struct{}, max(w.Slots, 1))
	}
	return l
}

// Wake implements Dispatcher.
func (l *Local) Wake(kind string) {
	signal, ok := l.signals[kind]
	if !ok {
		return
	}
	for {
		select {
		case signal <- struct{}{}:
		default:
			return // every slot already has a hint
		}
	}
}

// Scheduled implements Dispatcher.
func (l *Local) Scheduled() map[string]time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.next)
}

// Run implements Dispatcher.
func (l *Local) Run(ctx context.Context) {
	var wg sync.WaitGroup
	for _, w := range l.workers {
		for range max(w.Slots, 1) {
			wg.Go(func() { l.work(ctx, w) })
		}
	}
	for _, t := range l.tasks {
		wg.Go(func() { l.runTask(ctx, t) })
	}
	wg.Wait()
}

// Close implements Dispatcher. A Local has no resources.
func (l *Local) Close() {}

// work calls the worker of one slot until no work is left. It continues after a hint or a
// sweep interval.
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
			pause := min(minBackoff<<min(failures-1, 16), maxBackoff)
			withStack(l.log, err).Error("work failed; retrying", "kind", w.Kind, "error", err, "pause", pause)
			if !Wait(ctx, pause) {
				return
			}
		case more:
			failures = 0
		default:
			failures = 0
			// The random part distributes the queries of the slots over time.
			t := time.NewTimer(l.sweep/2 + rand.N(l.sweep))
			select {
			case <-ctx.Done():
			case <-l.signals[w.Kind]:
			case <-t.C:
			}
			t.Stop()
		}
	}
}

// runTask runs a task at its scheduled times. It reads the clock every second. Changes of
// the clock therefore neither skip nor delay a run.
func (l *Local) runTask(ctx context.Context, t Task) {
	const clockInterval = time.Second
	last := l.wall()
	at := t.Next(last)
	for !at.IsZero() {
		l.mu.Lock()
		l.next[t.Name] = at
		l.mu.Unlock()
		if !Wait(ctx, clockInterval) {
			return
		}
		now := l.wall()
		if now.Before(last) { // the clock was set back; the next run must not wait for the difference
			if again := t.Next(now); !again.IsZero() && again.Before(at) {
				at = again
			}
		}
		last = now
		if now.Before(at) {
			continue
		}
		_ = t.Try(ctx, l.log) // Try has logged the error
		at = t.Next(l.wall())
	}
}

// wall reads the clock without its monotonic reading, which would hide changes of the
// clock.
func (l *Local) wall() time.Time { return l.now().Round(0) }
