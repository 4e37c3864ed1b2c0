package refresh

import (
	"context"

	"assay/internal/db"
	"assay/internal/event"
	"assay/internal/provider/allowance"
)

// retainStep is how many jobs one transaction deletes.
const retainStep = 1

// Retain deletes ended jobs and events older than the retention, and old samples. It deletes
// jobs and events in small transactions. Once a day it folds old price points.
func (p *process) Retain(ctx context.Context) error {
	if err := event.Retain(ctx, p.store, p.cfg.Retention.Age); err != nil {
		return err
	}
	for _, retain := range []func(*db.Tx) error{allowance.DeleteOldSamples, deleteOldSamples} {
		if err := p.store.InTx(ctx, retain); err != nil {
			return err
		}
	}
	for ctx.Err() == nil {
		var removed int
		err := p.store.InTx(ctx, func(tx *db.Tx) (err error) {
			removed, err = retain(tx, p.cfg.Retention, retainStep)
			return err
		})
		if err != nil {
			return err
		}
		if removed == 0 {
			return p.foldHistory(ctx)
		}
	}
	return ctx.Err()
}

// foldHistory folds the price points of whole days, so it has work once a day. The change feed
// reads the points of its events, so points are kept longer than events.
func (p *process) foldHistory(ctx context.Context) error {
	if p.cfg.Retention.History == 0 {
		return nil
	}
	before := p.now().Add(-max(p.cfg.Retention.History, p.cfg.Retention.Age+day)).UTC().Truncate(day)
	if p.foldedTo.Load() == before.Unix() {
		return nil
	}
	if err := Fold(ctx, p.store, before); err != nil {
		return err
	}
	p.foldedTo.Store(before.Unix())
	return nil
}
