package refresh

import (
	"context"
	"log/slog"

	"assay/internal/db"
)

const (
	// applyRange is how many inventory ids one transaction updates. It takes some 50 ms, so
	// syncs can run in between.
	applyRange = 20_000
	// sharedRange replaces applyRange where syncs wait for single rows only. The prices of
	// all items are read once per range.
	sharedRange = 60_000
	// besideSyncs replaces applyRange while syncs run that would wait for these rows.
	besideSyncs = 2_000
	// fewChanged: if less than one in this many items changed, their rows are found by the
	// index of items. Otherwise a pass over all rows is faster, because it visits each page
	// once.
	fewChanged = 50
	// mostChanged: if more than one in this many items changed, every page is written anyway.
	// Writing all rows is then cheaper than finding those that differ.
	mostChanged = 2
)

// sharedShards is how many shards the inventory rows have where several processes may write:
// enough for some instances, so that none ends long before the others.
const sharedShards = 8

// Apply writes an estimated job's prices to the inventory rows, a range of rows at a time,
// and finishes the job after the last range. Rows that a sync adds meanwhile copy the price
// themselves.
func (a *applier) Apply(ctx context.Context) (bool, error) {
	job, err := readApplyingJob(ctx, a.store)
	if err != nil || job == nil {
		return false, err
	}
	switch {
	case job.Counts.Changed == 0:
		return true, a.finish(ctx, job)
	case job.Counts.Changed*fewChanged < job.Counts.Total || job.Kind == Missing:
		return true, a.applyBatch(ctx, job)
	default:
		return a.applyRange(ctx, job)
	}
}

// applyRange applies prices to a range of a shard that no other worker holds. A worker that
// finds none leaves the rest, and the end of the job, to the others.
func (a *applier) applyRange(ctx context.Context, job *Job) (more bool, err error) {
	shards, open, err := applyShards(ctx, a.store, job.ID)
	switch {
	case err != nil:
		return false, err
	case shards == 0:
		defer a.wake(WorkApply)
		return true, a.store.InTx(ctx, func(tx *db.Tx) error { return openShards(tx, job.ID, a.applyShards()) })
	case open == 0:
		return true, a.finish(ctx, job)
	}
	most := job.Counts.Changed*mostChanged > job.Counts.Total
	inOrder := a.priority.Busy()
	err = a.store.InTx(ctx, func(tx *db.Tx) (err error) {
		more, err = applyNextRange(tx, job.ID, a.applyIDs(), most, inOrder)
		inOrder = true // if it runs again
		return err
	})
	return more, err
}

// applyShards returns how many shards a job gets. A database with one writer gains nothing
// from several.
func (a *applier) applyShards() int {
	if a.clustered {
		return sharedShards
	}
	return 1
}

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

// applySlots returns how many shards this process works on at once.
func (a *applier) applySlots() int { return min(a.cfg.EstimateSlots, a.applyShards()) }

func (a *applier) applyBatch(ctx context.Context, job *Job) error {
	if job.ApplyCursor >= int64(job.Batches) {
		return a.finish(ctx, job)
	}
	return a.store.InTx(ctx, func(tx *db.Tx) error {
		_, err := applyBatch(tx, job.ID, int(job.ApplyCursor))
		return err
	})
}

// finish ends a job whose prices have reached the rows.
func (a *applier) finish(ctx context.Context, job *Job) error {
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
		return err // without a job: another worker has finished it
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
	return a.Retain(ctx)
}
