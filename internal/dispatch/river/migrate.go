package river

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// migrating is the advisory lock under which River's tables are changed.
const migrating = 0x6173736179_72 // "assayr"

// Migrate brings River's own tables up to date. Several processes may call it at
// once: one of them does it, the others wait.
func Migrate(ctx context.Context, url string, log *slog.Logger) (err error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return errors.New("migrate the queue: the address of the database cannot be read") // the error may hold its password
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("migrate the queue: %w", err)
		}
	}()
	cfg.MaxConns = 2
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer pool.Close()
	locker, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer locker.Release()
	if _, err := locker.Exec(ctx, `SELECT pg_advisory_lock($1)`, int64(migrating)); err != nil {
		return err
	}
	defer func() {
		_, _ = locker.Exec(context.WithoutCancel(ctx), `SELECT pg_advisory_unlock($1)`, int64(migrating))
	}()
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{
		Logger: slog.New(atLeast{log.Handler(), slog.LevelWarn}),
	})
	if err != nil {
		return err
	}
	_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return err
}
