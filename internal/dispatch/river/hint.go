package river

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"assay/internal/dispatch"
)

// look is a hint: there may be work of a kind. It holds nothing but its kind.
type look struct{ kind string }

const lookPrefix = "look:"

// Kind implements river.JobArgs.
func (l look) Kind() string { return lookPrefix + l.kind }

// looker wakes the workers of the process that took the hint.
type looker struct {
	river.WorkerDefaults[look]
	wake func(kind string)
}

// Work implements river.Worker.
func (l *looker) Work(_ context.Context, job *river.Job[look]) error {
	l.wake(job.Kind[len(lookPrefix):])
	return nil
}

// onceWaiting makes a hint unique per kind while one is waiting, which bounds their
// number. Notifications and the sweep cover the hints that are dropped.
func onceWaiting() river.UniqueOpts {
	return river.UniqueOpts{ByQueue: true, ByState: []rivertype.JobState{
		rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning,
		rivertype.JobStateRetryable, rivertype.JobStateScheduled,
	}}
}

// hints are the kinds whose wake was not sent to other processes yet.
type hints struct {
	mu    sync.Mutex
	kinds map[string]struct{}
	some  chan struct{} // holds a value while there may be kinds
}

func (h *hints) init() {
	h.kinds, h.some = map[string]struct{}{}, make(chan struct{}, 1)
}

func (h *hints) add(kind string) {
	h.mu.Lock()
	h.kinds[kind] = struct{}{}
	h.mu.Unlock()
	select {
	case h.some <- struct{}{}:
	default:
	}
}

// take empties the hints and returns them in order, so that two processes never
// lock the same rows crosswise.
func (h *hints) take() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	kinds := slices.Sorted(maps.Keys(h.kinds))
	clear(h.kinds)
	return kinds
}

const (
	// calm is the least time between two notifications. Wakes in between are
	// coalesced: a thousand a second become ten.
	calm = 100 * time.Millisecond
	// notifyTimeout bounds a notification. A late hint has no value.
	notifyTimeout = 2 * time.Second
)

// send forwards wakes to the other processes until ctx ends.
func (d *Dispatcher) send(ctx context.Context, client *river.Client[pgx.Tx]) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.hints.some:
		}
		if err := d.notify(ctx, client, d.hints.take()); err != nil && ctx.Err() == nil {
			d.log.Warn("notification failed; other instances find work in their next sweep", "error", err)
		}
		if !dispatch.Wait(ctx, calm) {
			return
		}
	}
}

// notify adds a hint for each kind and notifies all processes. It does not wait for
// the disk, so a crash of the database may lose both.
func (d *Dispatcher) notify(ctx context.Context, client *river.Client[pgx.Tx], kinds []string) error {
	if len(kinds) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, notifyTimeout)
	defer cancel()
	jobs := make([]river.InsertManyParams, len(kinds))
	for i, kind := range kinds {
		jobs[i] = river.InsertManyParams{
			Args:       look{kind: kind},
			InsertOpts: &river.InsertOpts{Queue: d.queueOf[kind], UniqueOpts: onceWaiting()},
		}
	}
	return pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SET LOCAL synchronous_commit = off`); err != nil {
			return err
		}
		if _, err := client.InsertManyTx(ctx, tx, jobs); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `SELECT pg_notify(current_schema() || $1, $2 || kind) FROM unnest($3::text[]) AS kind`,
			channelSuffix, d.id+" ", kinds)
		return err
	})
}
