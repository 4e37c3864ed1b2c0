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
	Start(t, open(quiet(Options{Workers: []dispatch.Worker{worker("work", 3, p.Work)}})))
	Until(t, "an empty pile", func() bool { return p.Done() == 1000 })
}

func wakes(t *testing.T, open Cluster) {
	var p, other Pile
	d := open(quiet(Options{Workers: []dispatch.Worker{worker("work", 1, p.Work), worker("other", 1, other.Work)}}))
	Start(t, d)
	Until(t, "the first look", func() bool { return p.Looks() > 0 && other.Looks() > 0 })
	for range 5 {
		p.Add(2)
		d.Wake("work")
		d.Wake("work") // a hint too many costs a look
		Until(t, "an empty pile", func() bool { return p.Left() == 0 })
	}
}

func wakesEverySlot(t *testing.T, open Cluster) {
	var inside, looks atomic.Int64
	var ready atomic.Bool
	release := make(chan struct{})
	d := open(quiet(Options{Workers: []dispatch.Worker{worker("work", 4, func(ctx context.Context) (bool, error) {
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
	Until(t, "the first looks", func() bool { return looks.Load() >= 4 })
	ready.Store(true)
	d.Wake("work")
	Until(t, "all slots at work", func() bool { return inside.Load() >= 4 })
	close(release)
}

func wakeDuringWork(t *testing.T, open Cluster) {
	var p Pile
	begun, go1 := make(chan struct{}), make(chan struct{})
	var calls atomic.Int64
	d := open(quiet(Options{Workers: []dispatch.Worker{worker("work", 1, func(ctx context.Context) (bool, error) {
		if calls.Add(1) != 1 {
			return p.Work(ctx)
		}
		close(begun) // it has found nothing;
		<-go1        // before it returns, work arrives
		return false, nil
	})}}))
	Start(t, d)
	<-begun
	p.Add(1)
	d.Wake("work")
	close(go1)
	Until(t, "what came meanwhile", func() bool { return p.Left() == 0 })
}

func wakesUnknownKind(t *testing.T, open Cluster) {
	var p Pile
	d := open(quiet(Options{Workers: []dispatch.Worker{worker("work", 1, p.Work)}}))
	Start(t, d)
	Until(t, "the first look", func() bool { return p.Looks() > 0 })
	p.Add(1)
	d.Wake("no such thing")
	d.Wake("work")
	Until(t, "an empty pile", func() bool { return p.Left() == 0 })
}

func sweeps(t *testing.T, open Cluster) {
	var p Pile
	Start(t, open(quiet(Options{Sweep: 50 * time.Millisecond, Workers: []dispatch.Worker{worker("work", 1, p.Work)}})))
	for range 5 {
		Until(t, "a look", func() bool { return p.Looks() > 0 })
		p.Add(1)
		Until(t, "an empty pile", func() bool { return p.Left() == 0 })
	}
}

func retries(t *testing.T, open Cluster) {
	var p Pile
	var failures atomic.Int64
	p.Add(3)
	Start(t, open(quiet(Options{Workers: []dispatch.Worker{worker("work", 1, func(ctx context.Context) (bool, error) {
		if failures.Add(1) <= 2 {
			return true, errTest
		}
		return p.Work(ctx)
	})}})))
	Until(t, "an empty pile", func() bool { return p.Left() == 0 })
}

func panics(t *testing.T, open Cluster) {
	var p Pile
	var failures atomic.Int64
	p.Add(3)
	Start(t, open(quiet(Options{Workers: []dispatch.Worker{worker("work", 1, func(ctx context.Context) (bool, error) {
		if failures.Add(1) == 1 {
			panic(errTest)
		}
		return p.Work(ctx)
	})}})))
	Until(t, "an empty pile", func() bool { return p.Left() == 0 })
}

func hangs(t *testing.T, open Cluster) {
	var p Pile
	d := open(quiet(Options{Workers: []dispatch.Worker{
		worker("bad", 4, func(ctx context.Context) (bool, error) {
			<-ctx.Done()
			return false, ctx.Err()
		}),
		worker("good", 1, p.Work),
	}}))
	Start(t, d)
	Until(t, "the first look", func() bool { return p.Looks() > 0 })
	for range 3 {
		p.Add(1)
		d.Wake("bad")
		d.Wake("good")
		Until(t, "an empty pile", func() bool { return p.Left() == 0 })
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
	stop := Start(t, open(quiet(Options{
		Workers: []dispatch.Worker{worker("one", 3, hang), worker("two", 1, hang)},
		Tasks: []dispatch.Task{{Name: "task", Next: everySecond, Run: func(ctx context.Context) error {
			_, err := hang(ctx)
			return err
		}}},
	})))
	Until(t, "work in every slot, and a task", func() bool { return inside.Load() >= 5 })
	begun := time.Now()
	stop()
	if in, out := inside.Load(), stopped.Load(); in != out {
		t.Errorf("%d of %d had stopped", out, in)
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("it took %v to stop", took)
	}
}
