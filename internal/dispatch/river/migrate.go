package river

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// migrationLock is the key of the advisory lock for changes of River's tables. The upper
// 32 bits are unique to this program.
const migrationLock = 0x61737361<<32 + 100

// ErrSchema means that River's tables are missing or have another version.
var ErrSchema = errors.New("the queue's tables are not up to date: run `assay migrate`")

// Migrate migrates River's tables. Concurrent calls are safe: one does the work and the
// others wait.
func Migrate(ctx context.Context, url string, log *slog.Logger) error {
	err := withMigrator(ctx, url, log, func(pool *pgxpool.Pool, m *rivermigrate.Migrator[pgx.Tx]) error {
		if result, err := m.Validate(ctx, nil); err != nil || result.OK {
			return err
		}
		return pgx.BeginFunc(ctx, pool, func(lock pgx.Tx) error {
			const wait = `SELECT set_config('idle_in_transaction_session_timeout', '0', true), pg_advisory_xact_lock($1)`
			if _, err := lock.Exec(ctx, wait, int64(migrationLock)); err != nil {
				return err
			}
			_, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil)
			return err
		})
	})
	if err != nil {
		return fmt.Errorf("migrate the queue: %w", err)
	}
	return nil
}

// Check returns ErrSchema if River's tables must be migrated. It changes nothing.
func Check(ctx context.Context, url string, log *slog.Logger) error {
	err := withMigrator(ctx, url, log, func(_ *pgxpool.Pool, m *rivermigrate.Migrator[pgx.Tx]) error {
		result, err := m.Validate(ctx, nil)
		if err == nil && !result.OK {
			err = ErrSchema
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("check the queue: %w", err)
	}
	return nil
}

func withMigrator(ctx context.Context, url string, log *slog.Logger, fn func(*pgxpool.Pool, *rivermigrate.Migrator[pgx.Tx]) error) error {
	pool, err := openPool(ctx, url, "assay", 2) // one connection for the lock and one for the migration
	if err != nil {
		return err
	}
	defer pool.Close()
	m, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: slog.New(levelFilter{log.Handler(), slog.LevelWarn})})
	if err != nil {
		return err
	}
	return fn(pool, m)
}

// openPool creates a pool of up to conns connections with the given application name. It
// connects on first use.
func openPool(ctx context.Context, url, name string, conns int32) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errors.New("the database address is not valid") // the error could contain the password
	}
	cfg.MaxConns, cfg.MinConns, cfg.MinIdleConns = conns, 0, 0
	cfg.ConnConfig.RuntimeParams["application_name"] = name
	return pgxpool.NewWithConfig(ctx, cfg)
}
