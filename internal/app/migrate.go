package app

import (
	"context"
	"log/slog"

	"assay/internal/config"
	"assay/internal/dispatch/river"
	"assay/internal/store"
)

// Migrate brings the tables of a database up to date, the dispatcher's own too,
// as New does unless the configuration keeps it from that.
func Migrate(ctx context.Context, d config.Database, log *slog.Logger) (store.MigrateResult, error) {
	r, err := store.Migrate(ctx, store.Options{Path: d.Path, URL: d.SessionURL(), Logger: log})
	if err != nil || d.Engine == config.SQLite {
		return r, err
	}
	return r, river.Migrate(ctx, d.SessionURL(), log)
}
