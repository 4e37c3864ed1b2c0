package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"assay/internal/fault"
)

// ErrCommitUnknown means that a commit returned an error and may still have
// been applied. Read the state again before deciding.
var ErrCommitUnknown = errors.New("outcome of the commit is unknown")

// Tx is one write transaction. Everything that it writes carries the same
// moment, Now.
type Tx struct {
	Dialect Dialect
	tx      *sql.Tx
	ctx     context.Context //nolint:containedctx // a Tx lives within one call of InTx, which got this context
	now     time.Time
	DB      *DB

	indexed  bool // ByIndex was called
	onCommit []func() (end func(committed bool))
}

// Context returns the context of the transaction.
func (t *Tx) Context() context.Context { return t.ctx }

// QueryContext is that of sql.Tx.
func (t *Tx) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return t.tx.QueryContext(ctx, query, args...)
}

// Now returns the moment of the transaction.
func (t *Tx) Now() time.Time { return t.now }

// clocksApart is by how much clocks of instances may differ at most. A moment that is
// further ahead is wrong, and nothing else is dated by it.
const clocksApart = time.Hour

// NotBefore moves the moment of the transaction on to at, if that is later: what is
// written then follows what another instance, whose clock may be ahead, wrote at that time.
func (t *Tx) NotBefore(at time.Time) {
	if at.After(t.now) && at.Sub(t.now) < clocksApart {
		t.now = at
	}
}

// races is how often a transaction is tried that is ended for another one's sake.
const races = 6

// InTx runs fn in a write transaction, which is committed when fn returns nil
// and rolled back otherwise. PostgreSQL may end it for another one's sake; then
// fn runs again in a new one. An ErrCommitUnknown means what it says; an error of
// the database that may pass has a fault.Unavailable in its chain.
func (s *DB) InTx(ctx context.Context, fn func(*Tx) error) error {
	return s.tryTx(ctx, false, fn)
}

// InUrgentTx is InTx for a few rows that must be stored at once: it does not wait
// for transactions that have not begun, nor for one of the connections that others
// write by.
func (s *DB) InUrgentTx(ctx context.Context, fn func(*Tx) error) error {
	return s.tryTx(ctx, true, fn)
}

func (s *DB) tryTx(ctx context.Context, urgent bool, fn func(*Tx) error) error {
	if s.readOnly {
		return s.tryReadOnly(ctx, fn)
	}
	err := s.inTx(ctx, urgent, fn)
	for try := 1; try < races && lostRace(err) && pause(ctx, try); try++ {
		err = s.inTx(ctx, urgent, fn)
	}
	s.failures.note(err)
	return Transient(err)
}

// tryReadOnly runs fn on a database that cannot be written. What only looks succeeds.
func (s *DB) tryReadOnly(ctx context.Context, fn func(*Tx) error) error {
	err := s.inTx(ctx, false, fn)
	if sqliteCode(err)&0xff != sqliteReadOnly {
		return Transient(err)
	}
	return errors.Join(err, fault.New(fault.Unavailable, "database_read_only",
		"The database is open for reading only, since it could not be written when the server started. Nothing was changed. "+
			"Make room on its disk, or make it writable; the server then accepts writes by itself within minutes."))
}

// InSmallTx is InTx for work on a few rows, all found by their keys, that is done
// so often that planning its statements anew would cost more than running them.
func (s *DB) InSmallTx(ctx context.Context, fn func(*Tx) error) error {
	return s.InTx(ctx, func(t *Tx) error {
		if err := t.planOnce(); err != nil {
			return err
		}
		return fn(t)
	})
}

// pause waits a random moment, longer with each try; it reports whether ctx
// still lives.
func pause(ctx context.Context, try int) bool {
	t := time.NewTimer(rand.N(time.Duration(try) * 20 * time.Millisecond))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// commitPatience is how long a commit may take before its outcome counts as
// unknown.
const commitPatience = 30 * time.Second

func (s *DB) inTx(ctx context.Context, urgent bool, fn func(*Tx) error) error {
	if err := s.file.check(); err != nil {
		return err
	}
	release, err := s.turns.take(ctx, urgent)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer release()
	begin := s.write.BeginTx
	if urgent && s.Dialect == PostgreSQL {
		begin = s.Reserved.BeginTx
	}
	// Until its commit begins the transaction ends with ctx; a commit that is
	// given up half-way would be of unknown outcome.
	lasting, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	detach := context.AfterFunc(ctx, end)
	defer detach()
	tx, err := begin(lasting, nil)
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	ended := false
	defer func() {
		if !ended { // fn panicked: code that recovers must find the one writer free
			_ = tx.Rollback()
		}
	}()
	t := &Tx{Dialect: s.Dialect, tx: tx, ctx: ctx, now: Moment(Micros(s.Clock())), DB: s}
	err = fn(t)
	if err == nil {
		err = s.fault("before commit")
	}
	if err == nil && !detach() {
		err = ctx.Err()
	}
	ended = true
	if err != nil {
		return errors.Join(err, s.ignoreLost(tx.Rollback()))
	}
	defer time.AfterFunc(commitPatience, end).Stop()
	committed := false
	for _, begin := range t.onCommit {
		end := begin()
		defer func() { end(committed) }()
	}
	if err := tx.Commit(); err != nil {
		if s.Dialect == PostgreSQL && !outcomeUnknown(err) {
			return fmt.Errorf("commit: %w", err)
		}
		return fmt.Errorf("%w: %w", ErrCommitUnknown, err)
	}
	if err := s.fault("after commit"); err != nil {
		return fmt.Errorf("%w: %w", ErrCommitUnknown, err)
	}
	committed = true
	return nil
}

// BeginCommit has begin called before the transaction is committed, and what that returns
// afterwards: committed is false where it was not, or may not have been.
func (t *Tx) BeginCommit(begin func() (end func(committed bool))) {
	t.onCommit = append(t.onCommit, begin)
}

// AfterCommit has fn called once the transaction is committed.
func (t *Tx) AfterCommit(fn func()) {
	t.BeginCommit(func() func(bool) {
		return func(committed bool) {
			if committed {
				fn()
			}
		}
	})
}

// ignoreLost drops the error of a rollback where there is nothing to roll back
// any more, or nothing to do it over: a connection that is lost takes its
// transaction along.
func (s *DB) ignoreLost(err error) error {
	if errors.Is(err, sql.ErrTxDone) || s.Dialect == PostgreSQL {
		return nil
	}
	return err
}

func (s *DB) fault(point string) error {
	if s.faults == nil {
		return nil
	}
	return s.faults(point)
}

// Exec runs a statement and returns how many rows it touched.
func (t *Tx) Exec(query string, args ...any) (int64, error) {
	res, err := t.tx.ExecContext(t.ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// QueryRow is that of sql.Tx.
func (t *Tx) QueryRow(query string, args ...any) *sql.Row {
	return t.tx.QueryRowContext(t.ctx, query, args...)
}

// ErrRunAgain ends a transaction that is run again: what it has read was changed by another
// one since.
var ErrRunAgain = errors.New("what was read has changed meanwhile")
