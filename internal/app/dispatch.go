package app

import (
	"context"
	"time"

	"assay/internal/admission"
	"assay/internal/auditlog"
	"assay/internal/config"
	"assay/internal/dispatch"
	"assay/internal/dispatch/river"
	"assay/internal/idempotency"
	"assay/internal/inventory"
	"assay/internal/provider"
	"assay/internal/refresh"
)

// taskInterval is the interval of hourly tasks such as retention. Retention also runs after every
// job.
const taskInterval = time.Hour

// daily is the interval of checkpoints of the wallet ledger. They are due at midnight UTC.
const daily = 24 * time.Hour

// buildDispatcher creates the dispatcher: a local one on SQLite, and River on PostgreSQL.
func (a *App) buildDispatcher(ctx context.Context) error {
	workers, tasks := a.engine.Workers(), a.tasks()
	takePriority(workers, a.syncs.Priority)
	workers = append(workers, dispatch.Worker{Kind: inventory.WorkInspect, Queue: dispatch.QueueInventory, Slots: 1, Work: a.inventories.Inspect})
	if a.cfg.Database.Engine == config.SQLite {
		a.work = dispatch.NewLocal(dispatch.LocalOptions{Workers: workers, Tasks: tasks, Now: a.now, Logger: a.log})
		return nil
	}
	d, err := river.New(ctx, river.Options{URL: a.cfg.Database.SessionURL(), ID: a.owner, Workers: workers, Tasks: tasks, Now: a.now, Logger: a.log})
	if err != nil {
		return err
	}
	a.work = d
	return nil
}

// takePriority makes the stages plan, estimate and apply of a refresh wait for syncs,
// because they use the processors and lock rows. A fetch mostly waits for the network. It
// waits for syncs only when it claims a unit or stores a response.
func takePriority(workers []dispatch.Worker, syncs *admission.Priority) {
	for i := range workers {
		w := &workers[i]
		if w.Kind == refresh.WorkPlan || w.Kind == refresh.WorkEstimate || w.Kind == refresh.WorkApply {
			work := w.Work
			w.Work = func(ctx context.Context) (bool, error) { return syncs.Run(ctx, work) }
		}
	}
}

// prepareDispatcher migrates the dispatcher's tables, or checks that they are up to date.
func (a *App) prepareDispatcher(ctx context.Context) error {
	switch {
	case a.cfg.Database.Engine == config.SQLite:
		return nil
	case a.cfg.Migrate:
		return river.Migrate(ctx, a.cfg.Database.SessionURL(), a.log)
	default:
		return river.Check(ctx, a.cfg.Database.SessionURL(), a.log)
	}
}

func hourly(t time.Time) time.Time { return t.UTC().Truncate(taskInterval).Add(taskInterval) }

// tasks returns the scheduled tasks.
func (a *App) tasks() []dispatch.Task {
	tasks := []dispatch.Task{
		{Name: "refresh", Queue: dispatch.QueueBulk, Next: a.cfg.Schedule.Next, Run: func(ctx context.Context) error {
			_, err := a.engine.Start(ctx, false, "schedule")
			return err
		}},
		{Name: "retention", Queue: dispatch.QueueUpkeep, Run: a.engine.Retain, Next: hourly},
		{Name: "price_samples", Queue: dispatch.QueueUpkeep, Run: a.engine.SamplePrices, Next: func(t time.Time) time.Time {
			return t.UTC().Truncate(provider.SamplePeriod).Add(provider.SamplePeriod)
		}},
		{Name: "inventory_values", Queue: dispatch.QueueUpkeep, Run: func(ctx context.Context) error { return inventory.RecordValues(ctx, a.store) }, Next: hourly},
		{Name: "waiting_inventories", Queue: dispatch.QueueUpkeep, Run: func(ctx context.Context) error { return inventory.AnnouncePriced(ctx, a.store) }, Next: hourly},
		{Name: "audit_log", Queue: dispatch.QueueUpkeep, Run: func(ctx context.Context) error { return auditlog.DeleteOld(ctx, a.store) }, Next: hourly},
	}
	if a.cfg.PricesOnly {
		return tasks
	}
	return append(tasks, []dispatch.Task{
		{Name: "ledger_checkpoint", Queue: dispatch.QueueUpkeep, Run: a.ledger.Checkpoint, Next: func(t time.Time) time.Time {
			return t.UTC().Truncate(daily).Add(daily)
		}},
		{Name: "ledger_verification", Queue: dispatch.QueueUpkeep, Run: a.ledger.VerifyAll, Next: a.cfg.VerifySchedule.Next},
		{Name: "trades", Queue: dispatch.QueueUpkeep, Run: a.keepTrades, Next: nextSettling},
		{Name: "stored_responses", Queue: dispatch.QueueUpkeep, Run: (&idempotency.Responses{DB: a.store}).DeleteExpired, Next: hourly},
	}...)
}
