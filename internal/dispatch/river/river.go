// Package river dispatches the work of several processes on one PostgreSQL with the
// River queue. A wake is a River job and, in the same transaction, a notification
// to every process. A task is a periodic job of River's elected leader. Neither
// carries a payload: work is rows, drained by the same workers and sweep as in one
// process.
package river

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"assay/internal/dispatch"
)

// Options are the dependencies of a Dispatcher.
type Options struct {
	// URL is the database. River needs sessions, so it does not work through a
	// pooler in transaction mode.
	URL string
	// ID names this process in River's tables and sessions; unique among all
	// processes. The sessions have the same name as those of its database pool.
	ID      string
	Workers []dispatch.Worker
	Tasks   []dispatch.Task
	Sweep   time.Duration // how often every worker looks for work without a hint; default 2s
	Now     func() time.Time
	Logger  *slog.Logger
}

const (
	// connections is how many one process uses at most, besides the one that
	// listens: River's own listener, its queues and its leader.
	connections = 6
	// hintSlots is how many hints of a queue run at once. Hints are short; each task
	// has a slot of its own.
	hintSlots = 4
	// poll is how often a queue is read without a notification.
	poll = 2 * time.Second
	// completedRetention is how long River stores completed jobs. It is longer than
	// overlap, so that a stored job prevents a second run of a task.
	completedRetention = 2 * time.Minute
	// failedRetention is the same for failed tasks.
	failedRetention = 24 * time.Hour
	// stopTimeout is how long River may take to stop after its work has stopped.
	stopTimeout = 3 * time.Second
	// pause is the time between attempts to reach a lost database.
	pause = time.Second
)

// Dispatcher is a dispatch.Dispatcher for processes that share a database.
type Dispatcher struct {
	id    string
	log   *slog.Logger
	now   func() time.Time
	pool  *pgxpool.Pool
	local *dispatch.Local // the slots of this process
	tasks []dispatch.Task
	hints hints
	clock clock

	workers *river.Workers
	queues  map[string]river.QueueConfig
	queueOf map[string]string // by kind of work
}

// New makes a dispatcher on a database that Migrate has prepared. It connects
// when it runs; Close it if Run is never called.
func New(ctx context.Context, o Options) (*Dispatcher, error) {
	pool, err := openPool(ctx, o.URL, "assay "+o.ID, connections)
	if err != nil {
		return nil, fmt.Errorf("dispatch: %w", err)
	}
	d := &Dispatcher{
		id: o.ID, log: o.Logger, now: o.Now, pool: pool, tasks: o.Tasks,
		local:   dispatch.NewLocal(dispatch.LocalOptions{Workers: o.Workers, Sweep: o.Sweep, Now: o.Now, Logger: o.Logger}),
		workers: river.NewWorkers(), queues: map[string]river.QueueConfig{}, queueOf: map[string]string{},
	}
	d.hints.init()
	d.clock.now = o.Now
	for _, w := range o.Workers {
		river.AddWorkerArgs(d.workers, look{kind: w.Kind}, &looker{wake: d.local.Wake})
		d.queueOf[w.Kind] = queueName(w.Queue)
		d.open(w.Queue, 0)
	}
	for _, t := range o.Tasks {
		river.AddWorkerArgs(d.workers, tick{task: t.Name}, &ticker{task: t, log: o.Logger})
		d.open(t.Queue, 1)
	}
	return d, nil
}

// open creates a queue if it is new, and adds slots for long jobs.
func (d *Dispatcher) open(queue string, lasting int) {
	c := d.queues[queueName(queue)]
	c.MaxWorkers = cmp.Or(c.MaxWorkers, hintSlots) + lasting
	d.queues[queueName(queue)] = c
}

func queueName(queue string) string { return cmp.Or(queue, dispatch.QueueUpkeep) }

// Wake implements dispatch.Dispatcher. It wakes the workers of this process at once,
// those of other processes with a notification.
func (d *Dispatcher) Wake(kind string) {
	if _, ok := d.queueOf[kind]; !ok {
		return
	}
	d.local.Wake(kind)
	d.hints.add(kind)
}

// Scheduled implements dispatch.Dispatcher.
func (d *Dispatcher) Scheduled() map[string]time.Time {
	out := map[string]time.Time{}
	now := d.now().Round(0)
	for _, t := range d.tasks {
		if at := t.Next(now); !at.IsZero() {
			out[t.Name] = at
		}
	}
	return out
}

// Run implements dispatch.Dispatcher. It survives a lost database: the sweep goes on,
// and River reconnects.
func (d *Dispatcher) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { d.local.Run(ctx) })
	wg.Go(func() { d.listen(ctx) })
	wg.Go(func() { d.keep(ctx) })
	wg.Wait()
	d.Close()
}

// Close implements dispatch.Dispatcher. It gives up on a database that does not answer.
func (d *Dispatcher) Close() {
	closed := make(chan struct{})
	go func() {
		d.pool.Close()
		close(closed)
	}()
	t := time.NewTimer(stopTimeout)
	defer t.Stop()
	select {
	case <-closed:
	case <-t.C:
	}
}

// keep runs River until ctx ends. River schedules by the wall clock only and would
// wait for as long as the clock was set back, so keep restarts it when the clock
// was set.
func (d *Dispatcher) keep(ctx context.Context) {
	for ctx.Err() == nil {
		before := d.clock.read() // a change of the clock from here on is noticed
		client, err := river.NewClient(riverpgxv5.New(d.pool), d.config())
		if err == nil {
			err = client.Start(ctx)
		}
		if err != nil {
			if ctx.Err() == nil {
				d.log.Error("dispatch failed to start; workers run by their sweep", "error", err)
			}
			dispatch.Wait(ctx, pause)
			continue
		}
		running, stop := context.WithCancel(ctx)
		var sending sync.WaitGroup
		sending.Go(func() { d.send(running, client) })
		if by := d.clock.watch(ctx, before); by != 0 {
			d.log.Warn("clock was set; recomputing schedules", "by", by.Round(time.Second))
		}
		stop()
		sending.Wait()
		d.stop(ctx, client)
	}
}

// stop stops River. The contexts of its jobs have ended before.
func (d *Dispatcher) stop(ctx context.Context, client *river.Client[pgx.Tx]) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if err := client.StopAndCancel(ctx); err != nil {
		d.log.Warn("dispatch did not stop in time; its last notifications may be repeated", "error", err)
	}
}

// config returns River's configuration.
func (d *Dispatcher) config() *river.Config {
	return &river.Config{
		ID: d.id, Workers: d.workers, Queues: d.queues, PeriodicJobs: d.periodic(),
		Logger:            slog.New(atLeast{d.log.Handler(), slog.LevelWarn}),
		FetchPollInterval: poll,
		// A process that is configured otherwise may know other kinds of work.
		FetchOnlyKnownKinds: true,
		JobTimeout:          -1,
		MaxAttempts:         1, // a hint is not retried
		// There are many hints, and no reader of old ones.
		CompletedJobRetentionPeriod: completedRetention,
		CancelledJobRetentionPeriod: failedRetention,
		DiscardedJobRetentionPeriod: failedRetention,
	}
}
