package refresh

import (
	"context"

	"assay/internal/db"
	"assay/internal/event"
)

// retainStep is how many jobs are removed in one transaction.
const retainStep = 1

// Retain removes ended jobs that are old enough, in small transactions, and events of the
// same age.
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
