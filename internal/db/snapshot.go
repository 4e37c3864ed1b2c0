package db

import (
	"context"
	"database/sql"
	"os"
)

// Snapshot calls use with a read-only transaction and its connection. The transaction
// reads a consistent snapshot and does not block writers.
func (s *DB) Snapshot(ctx context.Context, use func(conn *sql.Conn, tx *sql.Tx) error) error {
	o := &sql.TxOptions{ReadOnly: true}
	if s.Dialect == PostgreSQL {
		o.Isolation = sql.LevelRepeatableRead
	}
	conn, err := s.Read.Conn(ctx)
	if err != nil {
		return Transient(err)
	}
	defer func() { _ = conn.Close() }() // returns it to the pool
	tx, err := conn.BeginTx(ctx, o)
	if err != nil {
		return Transient(err)
	}
	defer func() { _ = tx.Rollback() }() // nothing was written
	if s.Dialect == PostgreSQL {
		if err := disableTimeoutsPostgres(ctx, tx); err != nil {
			return Transient(err)
		}
		if _, err := tx.ExecContext(ctx, byIndexOnPostgres); err != nil {
			return Transient(err)
		}
	}
	return Transient(use(conn, tx))
}

// OpenUnlocked opens a database for reading without locking it. Another process may have
// it open. The schema version must be current, but the tables may have been changed by
// hand.
func OpenUnlocked(ctx context.Context, o Options) (_ *DB, err error) {
	s := &DB{Clock: o.Now}
	defer func() {
		if err != nil {
			_ = s.Close()
		}
	}()
	if o.URL != "" {
		s.Dialect = PostgreSQL
		write, read, err := openPostgres(o)
		if err != nil {
			return nil, err
		}
		s.Read = Reader{read}
		if err := write.Close(); err != nil {
			return nil, err
		}
	} else {
		if _, err := os.Stat(o.Path); err != nil {
			return nil, err
		}
		file, err := openSQLite(o.Path, readCopy)
		if err != nil {
			return nil, err
		}
		s.Read = Reader{file}
	}
	s.Frequent = s.Read
	_, upToDate, err := checkVersion(ctx, s.Dialect, s.Read)
	if err == nil && !upToDate {
		err = ErrSchemaOutdated
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}
