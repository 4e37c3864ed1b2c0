package db

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"assay/internal/fault"
)

// failureWindow is how long the database counts as unhealthy after a failed write. It is
// longer than the delay between retries of a worker. Therefore a full disk stays visible
// even if a small write succeeds in between. The window is measured with the monotonic
// clock, which ignores changes of the system time.
const failureWindow = 15 * time.Second

// writeFailure is the last write that failed because of the database.
type writeFailure struct {
	err error
	at  time.Time // includes the monotonic clock reading
}

// failures stores the last failed write.
type failures struct{ last atomic.Pointer[writeFailure] }

// note stores err if the database caused it.
func (f *failures) note(err error) {
	if sqliteCode(err) != 0 || errors.Is(err, ErrDatabaseReplaced) || isUnhealthy(err) {
		f.last.Store(&writeFailure{err, time.Now()})
	}
}

// recent returns the error of the last failed write within the window.
func (f *failures) recent() error {
	if last := f.last.Load(); last != nil && time.Since(last.at) < failureWindow {
		return last.err
	}
	return nil
}

// Transient adds a fault.Unavailable to a database error that may be temporary, such as a
// full disk. The fault shows callers that they may retry.
func Transient(err error) error {
	if f := fault.Of(err); err == nil || f != nil && f.Kind == fault.Unavailable {
		return err
	}
	const busy, locked = 5, 6
	switch sqliteCode(err) & 0xff {
	case busy, locked, sqliteReadOnly, sqliteIOError, sqliteFull, sqliteCannotOpen:
	default:
		if !errors.Is(err, ErrDatabaseReplaced) && !isTemporary(err) {
			return err
		}
	}
	return errors.Join(err, fault.New(fault.Unavailable, "database_unavailable", "The database is temporarily unavailable; try again later."))
}

// IsDuplicate reports whether a write violated a unique constraint.
func IsDuplicate(err error) bool {
	const sqliteUnique, sqlitePrimaryKey, pgUnique = 2067, 1555, "23505"
	code := sqliteCode(err)
	return code == sqliteUnique || code == sqlitePrimaryKey || pgCode(err) == pgUnique
}

// Healthy returns an error if the database does not respond, if its file was replaced, or
// if recent writes failed.
func (s *DB) Healthy(ctx context.Context) error {
	if err := s.file.check(); err != nil {
		return err
	}
	if s.readOnly {
		return ErrReadOnly
	}
	if err := s.failures.recent(); err != nil {
		return err
	}
	var one int
	return s.Reserved.QueryRowContext(ctx, `SELECT 1`).Scan(&one)
}
