package app

import (
	"context"

	"assay/internal/refresh"
)

// loop is work that runs as long as the server.
type loop struct {
	name string
	run  func(ctx context.Context)
}

// loops returns the loops of the modules that are on. See tasks for scheduled work.
func (a *App) loops() []loop {
	all := []loop{
		{"lease", a.engine.KeepLease},
		{"dispatcher", a.dispatch},
		{"secrets", a.watchSecrets},
		{"feed", a.feed.Run},
		{"webhooks", a.sendEvents},
		{"prices", a.readers.Items.KeepPrices},
		{"overview", a.readers.Overview.KeepState},
	}
	if !a.readOnly {
		all = append(all, loop{"samples", func(ctx context.Context) { storeSamples(ctx, a.store, a.sampled(), a.log) }})
	}
	if !a.cfg.PricesOnly {
		all = append(all, loop{"ranking", a.readers.Traders.KeepRanking})
	}
	return all
}

// dispatch runs the dispatcher. It then deregisters this instance.
func (a *App) dispatch(ctx context.Context) {
	if a.readOnly {
		return // a read-only App cannot store progress
	}
	a.work.Run(ctx)
	if err := a.engine.Leave(ctx); err != nil {
		a.log.Warn("deregistration failed; peers will time out", "error", err)
	}
}

// sendEvents sends events to webhooks.
func (a *App) sendEvents(ctx context.Context) {
	if !a.readOnly {
		a.hooks.Run(ctx)
	}
}

// warnOfModules logs a warning if another live instance of the database has other modules. Scheduled
// tasks of the market and the wallet may then be late or lost, because an instance without these
// modules may start or run the tasks. The start continues, so that a rolling restart can change the
// modules.
func (a *App) warnOfModules(ctx context.Context) error {
	all, err := refresh.Instances(ctx, a.store)
	if err != nil {
		return err
	}
	own := a.cfg.Modules()
	for i := range all {
		if other := &all[i]; other.Modules != own && a.now().Sub(other.HeartbeatAt) < refresh.Lease {
			a.log.Warn("instances have different MODULES; set the same value on all, or trades and checkpoints may be late",
				"modules", own, "instance", other.Owner, "its_modules", other.Modules)
		}
	}
	return nil
}
