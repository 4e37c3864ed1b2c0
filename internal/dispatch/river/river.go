// Package river is a dispatcher for several processes that share a PostgreSQL database.
// It uses the River queue. A wake inserts a River job and notifies all processes in the
// same transaction. Tasks are periodic jobs of River's elected leader. The jobs do not
// contain the work, which is stored in rows of the database. Workers and sweeps are the same
// as in a single process.
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

// Options configures a Dispatcher.
type Options struct {
	// URL is the address of the database. River needs sessions, so the address must not
	// lead to a pooler in transaction mode.
	URL string
	// ID identifies this process in River's tables and in session names. It is unique
	// among all processes.
	ID      string
	Workers []dispatch.Worker
	Tasks   []dispatch.Task
	Sweep   time.Duration // interval at which every worker looks for work without a hint; default 2s
	Now     func() time.Time
	Logger  *slog.Logger
}

const (
	// connections limits the connections of a process for River's listener, queues and
	// leader. The listener of this package uses one more.
	connections = 6
	// hintSlots is the number of hints of a queue that run concurrently. Hints are short.
	// Each task has an additional slot.
	hintSlots = 4
	// pollInterval is the interval at which a queue is read without a notification.
	pollInterval = 2 * time.Second
	// completedRetention is how long River stores completed jobs. It is longer than
	// overlap, so that a stored job prevents a second run of a task.
	completedRetention = 2 * time.Minute
	// failedRetention is how long River stores failed and cancelled jobs.
	failedRetention = 24 * time.Hour
	// stopTimeout limits how long River may take to stop after its work has stopped.
	stopTimeout = 3 * time.Second
	// reconnectDelay is the time between attempts to reach the database.
	reconnectDelay = time.Second
)

// Dispatcher is a dispatch.Dispatcher for processes that share a database.
type Dispatcher struct {
	id    string
	log   *slog.Logger
	now   func() time.Time
	pool  *pgxpool.Pool
	local *dispatch.Local // the worker slots of this process
	tasks []dispatch.Task
	hints hints
	clock clock

	workers *river.Workers
	queues  map[string]river.QueueConfig
	queueOf map[string]string // keyed by kind of work
}

// New returns a dispatcher. Call Migrate first. The dispatcher connects when it runs.
// Call Close if Run is never called.
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
		river.AddWorkerArgs(d.workers, hint{kind: w.Kind}, &hintWorker{wake: d.local.Wake})
		d.queueOf[w.Kind] = queueName(w.Queue)
		d.open(w.Queue, 0)
	}
	for _, t := range o.Tasks {
		river.AddWorkerArgs(d.workers, tick{task: t.Name}, &ticker{task: t, log: o.Logger})
		d.open(t.Queue, 1)
	}
	return d, nil
}

// open adds a queue to the configuration if it is new, and adds slots for long jobs to it.
func (d *Dispatcher) open(queue string, slots int) {
	c := d.queues[queueName(queue)]
	c.MaxWorkers = cmp.Or(c.MaxWorkers, hintSlots) + slots
	d.queues[queueName(queue)] = c
}

func queueName(queue string) string { return cmp.Or(queue, dispatch.QueueUpkeep) }

// Wake implements dispatch.Dispatcher. It wakes the workers of this process directly, and
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

// Run implements dispatch.Dispatcher. If the database is lost, the sweeps continue and
// River reconnects.
func (d *Dispatcher) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { d.local.Run(ctx) })
	wg.Go(func() { d.listen(ctx) })
	wg.Go(func() { d.runRiver(ctx) })
	wg.Wait()
	d.Close()
}

// Close implements dispatch.Dispatcher. It does not wait longer than stopTimeout for the
// database.
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

// runRiver runs River until ctx ends. River schedules by the wall clock. If the clock is
// set back, River would also wait for the difference. So runRiver restarts River after each
// change of the clock.
func (d *Dispatcher) runRiver(ctx context.Context) {
	for ctx.Err() == nil {
		before := d.clock.read() // read the clock before the start, so that watch detects changes during it
		client, err := river.NewClient(riverpgxv5.New(d.pool), d.config())
		if err == nil {
			err = client.Start(ctx)
		}
		if err != nil {
			if ctx.Err() == nil {
				d.log.Error("dispatch failed to start; workers find work in their sweeps", "error", err)
			}
			dispatch.Wait(ctx, reconnectDelay)
			continue
		}
		running, stop := context.WithCancel(ctx)
		var sending sync.WaitGroup
		sending.Go(func() { d.send(running, client) })
		if by := d.clock.watch(ctx, before); by != 0 {
			d.log.Warn("clock was changed; recomputing schedules", "by", by.Round(time.Second))
		}
		stop()
		sending.Wait()
		d.stop(ctx, client)
	}
}

// stop stops River. The contexts of its jobs have already ended.
func (d *Dispatcher) stop(ctx context.Context, client *river.Client[pgx.Tx]) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if err := client.StopAndCancel(ctx); err != nil {
		d.log.Warn("dispatch did not stop in time; its last notifications may be repeated", "error", err)
	}
}

func (d *Dispatcher) config() *river.Config {
	return &river.Config{
		ID: d.id, Workers: d.workers, Queues: d.queues, PeriodicJobs: d.periodic(),
		Logger:            slog.New(levelFilter{d.log.Handler(), slog.LevelWarn}),
		FetchPollInterval: pollInterval,
		// A process with another configuration may have other kinds of work.
		FetchOnlyKnownKinds: true,
		JobTimeout:          -1,
		MaxAttempts:         1, // a failed hint is not retried
		// There are many hints, and old ones are never read.
		CompletedJobRetentionPeriod: completedRetention,
		CancelledJobRetentionPeriod: failedRetention,
		DiscardedJobRetentionPeriod: failedRetention,
	}
}
