package refresh

import (
	"context"
	"log/slog"

	"assay/internal/db"
	"assay/internal/inventory"
)

const (
	// applyRange is how many inventory ids one transaction updates. Such an update takes
	// about 50 ms, so syncs can write in between.
	applyRange = 20_000
	// sharedRange replaces applyRange on PostgreSQL, where a sync waits only for the rows
	// that it writes itself. Each range reads the prices of all items, so few large ranges are
	// faster than many small ones.
	sharedRange = 130_000
	// besideSyncs replaces sharedRange while syncs run, because a sync may wait for a range.
	besideSyncs = 5_000
	// fewChanged decides how Apply finds the rows to write. If fewer than 1 in fewChanged items
	// have changed, it uses the index on items. Otherwise it scans all rows, which is faster
	// because a scan visits each page once.
	fewChanged = 50
	// mostChanged decides which rows a scan writes on SQLite. If more than 1 in mostChanged
	// items have changed, it writes all rows. Nearly every page is written anyway, so this is
	// faster than selecting the rows that differ.
	mostChanged = 2
)

// manyItems is the number of items above which a plan and the end of a job free memory.
const manyItems = 100_000

// sharedShards is the number of shards if several processes may write. There should be more
// shards than processes, so that all processes finish at about the same time.
const sharedShards = 8

// Apply writes the prices of an estimated job to one range of the inventory rows. After the
// last range it finishes the job. A sync that adds rows in the meantime copies the prices to
// them itself.
func (a *applier) Apply(ctx context.Context) (bool, error) {
	job, err := readApplyingJob(ctx, a.store)
	if err != nil || job == nil {
		return false, err
	}
	switch {
	case job.Counts.Changed == 0:
		return true, a.finish(ctx, job)
	case job.Counts.Changed*fewChanged < job.Counts.Total || job.Kind != Bulk:
		return true, a.applyBatch(ctx, job)
	default:
		return a.applyRange(ctx, job)
	}
}

// applyRange applies prices to the next range of a shard that no other worker has locked. If
// all open shards are locked, the other workers apply the rest and finish the job.
func (a *applier) applyRange(ctx context.Context, job *Job) (more bool, err error) {
	shards, open, err := applyShards(ctx, a.store, job.ID)
	switch {
	case err != nil:
		return false, err
	case shards == 0:
		defer a.wake(WorkApply)
		return true, a.store.InTx(ctx, func(tx *db.Tx) error { return openShards(tx, job.ID, a.shardCount()) })
	case open == 0:
		return true, a.finish(ctx, job)
	}
	allRows := job.Counts.Changed*mostChanged > job.Counts.Total
	lockInOrder := a.priority.Busy()
	err = a.store.InTx(ctx, func(tx *db.Tx) (err error) {
		more, err = applyNextRange(tx, job.ID, a.applyIDs(), allRows, lockInOrder)
		lockInOrder = true // if the transaction runs again
		return err
	})
	return more, err
}

// shardCount returns the number of shards of a job. With one writer, several shards have no
// advantage.
func (a *applier) shardCount() int {
	if a.clustered {
		return sharedShards
	}
	return 1
}

// applyIDs returns how many inventory ids the next transaction updates.
func (a *applier) applyIDs() int64 {
	switch {
	case a.clustered && a.priority.Busy():
		return besideSyncs
	case a.clustered:
		return sharedRange
	default:
		return applyRange
	}
}

// applySlots returns how many shards this process works on at a time.
func (a *applier) applySlots() int { return min(a.cfg.EstimateSlots, a.shardCount()) }

// applyBatch applies the prices of the job's next batch, or finishes the job after the last
// one.
func (a *applier) applyBatch(ctx context.Context, job *Job) error {
	if job.ApplyCursor >= int64(job.Batches) {
		return a.finish(ctx, job)
	}
	return a.store.InTx(ctx, func(tx *db.Tx) error {
		_, err := applyBatch(tx, job.ID, int(job.ApplyCursor))
		return err
	})
}

// finish ends a job after all its prices have been applied. It first sends the events of the
// inventories that waited for these prices. If the process is killed in between, a worker
// finishes the job again.
func (a *applier) finish(ctx context.Context, job *Job) error {
	if err := inventory.AnnouncePriced(ctx, a.store); err != nil {
		return err
	}
	units, err := jobUnits(ctx, a.store, job.ID)
	if err != nil {
		return err
	}
	outcomes, err := readOutcomes(ctx, a.store, job.ID)
	if err != nil {
		return err
	}
	var end *Job
	err = a.store.InTx(ctx, func(tx *db.Tx) (err error) {
		end, err = FinishJob(tx, job.ID, a.marketGaps(units, outcomes))
		return err
	})
	if err != nil || end == nil {
		return err // end is nil if another worker has finished the job
	}
	level := slog.LevelInfo
	if end.Outcome != JobComplete {
		level = slog.LevelWarn
	}
	c := &end.Counts
	a.log.Log(ctx, level, "refresh ended", "job", end.ID, "kind", end.Kind, "state", end.State, "outcome", end.Outcome,
		"items", c.Total, "updated", c.Updated, "changed", c.Changed, "failed", c.Failed,
		"skipped", c.SkippedBudget+c.SkippedPaused+c.SkippedBackoff, "markets_missing", len(end.MarketGaps), "last_error", end.LastError)
	a.wake(WorkMissing) // entries that waited for this job's end
	if c.Total > manyItems {
		a.freeMemory(ctx)
	}
	return a.Retain(ctx)
}
