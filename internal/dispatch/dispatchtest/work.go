package dispatchtest

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"assay/internal/dispatch"
)

func drains(t *testing.T, open Cluster) {
	var p Pile
	p.Add(1000)
	Start(t, open(withDefaults(Options{Workers: []dispatch.Worker{worker("work", 3, p.Work)}})))
	Until(t, "all work to be done", func() bool { return p.Done() == 1000 })
}

func wakes(t *testing.T, open Cluster) {
	var p, other Pile
	d := open(withDefaults(Options{Workers: []dispatch.Worker{worker("work", 1, p.Work), worker("other", 1, other.Work)}}))
	Start(t, d)
	Until(t, "the first call", func() bool { return p.Looks() > 0 && other.Looks() > 0 })
	for range 5 {
		p.Add(2)
		d.Wake("work")
		d.Wake("work") // a duplicate hint has no effect
		Until(t, "all work to be done", func() bool { return p.Left() == 0 })
	}
}

func wakesEverySlot(t *testing.T, open Cluster) {
	var inside, looks atomic.Int64
	var ready atomic.Bool
	release := make(chan struct{})
	d := open(withDefaults(Options{Workers: []dispatch.Worker{worker("work", 4, func(ctx context.Context) (bool, error) {
		looks.Add(1)
		if !ready.Load() {
			return false, nil
		}
		inside.Add(1)
		select {
		case <-release:
		case <-ctx.Done():
		}
		return false, nil
	})}}))
	Start(t, d)
	Until(t, "the first calls", func() bool { return looks.Load() >= 4 })
	ready.Store(true)
	d.Wake("work")
	Until(t, "all slots to be active", func() bool { return inside.Load() >= 4 })
	close(release)
}

func wakeDuringWork(t *testing.T, open Cluster) {
	var p Pile
	begun, proceed := make(chan struct{}), make(chan struct{})
	var calls atomic.Int64
	d := open(withDefaults(Options{Workers: []dispatch.Worker{worker("work", 1, func(ctx context.Context) (bool, error) {
		if calls.Add(1) != 1 {
			return p.Work(ctx)
		}
		close(begun) // no work was found
		<-proceed    // new work arrives before this call returns
		return false, nil
	})}}))
	Start(t, d)
	<-begun
	p.Add(1)
	d.Wake("work")
	close(proceed)
	Until(t, "the new work to be done", func() bool { return p.Left() == 0 })
}

func wakesUnknownKind(t *testing.T, open Cluster) {
	var p Pile
	d := open(withDefaults(Options{Workers: []dispatch.Worker{worker("work", 1, p.Work)}}))
	Start(t, d)
	Until(t, "the first call", func() bool { return p.Looks() > 0 })
	p.Add(1)
	d.Wake("unknown")
	d.Wake("work")
	Until(t, "all work to be done", func() bool { return p.Left() == 0 })
}

func sweeps(t *testing.T, open Cluster) {
	var p Pile
	Start(t, open(withDefaults(Options{Sweep: 50 * time.Millisecond, Workers: []dispatch.Worker{worker("work", 1, p.Work)}})))
	for range 5 {
		Until(t, "a call of the worker", func() bool { return p.Looks() > 0 })
		p.Add(1)
		Until(t, "all work to be done", func() bool { return p.Left() == 0 })
	}
}

func retries(t *testing.T, open Cluster) {
	var p Pile
	var failures atomic.Int64
	p.Add(3)
	Start(t, open(withDefaults(Options{Workers: []dispatch.Worker{worker("work", 1, func(ctx context.Context) (bool, error) {
		if failures.Add(1) <= 2 {
			return true, errTest
		}
		return p.Work(ctx)
	})}})))
	Until(t, "all work to be done", func() bool { return p.Left() == 0 })
}

func panics(t *testing.T, open Cluster) {
	var p Pile
	var failures atomic.Int64
	p.Add(3)
	Start(t, open(withDefaults(Options{Workers: []dispatch.Worker{worker("work", 1, func(ctx context.Context) (bool, error) {
		if failures.Add(1) == 1 {
			panic(errTest)
		}
		return p.Work(ctx)
	})}})))
	Until(t, "all work to be done", func() bool { return p.Left() == 0 })
}

func hangs(t *testing.T, open Cluster) {
	var p Pile
	d := open(withDefaults(Options{Workers: []dispatch.Worker{
		worker("bad", 4, func(ctx context.Context) (bool, error) {
			<-ctx.Done()
			return false, ctx.Err()
		}),
		worker("good", 1, p.Work),
	}}))
	Start(t, d)
	Until(t, "the first call", func() bool { return p.Looks() > 0 })
	for range 3 {
		p.Add(1)
		d.Wake("bad")
		d.Wake("good")
		Until(t, "all work to be done", func() bool { return p.Left() == 0 })
	}
}

func stops(t *testing.T, open Cluster) {
	var inside, stopped atomic.Int64
	hang := func(ctx context.Context) (bool, error) {
		inside.Add(1)
		<-ctx.Done()
		stopped.Add(1)
		return true, ctx.Err()
	}
	stop := Start(t, open(withDefaults(Options{
		Workers: []dispatch.Worker{worker("one", 3, hang), worker("two", 1, hang)},
		Tasks: []dispatch.Task{{Name: "task", Next: everySecond, Run: func(ctx context.Context) error {
			_, err := hang(ctx)
			return err
		}}},
	})))
	Until(t, "all slots and a task to be active", func() bool { return inside.Load() >= 5 })
	begun := time.Now()
	stop()
	if in, out := inside.Load(), stopped.Load(); in != out {
		t.Errorf("got %d stopped calls, want %d", out, in)
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("got %v until Run returned, want at most 10s", took)
	}
}
