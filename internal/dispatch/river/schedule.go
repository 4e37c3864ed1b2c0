package river

import (
	"context"
	"log/slog"
	"time"

	"github.com/riverqueue/river"

	"assay/internal/dispatch"
)

// tick is a moment at which a task runs. The moment is in it so that two leaders
// that follow upon each other make one job of it.
type tick struct {
	task string
	At   time.Time `json:"at"`
}

// Kind implements river.JobArgs.
func (t tick) Kind() string { return "run:" + t.task }

// ticker runs a task.
type ticker struct {
	river.WorkerDefaults[tick]
	task dispatch.Task
	log  *slog.Logger
}

// Work implements river.Worker.
func (t *ticker) Work(ctx context.Context, _ *river.Job[tick]) error {
	return t.task.Try(ctx, t.log)
}

const (
	// overlap is how far back a new leader looks for a moment that may have come
	// while there was none: longer than an election takes after a leader died.
	overlap = 30 * time.Second
	// margin is how much too early River's timer may be.
	margin = 200 * time.Millisecond
)

// periodic are the tasks as River's leader has them.
func (d *Dispatcher) periodic() []*river.PeriodicJob {
	var out []*river.PeriodicJob
	for _, t := range d.tasks {
		if t.Next(d.now().Round(0)).IsZero() {
			continue
		}
		out = append(out, river.NewPeriodicJob(next(t.Next), func() (river.JobArgs, *river.InsertOpts) {
			at, due := lastMoment(t.Next, d.now().Round(0))
			if !due {
				return nil, nil
			}
			return tick{task: t.Name, At: at}, &river.InsertOpts{Queue: queueName(t.Queue), UniqueOpts: river.UniqueOpts{ByArgs: true}}
		}, &river.PeriodicJobOpts{RunOnStart: true}))
	}
	return out
}

// lastMoment returns the last moment of a schedule that has come within the
// overlap, if any has.
func lastMoment(next func(time.Time) time.Time, now time.Time) (last time.Time, due bool) {
	for at := next(now.Add(-overlap)); !at.IsZero() && !at.After(now.Add(margin)); at = next(at) {
		last, due = at, true
	}
	return last, due
}

// next is a schedule as River takes it.
type next func(after time.Time) time.Time

// Next implements river.PeriodicSchedule.
func (n next) Next(after time.Time) time.Time { return n(after) }
