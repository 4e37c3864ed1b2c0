package app

import (
	"context"
	"log/slog"
	"time"

	"assay/internal/config"
	"assay/internal/db"
	"assay/internal/dispatch/river"
	"assay/internal/refresh"
)

// Await waits for a PostgreSQL database with db.Await. For SQLite it returns immediately.
func Await(ctx context.Context, d config.Database, atMost time.Duration, log *slog.Logger) error {
	if d.Engine == config.SQLite {
		return nil
	}
	return db.Await(ctx, d.SessionURL(), atMost, log)
}

// Migrate migrates the tables of a database, including the dispatcher's tables. If parts is
// greater than 0, it then divides the inventory into this number of partitions.
func Migrate(ctx context.Context, d config.Database, parts int, log *slog.Logger) (db.MigrateResult, error) {
	o := db.Options{Path: d.Path, URL: d.SessionURL(), Logger: log}
	r, err := db.Migrate(ctx, o)
	if err != nil || d.Engine == config.SQLite {
		return r, err
	}
	if err := river.Migrate(ctx, d.SessionURL(), log); err != nil || parts == 0 {
		return r, err
	}
	return r, db.PartitionInventory(ctx, o, parts, refresh.Lease)
}
