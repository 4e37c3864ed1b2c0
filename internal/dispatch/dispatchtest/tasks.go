package dispatchtest

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"assay/internal/dispatch"
)

// everySecond is the shortest schedule that dispatchers support.
func everySecond(after time.Time) time.Time {
	return after.UTC().Truncate(time.Second).Add(time.Second)
}

func tasks(t *testing.T, open Cluster) {
	var ran atomic.Int64
	begun := time.Now()
	d := open(withDefaults(Options{Tasks: []dispatch.Task{{
		Name: "task", Queue: dispatch.QueueUpkeep, Next: everySecond,
		Run: func(context.Context) error { ran.Add(1); return nil },
	}}}))
	if at := d.Scheduled()["task"]; !at.IsZero() && at.After(time.Now().Add(2*time.Second)) {
		t.Errorf("got scheduled time %v, want within 2s", at)
	}
	stop := Start(t, d)
	Until(t, "four runs", func() bool { return ran.Load() >= 4 })
	stop()
	// Scheduled times directly before the start and after the end may count.
	if n, most := ran.Load(), int64(time.Since(begun)/time.Second)+2; n > most {
		t.Errorf("got %d runs, want at most %d", n, most)
	}
}

func failingTasks(t *testing.T, open Cluster) {
	var ran atomic.Int64
	Start(t, open(withDefaults(Options{Tasks: []dispatch.Task{{
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

func taskWithoutTime(t *testing.T, open Cluster) {
	var p Pile
	d := open(withDefaults(Options{
		Workers: []dispatch.Worker{worker("work", 1, p.Work)},
		Tasks: []dispatch.Task{{
			Name: "task", Next: func(time.Time) time.Time { return time.Time{} },
			Run: func(context.Context) error { t.Error("the task ran, want it not started"); return nil },
		}},
	}))
	stop := Start(t, d)
	Until(t, "a call of the worker", func() bool { return p.Looks() > 0 })
	stop()
	if len(d.Scheduled()) != 0 {
		t.Error("the task is scheduled, want it not scheduled")
	}
}
