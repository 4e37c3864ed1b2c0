package refresh

import (
	"context"

	"assay/internal/db"
	"assay/internal/event"
)

// retainStep is how many jobs one transaction deletes.
const retainStep = 1

// Retain deletes old ended jobs, in small transactions, and events of the same age.
func (p *process) Retain(ctx context.Context) error {
	if err := p.store.InTx(ctx, func(tx *db.Tx) error { return event.Retain(tx, p.cfg.Retention.Age) }); err != nil {
		return err
	}
	for ctx.Err() == nil {
		var removed int
		err := p.store.InTx(ctx, func(tx *db.Tx) (err error) {
			removed, err = retain(tx, p.cfg.Retention, retainStep)
			return err
		})
		if err != nil || removed == 0 {
			return err
		}
	}
	return ctx.Err()
}
