package river

import (
	"context"
	"log/slog"
	"time"

	"github.com/riverqueue/river"

	"assay/internal/dispatch"
)

// tick contains the arguments of the River job for one run of a task. They include the
// scheduled time, so that two successive leaders create only one job for it.
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
	// overlap is how far back a new leader looks for missed runs. It is longer than the
	// election of a leader takes after a crash.
	overlap = 30 * time.Second
	// catchUp is how long after a change of the clock a new leader runs skipped tasks. It
	// is shorter than completedRetention, so that only one leader does so.
	catchUp = time.Minute
	// margin is how early River's timer may fire.
	margin = 200 * time.Millisecond
)

// periodic returns the tasks as periodic jobs of River's leader.
func (d *Dispatcher) periodic() []*river.PeriodicJob {
	var out []*river.PeriodicJob
	for _, t := range d.tasks {
		if t.Next(d.now().Round(0)).IsZero() {
			continue
		}
		out = append(out, river.NewPeriodicJob(next(t.Next), func() (river.JobArgs, *river.InsertOpts) {
			now := d.now().Round(0)
			at, due := lastMoment(t.Next, d.clock.since(now), now)
			if !due {
				return nil, nil
			}
			return tick{task: t.Name, At: at}, &river.InsertOpts{Queue: queueName(t.Queue), UniqueOpts: river.UniqueOpts{ByArgs: true}}
		}, &river.PeriodicJobOpts{RunOnStart: true}))
	}
	return out
}

// lastMoment returns the last scheduled time between since and now, if any. It looks back
// in doubling steps, so that a clock change of years stays cheap.
func lastMoment(next func(time.Time) time.Time, since, now time.Time) (last time.Time, due bool) {
	for span := overlap; !due; span *= 2 {
		from := now.Add(-span)
		if from.Before(since) {
			from = since
		}
		for at := next(from); !at.IsZero() && !at.After(now.Add(margin)); at = next(at) {
			last, due = at, true
		}
		if from.Equal(since) {
			break
		}
	}
	return last, due
}

// next implements river.PeriodicSchedule.
type next func(after time.Time) time.Time

// Next implements river.PeriodicSchedule.
func (n next) Next(after time.Time) time.Time { return n(after) }
