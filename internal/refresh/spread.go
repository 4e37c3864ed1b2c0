package refresh

import (
	"context"
	"log/slog"
)

const (
	// spreadRange is how many inventory ids are updated in one transaction: some
	// 50 ms, so that syncs get their turn in between.
	spreadRange = 20_000
	// fewChanged: with less than one in so many items changed, their rows are
	// found by the item index; with more, a pass over all rows is faster, since
	// it visits each page once.
	fewChanged = 50
	// mostChanged: with more than one in so many changed, every page is written
	// anyway, and to write all rows is cheaper than to find those that differ.
	mostChanged = 2
)

// Spread copies a settled job's prices onto inventory rows, a range of rows at a
// time, and finishes the job after the last one. Rows that a sync adds meanwhile
// copy the price themselves, within the one writer's order.
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
		return true, e.spreadRange(ctx, job)
	}
}

func (e *Engine) spreadRange(ctx context.Context, job *Job) error {
	last, err := e.store.MaxInventoryID(ctx)
	if err != nil {
		return err
	}
	from := job.SpreadCursor
	if from > last {
		return e.finish(ctx, job)
	}
	most := job.Counts.Changed*mostChanged > job.Counts.Total
	return e.store.InTx(ctx, func(tx Tx) error {
		_, err := tx.SpreadRange(job.ID, from, from+spreadRange, most)
		return err
	})
}

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
	var state State
	err := e.store.InTx(ctx, func(tx Tx) (err error) {
		state, err = tx.FinishJob(job.ID)
		return err
	})
	if err != nil || state == "" {
		return err // without a state another worker has finished it
	}
	level := slog.LevelInfo
	if state == Failed {
		level = slog.LevelWarn
	}
	e.log.Log(ctx, level, "refresh ended", "job", job.ID, "kind", job.Kind, "state", state,
		"items", job.Counts.Total, "updated", job.Counts.Updated, "changed", job.Counts.Changed, "failed", job.Counts.Failed, "last_error", job.LastError)
	e.wake(WorkMissing) // entries that waited for this job's end
	return e.Retain(ctx)
}
