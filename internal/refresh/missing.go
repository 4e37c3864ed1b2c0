package refresh

import "context"

// requestedByQueue is who asks for the jobs of the missing-price queue.
const requestedByQueue = "missing-price queue"

// Missing starts a job for the entries of the missing-price queue that are due.
// One such job lives at a time; entries that come meanwhile are in the next.
func (e *Engine) Missing(ctx context.Context) (bool, error) {
	if len(e.sources) == 0 {
		return false, nil // the entries wait until there is somebody to ask
	}
	rules := e.rules(e.now(), false)
	rules.Missing = true
	due, err := e.store.HasDueMissing(ctx, rules)
	if err != nil || !due {
		return false, err
	}
	var made bool
	err = e.store.InTx(ctx, func(tx Tx) (err error) {
		_, made, err = tx.InsertJob(Job{Kind: Missing, RequestedBy: requestedByQueue})
		return err
	})
	if made {
		e.wake(WorkPlan)
	}
	return false, err
}

// retainStep is how many jobs are removed in one transaction.
const retainStep = 1

// Retain removes ended jobs that are old enough, in small transactions, and events
// that are as old.
func (e *Engine) Retain(ctx context.Context) error {
	if err := e.store.InTx(ctx, func(tx Tx) error { return tx.RetainEvents(e.cfg.Retention.Age) }); err != nil {
		return err
	}
	for ctx.Err() == nil {
		var removed int
		err := e.store.InTx(ctx, func(tx Tx) (err error) {
			removed, err = tx.Retain(e.cfg.Retention, retainStep)
			return err
		})
		if err != nil || removed == 0 {
			return err
		}
	}
	return ctx.Err()
}
