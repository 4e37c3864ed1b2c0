package refresh

import (
	"context"
	"log/slog"
)

const (
	// spreadRange is how many inventory ids are updated in one transaction: some
	// 50 ms, so that syncs get their turn in between.
	spreadRange = 20_000
	// sharedRange is spreadRange where syncs do not wait for their turn but for
	// single rows. For each range the prices of all items are read.
	sharedRange = 60_000
	// besideSyncs is spreadRange while syncs run that would wait for these rows.
	besideSyncs = 2_000
	// fewChanged: with less than one in so many items changed, their rows are
	// found by the item index; with more, a pass over all rows is faster, since
	// it visits each page once.
	fewChanged = 50
	// mostChanged: with more than one in so many changed, every page is written
	// anyway, and to write all rows is cheaper than to find those that differ.
	mostChanged = 2
)

// sharedLanes is how many lanes inventory rows are divided into where several
// may write: enough for some instances, and that none ends long before the others.
const sharedLanes = 8

// Spread copies a settled job's prices onto inventory rows, a range of rows at a
// time, and finishes the job after the last one. Rows that a sync adds meanwhile
// copy the price themselves.
func (e *Engine) Spread(ctx context.Context) (bool, error) {
	job, err := e.store.SpreadingJob(ctx)
	if err != nil || job == nil {
		return false, err
	}
	switch {
	case job.Counts.Changed == 0:
		return true, e.finish(ctx, job)
	case job.Counts.Changed*fewChanged < job.Counts.Total || job.Kind == Missing:
		return true, e.spreadBatch(ctx, job)
	default:
		return e.spreadRange(ctx, job)
	}
}

// spreadRange does a range of a lane that nobody else is at. Who finds none
// leaves the rest, and the job's end, to those that are.
func (e *Engine) spreadRange(ctx context.Context, job *Job) (more bool, err error) {
	lanes, open, err := e.store.SpreadLanes(ctx, job.ID)
	switch {
	case err != nil:
		return false, err
	case lanes == 0:
		defer e.wake(WorkSpread)
		return true, e.store.InTx(ctx, func(tx Tx) error { return tx.OpenLanes(job.ID, e.spreadLanes()) })
	case open == 0:
		return true, e.finish(ctx, job)
	}
	most := job.Counts.Changed*mostChanged > job.Counts.Total
	inOrder := e.priority.Busy()
	err = e.store.InTx(ctx, func(tx Tx) (err error) {
		more, err = tx.SpreadRange(job.ID, e.spreadIDs(), most, inOrder)
		inOrder = true // if it is run again
		return err
	})
	return more, err
}

// spreadLanes is how many lanes a job gets. A database with one writer gains
// nothing by several.
func (e *Engine) spreadLanes() int {
	if e.clustered {
		return sharedLanes
	}
	return 1
}

func (e *Engine) spreadIDs() int64 {
	switch {
	case e.clustered && e.priority.Busy():
		return besideSyncs
	case e.clustered:
		return sharedRange
	default:
		return spreadRange
	}
}

// spreadSlots is how many lanes this process is at, at once.
func (e *Engine) spreadSlots() int { return min(e.cfg.SettleSlots, e.spreadLanes()) }

func (e *Engine) spreadBatch(ctx context.Context, job *Job) error {
	if job.SpreadCursor >= int64(job.Batches) {
		return e.finish(ctx, job)
	}
	return e.store.InTx(ctx, func(tx Tx) error {
		_, err := tx.SpreadBatch(job.ID, int(job.SpreadCursor))
		return err
	})
}

// finish ends a job whose prices have reached the rows.
func (e *Engine) finish(ctx context.Context, job *Job) error {
	units, err := e.store.JobUnits(ctx, job.ID)
	if err != nil {
		return err
	}
	outcomes, err := e.store.Outcomes(ctx, job.ID)
	if err != nil {
		return err
	}
	var end *Job
	err = e.store.InTx(ctx, func(tx Tx) (err error) {
		end, err = tx.FinishJob(job.ID, e.marketGaps(units, outcomes))
		return err
	})
	if err != nil || end == nil {
		return err // without a job another worker has finished it
	}
	level := slog.LevelInfo
	if end.Outcome != JobComplete {
		level = slog.LevelWarn
	}
	c := &end.Counts
	e.log.Log(ctx, level, "refresh ended", "job", end.ID, "kind", end.Kind, "state", end.State, "outcome", end.Outcome,
		"items", c.Total, "updated", c.Updated, "changed", c.Changed, "failed", c.Failed,
		"skipped", c.SkippedBudget+c.SkippedPaused+c.SkippedBackoff, "markets_missing", len(end.MarketGaps), "last_error", end.LastError)
	e.wake(WorkMissing) // entries that waited for this job's end
	return e.Retain(ctx)
}
