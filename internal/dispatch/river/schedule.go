package river

import (
	"context"
	"log/slog"
	"time"

	"github.com/riverqueue/river"

	"assay/internal/dispatch"
)

// tick is a moment at which a task runs. It holds the moment, so that two successive
// leaders create one job for it.
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
	// catchUp is for how long after a leap of the clock a new leader looks for what
	// it leaped over. It is shorter than kept, so that no two leaders do so.
	catchUp = time.Minute
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

// lastMoment returns the last moment of a schedule since a time, if any has come.
// It looks back further and further, so that a leap over years costs no more
// than the moments that lie together at its end.
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

// next is a schedule as River takes it.
type next func(after time.Time) time.Time

// Next implements river.PeriodicSchedule.
func (n next) Next(after time.Time) time.Time { return n(after) }
