package db

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"assay/internal/fault"
)

// failureWindow is how long a failed write makes the database unhealthy: longer than
// a worker waits before it tries again, so that a full disk shows for as long
// as it is full, whatever small write succeeds in between. It is measured by
// the monotonic clock, which no setting of the time moves.
const failureWindow = 15 * time.Second

// writeFailure is the last write that failed by the database's fault.
type writeFailure struct {
	err error
	at  time.Time // with its monotonic reading
}

// failures remembers the last failed write.
type failures struct{ last atomic.Pointer[writeFailure] }

// note stores err if the database caused it.
func (f *failures) note(err error) {
	if sqliteCode(err) != 0 || errors.Is(err, ErrDatabaseReplaced) || strained(err) {
		f.last.Store(&writeFailure{err, time.Now()})
	}
}

// recent returns the error of a write that failed within the window.
func (f *failures) recent() error {
	if last := f.last.Load(); last != nil && time.Since(last.at) < failureWindow {
		return last.err
	}
	return nil
}

// Transient adds to an error of the database that may pass, such as a full disk,
// that the caller may retry.
func Transient(err error) error {
	if f := fault.Of(err); err == nil || f != nil && f.Kind == fault.Unavailable {
		return err
	}
	const busy, locked = 5, 6
	switch sqliteCode(err) & 0xff {
	case busy, locked, sqliteReadOnly, sqliteIOError, sqliteFull, sqliteCannotOpen:
	default:
		if !errors.Is(err, ErrDatabaseReplaced) && !passes(err) {
			return err
		}
	}
	return errors.Join(err, fault.New(fault.Unavailable, "database_unavailable", "The database cannot take this now; try again later."))
}

// IsDuplicate reports whether a write failed because something is to be there only once.
func IsDuplicate(err error) bool {
	const sqliteUnique, pgUnique = 2067, "23505"
	return sqliteCode(err) == sqliteUnique || pgCode(err) == pgUnique
}

// Healthy reports whether the database answers, is still the file that was
// opened, and takes what is written to it.
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
