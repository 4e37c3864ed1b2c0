package db

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// copySource is a snapshot of the database that is copied.
type copySource struct {
	d          Dialect
	db         *sql.DB
	tx         *sql.Tx
	lock       databaseLock // SQLite only; keeps servers from opening the file
	heartbeats []heartbeat  // PostgreSQL only; last heartbeats of instances, which no longer run
}

// openSource opens a database for copying. It returns an error if another process uses
// the database.
func openSource(ctx context.Context, o CopyOptions) (_ *copySource, err error) {
	s := &copySource{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if o.From.URL != "" {
		err = s.openServer(ctx, o)
	} else {
		err = s.openFile(ctx, o.From.Path)
	}
	if err != nil {
		return s, err
	}
	return s, requireSchema(ctx, s.d, s.db)
}

func (s *copySource) openFile(ctx context.Context, path string) (err error) {
	if _, err := os.Stat(path); err != nil {
		return err
	}
	if s.lock, err = lockDatabase(path); err != nil {
		return err
	}
	if err := (&fileGuard{path: path}).checkID(ctx); err != nil {
		return err
	}
	if s.db, err = openSQLite(path, readCopy); err != nil {
		return err
	}
	s.tx, err = s.db.BeginTx(ctx, nil)
	return err
}

func (s *copySource) openServer(ctx context.Context, o CopyOptions) (err error) {
	s.d = PostgreSQL
	read, more, err := openPostgres(o.From)
	if err != nil {
		return err
	}
	s.db = read
	if err := more.Close(); err != nil {
		return err
	}
	if err := s.awaitIdle(ctx, o.Lease); err != nil {
		return err
	}
	s.tx, err = s.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return err
	}
	return disableTimeoutsPostgres(ctx, s.tx)
}

// disableTimeoutsPostgres disables the timeouts of a transaction.
func disableTimeoutsPostgres(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, `
		SELECT set_config('idle_in_transaction_session_timeout', '0', true), set_config('statement_timeout', '0', true),
			set_config('lock_timeout', '0', true)`)
	return err
}

// pollInterval limits the time between two reads of the heartbeats.
const pollInterval = 250 * time.Millisecond

// awaitIdle waits for one lease and returns ErrSourceInUse if the heartbeat of any
// instance changes in that time.
func (s *copySource) awaitIdle(ctx context.Context, lease time.Duration) (err error) {
	if s.heartbeats, err = s.readHeartbeats(ctx); err != nil || len(s.heartbeats) == 0 {
		return err
	}
	look := time.NewTicker(max(min(lease/10, pollInterval), time.Millisecond))
	defer look.Stop()
	for since := time.Now(); time.Since(since) < lease; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-look.C:
		}
		if err := s.checkUnused(ctx); err != nil {
			return err
		}
	}
	return nil
}

// checkUnused returns ErrSourceInUse if an instance has started or sent a heartbeat.
func (s *copySource) checkUnused(ctx context.Context) error {
	if s.d == SQLite {
		return nil
	}
	now, err := s.readHeartbeats(ctx)
	if err == nil && !slices.Equal(now, s.heartbeats) {
		err = ErrSourceInUse
	}
	return err
}

// heartbeat is the heartbeat counter of an instance.
type heartbeat struct {
	owner     string
	heartbeat int64
}

// readHeartbeats reads the current counters, outside the snapshot.
func (s *copySource) readHeartbeats(ctx context.Context) ([]heartbeat, error) {
	heartbeats, err := Collect(ctx, s.db, func(r *sql.Rows, p *heartbeat) error { return r.Scan(&p.owner, &p.heartbeat) },
		`SELECT owner, heartbeat FROM instance ORDER BY owner`)
	if pgCode(err) == pgUndefinedTable {
		return nil, ErrSchemaOutdated
	}
	return heartbeats, err
}

// lastID returns the greatest id that a table has ever assigned, or 0 if that is not
// recorded.
func (s *copySource) lastID(ctx context.Context, t copyTable) (last int64, err error) {
	if s.d == PostgreSQL {
		return lastIDPostgres(ctx, s.tx, t)
	}
	return lastIDSQLite(ctx, s.tx, t)
}

func lastIDSQLite(ctx context.Context, tx *sql.Tx, t copyTable) (last int64, err error) {
	err = tx.QueryRowContext(ctx, `SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = $1`, t.name).Scan(&last)
	return last, err
}

func lastIDPostgres(ctx context.Context, tx *sql.Tx, t copyTable) (last int64, err error) {
	for _, c := range t.columns {
		if c.identity {
			err = tx.QueryRowContext(ctx, `SELECT coalesce(pg_sequence_last_value(CAST(pg_get_serial_sequence($1, $2) AS regclass)), 0)`,
				t.name, c.name).Scan(&last)
		}
	}
	return last, err
}

func (s *copySource) close() error {
	var errs []error
	if s.tx != nil {
		_ = s.tx.Rollback() // nothing was written
	}
	if s.db != nil {
		errs = append(errs, s.db.Close())
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
	}
	return errors.Join(errs...)
}

// sameFile reports whether two paths lead to the same file. Two empty paths are the same.
func sameFile(a, b string) bool {
	if a == "" || b == "" {
		return a == b
	}
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return filepath.Clean(a) == filepath.Clean(b) || errA == nil && errB == nil && os.SameFile(infoA, infoB)
}
