// Package dispatchtest contains tests that every dispatcher must pass. They use the real
// clock, because some dispatchers use a database. The tests do not depend on the speed of
// the database.
package dispatchtest

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"assay/internal/dispatch"
)

// Options configures the dispatcher under test.
type Options struct {
	Workers []dispatch.Worker
	Tasks   []dispatch.Task
	Sweep   time.Duration
	Now     func() time.Time // default time.Now
	Logger  *slog.Logger
}

// Cluster creates dispatchers that share one database. Each represents a separate
// process.
type Cluster func(o Options) dispatch.Dispatcher

// never is a sweep interval longer than any test, so that only a wake starts work.
const never = 24 * time.Hour

// Run runs all tests. The function open creates a cluster for a single test.
func Run(t *testing.T, open func(tb testing.TB) Cluster) {
	for name, test := range map[string]func(*testing.T, Cluster){
		"existing work is done":                   drains,
		"a wake starts work":                      wakes,
		"a wake reaches every slot":               wakesEverySlot,
		"a wake during work is not lost":          wakeDuringWork,
		"a wake for an unknown kind is ignored":   wakesUnknownKind,
		"a sweep finds work without a wake":       sweeps,
		"work that fails is retried":              retries,
		"work that panics is retried":             panics,
		"blocked work does not delay other work":  hangs,
		"a task runs once at each scheduled time": tasks,
		"a task that fails runs again":            failingTasks,
		"a task without a time never runs":        taskWithoutTime,
		"a clock set forward runs a task once":    clockForward,
		"a clock set back does not delay a task":  clockBack,
		"run returns when all work has stopped":   stops,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // the tests mostly wait
			test(t, open(t))
		})
	}
}

// Start runs a dispatcher until stop is called or the test ends.
func Start(tb testing.TB, d dispatch.Dispatcher) (stop func()) {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { d.Run(ctx) })
	stop = func() {
		cancel()
		running.Wait()
	}
	tb.Cleanup(stop)
	return stop
}

// Until waits until a condition is true. After a minute, the test fails.
func Until(tb testing.TB, what string, condition func() bool) {
	tb.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-deadline:
			tb.Fatalf("timed out waiting for %s", what)
		case <-tick.C:
		}
	}
}

// Pile is work that consists of equal pieces. Its zero value has no pieces.
type Pile struct{ left, done, looks atomic.Int64 }

// Add adds pieces of work.
func (p *Pile) Add(n int64) { p.left.Add(n) }

// Left returns the number of pieces that are not done.
func (p *Pile) Left() int64 { return p.left.Load() }

// Done returns the number of pieces that are done.
func (p *Pile) Done() int64 { return p.done.Load() }

// Looks returns the number of calls of Work.
func (p *Pile) Looks() int64 { return p.looks.Load() }

// Work processes one piece of work.
func (p *Pile) Work(context.Context) (bool, error) {
	p.looks.Add(1)
	for {
		n := p.left.Load()
		if n == 0 {
			return false, nil
		}
		if p.left.CompareAndSwap(n, n-1) {
			p.done.Add(1)
			return true, nil
		}
	}
}

// worker returns a worker in the bulk queue.
func worker(kind string, slots int, work func(context.Context) (bool, error)) dispatch.Worker {
	return dispatch.Worker{Kind: kind, Queue: dispatch.QueueBulk, Slots: slots, Work: work}
}

func withDefaults(o Options) Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Sweep == 0 {
		o.Sweep = never
	}
	return o
}

var errTest = errors.New("test error")
