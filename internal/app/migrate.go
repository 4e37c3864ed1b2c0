package app

import (
	"context"
	"log/slog"
	"time"

	"assay/internal/config"
	"assay/internal/db"
	"assay/internal/dispatch/river"
)

// Await waits for a PostgreSQL database with db.Await. For SQLite it returns immediately.
func Await(ctx context.Context, d config.Database, atMost time.Duration, log *slog.Logger) error {
	if d.Engine == config.SQLite {
		return nil
	}
	return db.Await(ctx, d.SessionURL(), atMost, log)
}

// Migrate migrates the tables of a database, including the dispatcher's tables.
func Migrate(ctx context.Context, d config.Database, log *slog.Logger) (db.MigrateResult, error) {
	r, err := db.Migrate(ctx, db.Options{Path: d.Path, URL: d.SessionURL(), Logger: log})
	if err != nil || d.Engine == config.SQLite {
		return r, err
	}
	return r, river.Migrate(ctx, d.SessionURL(), log)
}
