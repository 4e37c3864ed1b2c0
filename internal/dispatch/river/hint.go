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

// hint contains the arguments of a River job. The job announces that there may be work of a
// kind. The kind is part of the job's kind, so the job has no payload.
type hint struct{ kind string }

const hintPrefix = "look:"

// Kind implements river.JobArgs.
func (h hint) Kind() string { return hintPrefix + h.kind }

// hintWorker wakes the workers of the process that got the hint.
type hintWorker struct {
	river.WorkerDefaults[hint]
	wake func(kind string)
}

// Work implements river.Worker.
func (w *hintWorker) Work(_ context.Context, job *river.Job[hint]) error {
	w.wake(job.Kind[len(hintPrefix):])
	return nil
}

// uniqueHint returns options that drop a hint while another one of the same kind is not
// finished. This limits the number of hints. A dropped hint does no harm, because a
// notification or a sweep still wakes the workers.
func uniqueHint() river.UniqueOpts {
	return river.UniqueOpts{ByQueue: true, ByState: []rivertype.JobState{
		rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning,
		rivertype.JobStateRetryable, rivertype.JobStateScheduled,
	}}
}

// hints holds the kinds that other processes must still be notified of.
type hints struct {
	mu      sync.Mutex
	kinds   map[string]struct{}
	pending chan struct{} // has capacity 1, and holds a value while there may be kinds
}

func (h *hints) init() {
	h.kinds, h.pending = map[string]struct{}{}, make(chan struct{}, 1)
}

func (h *hints) add(kind string) {
	h.mu.Lock()
	h.kinds[kind] = struct{}{}
	h.mu.Unlock()
	select {
	case h.pending <- struct{}{}:
	default:
	}
}

// take removes and returns all kinds. They are sorted, so that two processes lock their
// rows in the same order.
func (h *hints) take() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	kinds := slices.Sorted(maps.Keys(h.kinds))
	clear(h.kinds)
	return kinds
}

const (
	// notifyInterval is the minimum time between two notifications. Wakes in between are
	// combined: 1000 per second become 10.
	notifyInterval = 100 * time.Millisecond
	// notifyTimeout limits how long a notification may take. A late hint is useless.
	notifyTimeout = 2 * time.Second
)

// send notifies other processes of wakes until ctx ends.
func (d *Dispatcher) send(ctx context.Context, client *river.Client[pgx.Tx]) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.hints.pending:
		}
		if err := d.notify(ctx, client, d.hints.take()); err != nil && ctx.Err() == nil {
			d.log.Warn("notification failed; other instances find work in their next sweep", "error", err)
		}
		if !dispatch.Wait(ctx, notifyInterval) {
			return
		}
	}
}

// notify adds a hint for each kind and notifies all processes. It does not wait for the
// disk. A crash of the database may lose the hints.
func (d *Dispatcher) notify(ctx context.Context, client *river.Client[pgx.Tx], kinds []string) error {
	if len(kinds) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, notifyTimeout)
	defer cancel()
	jobs := make([]river.InsertManyParams, len(kinds))
	for i, kind := range kinds {
		jobs[i] = river.InsertManyParams{
			Args:       hint{kind: kind},
			InsertOpts: &river.InsertOpts{Queue: d.queueOf[kind], UniqueOpts: uniqueHint()},
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
