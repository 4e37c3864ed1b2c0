// Package dispatchtest is the suite that every dispatcher passes. It uses the real clock,
// since a database takes part; nothing in it depends on the speed of the database.
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

// Options are the dependencies of a dispatcher under test.
type Options struct {
	Workers []dispatch.Worker
	Tasks   []dispatch.Task
	Sweep   time.Duration
	Now     func() time.Time // default time.Now
	Logger  *slog.Logger
}

// Cluster makes dispatchers that share one database, each as if in a process of its own.
type Cluster func(o Options) dispatch.Dispatcher

// never is a sweep that no test lives to see, so that only a wake can start work.
const never = 24 * time.Hour

// Run runs the suite; open makes a cluster that no other test shares.
func Run(t *testing.T, open func(tb testing.TB) Cluster) {
	for name, test := range map[string]func(*testing.T, Cluster){
		"existing work is drained":                drains,
		"a wake is followed":                      wakes,
		"a wake reaches every slot":               wakesEverySlot,
		"a wake during work is not lost":          wakeDuringWork,
		"a wake for an unknown kind does nothing": wakesUnknownKind,
		"a lost wake costs a sweep":               sweeps,
		"work that fails is retried":              retries,
		"work that panics is retried":             panics,
		"work that hangs delays no other work":    hangs,
		"a task runs once at each of its times":   tasks,
		"a task that fails runs again":            failingTasks,
		"a task without a time never runs":        timeless,
		"a clock set forward runs a task once":    clockForward,
		"a clock set back keeps no task waiting":  clockBack,
		"it stops when the work has stopped":      stops,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it mostly waits
			test(t, open(t))
		})
	}
}

// Start runs a dispatcher until the function that it returns is called, or the
// test ends.
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

// Until waits for a condition.
func Until(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline:
			tb.Fatalf("waited too long for: %s", what)
		case <-tick.C:
		}
	}
}

// Pile is work that consists of a number of pieces.
type Pile struct{ left, done, looks atomic.Int64 }

// Add puts pieces on the pile.
func (p *Pile) Add(n int64) { p.left.Add(n) }

// Left returns how many pieces are not done.
func (p *Pile) Left() int64 { return p.left.Load() }

// Done returns how many pieces were done.
func (p *Pile) Done() int64 { return p.done.Load() }

// Looks returns how often a worker looked.
func (p *Pile) Looks() int64 { return p.looks.Load() }

// Work does one piece.
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

// worker is a worker of one kind of work.
func worker(kind string, slots int, work func(context.Context) (bool, error)) dispatch.Worker {
	return dispatch.Worker{Kind: kind, Queue: dispatch.QueueBulk, Slots: slots, Work: work}
}

func quiet(o Options) Options {
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

var errTest = errors.New("error of the test")
