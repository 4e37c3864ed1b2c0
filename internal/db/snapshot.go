package db

import (
	"context"
	"database/sql"
	"os"
)

// Snapshot calls use with a transaction that reads the database as of one moment, and the
// connection that it is on. It makes no writer wait.
func (s *DB) Snapshot(ctx context.Context, use func(conn *sql.Conn, tx *sql.Tx) error) error {
	o := &sql.TxOptions{ReadOnly: true}
	if s.Dialect == PostgreSQL {
		o.Isolation = sql.LevelRepeatableRead
	}
	conn, err := s.Read.Conn(ctx)
	if err != nil {
		return Transient(err)
	}
	defer func() { _ = conn.Close() }() // it goes back to its pool
	tx, err := conn.BeginTx(ctx, o)
	if err != nil {
		return Transient(err)
	}
	defer func() { _ = tx.Rollback() }() // it has only read
	if s.Dialect == PostgreSQL {
		if err := setPatientPostgres(ctx, tx); err != nil {
			return Transient(err)
		}
		if _, err := tx.ExecContext(ctx, byIndexOnPostgres); err != nil {
			return Transient(err)
		}
	}
	return Transient(use(conn, tx))
}

// OpenBeside opens a database of this program's schema for reading only, and without a
// lock: another process may have it open. A table that was changed by hand is no error.
func OpenBeside(ctx context.Context, o Options) (_ *DB, err error) {
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
	_, upToDate, err := knownSchema(ctx, s.Dialect, s.Read)
	if err == nil && !upToDate {
		err = ErrSchemaOutdated
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}
