package dispatchtest

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"assay/internal/dispatch"
)

// everySecond is the shortest schedule that there is.
func everySecond(after time.Time) time.Time {
	return after.UTC().Truncate(time.Second).Add(time.Second)
}

func tasks(t *testing.T, open Cluster) {
	var ran atomic.Int64
	begun := time.Now()
	d := open(quiet(Options{Tasks: []dispatch.Task{{
		Name: "task", Queue: dispatch.QueueUpkeep, Next: everySecond,
		Run: func(context.Context) error { ran.Add(1); return nil },
	}}}))
	if at := d.Scheduled()["task"]; !at.IsZero() && at.After(time.Now().Add(2*time.Second)) {
		t.Errorf("scheduled at %v", at)
	}
	stop := Start(t, d)
	Until(t, "four runs", func() bool { return ran.Load() >= 4 })
	stop()
	// The moment before the start and the one after the end may count.
	if n, most := ran.Load(), int64(time.Since(begun)/time.Second)+2; n > most {
		t.Errorf("ran %d times at %d moments", n, most)
	}
}

func failingTasks(t *testing.T, open Cluster) {
	var ran atomic.Int64
	Start(t, open(quiet(Options{Tasks: []dispatch.Task{{
		Name: "task", Next: everySecond,
		Run: func(context.Context) error {
			if ran.Add(1)%2 == 0 {
				panic(errTest)
			}
			return errTest
		},
	}}})))
	Until(t, "three runs", func() bool { return ran.Load() >= 3 })
}

func timeless(t *testing.T, open Cluster) {
	var p Pile
	d := open(quiet(Options{
		Workers: []dispatch.Worker{worker("work", 1, p.Work)},
		Tasks: []dispatch.Task{{
			Name: "task", Next: func(time.Time) time.Time { return time.Time{} },
			Run: func(context.Context) error { t.Error("it ran"); return nil },
		}},
	}))
	stop := Start(t, d)
	Until(t, "a look", func() bool { return p.Looks() > 0 })
	stop()
	if len(d.Scheduled()) != 0 {
		t.Error("it is scheduled")
	}
}
