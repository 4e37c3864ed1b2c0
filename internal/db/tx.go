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

// ErrCommitUnknown means that a commit returned an error but may have been applied. Read
// the state again before you retry.
var ErrCommitUnknown = errors.New("outcome of the commit is unknown")

// Tx is a write transaction. All rows that it writes carry the same time, Now.
type Tx struct {
	Dialect Dialect
	conn    *sql.Conn
	tx      *sql.Tx
	ctx     context.Context //nolint:containedctx // a Tx exists only within one call of InTx, which got this context
	now     time.Time
	DB      *DB

	indexed  bool // ByIndex was called
	onCommit []func() (end func(committed bool))
}

// Context returns the context of the transaction.
func (t *Tx) Context() context.Context { return t.ctx }

// QueryContext implements Querier.
func (t *Tx) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return t.tx.QueryContext(ctx, query, args...)
}

// Now returns the time of the transaction.
func (t *Tx) Now() time.Time { return t.now }

// maxClockSkew limits how far the clocks of two instances may differ. NotBefore ignores a
// time that is further ahead.
const maxClockSkew = time.Hour

// NotBefore advances the time of the transaction to at, if at is later. Use it with the
// time of an earlier write: the clock of the instance that wrote it may be ahead.
func (t *Tx) NotBefore(at time.Time) {
	if at.After(t.now) && at.Sub(t.now) < maxClockSkew {
		t.now = at
	}
}

// maxAttempts limits how often a transaction runs when it conflicts with others.
const maxAttempts = 6

// InTx runs fn in a write transaction. It commits if fn returns nil, and rolls back
// otherwise. If PostgreSQL aborts the transaction because of a conflict, InTx calls fn
// again in a new transaction. After an ErrCommitUnknown, the commit may have been
// applied. A database error that may be temporary has a fault.Unavailable in its chain.
func (s *DB) InTx(ctx context.Context, fn func(*Tx) error) error {
	return s.tryTx(ctx, false, fn)
}

// InUrgentTx is InTx for a few rows that must be stored immediately. It runs before
// waiting transactions that have not begun. On PostgreSQL it uses a reserved connection.
func (s *DB) InUrgentTx(ctx context.Context, fn func(*Tx) error) error {
	return s.tryTx(ctx, true, fn)
}

func (s *DB) tryTx(ctx context.Context, urgent bool, fn func(*Tx) error) error {
	if s.readOnly {
		return s.tryReadOnly(ctx, fn)
	}
	err := s.inTx(ctx, urgent, fn)
	for try := 1; try < maxAttempts && isConflict(err) && pause(ctx, try); try++ {
		err = s.inTx(ctx, urgent, fn)
	}
	s.failures.note(err)
	return Transient(err)
}

// tryReadOnly runs fn on a read-only database. It succeeds if fn only reads.
func (s *DB) tryReadOnly(ctx context.Context, fn func(*Tx) error) error {
	err := s.inTx(ctx, false, fn)
	if sqliteCode(err)&0xff != sqliteReadOnly {
		return Transient(err)
	}
	return errors.Join(err, fault.New(fault.Unavailable, "database_read_only",
		"The database is open for reading only because it was not writable when the server started. Nothing was changed. "+
			"Free disk space or make the file writable; the server then accepts writes within minutes."))
}

// InSmallTx is InTx for frequent transactions that use at most a few hundred rows and find
// them by key. On PostgreSQL it keeps the plans of statements, because planning could take
// longer than execution.
func (s *DB) InSmallTx(ctx context.Context, fn func(*Tx) error) error {
	return s.InTx(ctx, func(t *Tx) error {
		if err := t.planOnce(); err != nil {
			return err
		}
		return fn(t)
	})
}

// pause waits for a random time that grows with each attempt. It returns false if ctx
// ended.
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

// commitTimeout limits how long a commit may take. After that, its outcome is unknown.
const commitTimeout = 30 * time.Second

func (s *DB) inTx(ctx context.Context, urgent bool, fn func(*Tx) error) error {
	if err := s.file.check(); err != nil {
		return err
	}
	release, err := s.queue.acquire(ctx, urgent)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer release()
	connect := s.write.Conn
	if urgent && s.Dialect == PostgreSQL {
		connect = s.Reserved.Conn
	}
	// Until the commit begins, cancelling ctx ends the transaction. A commit must not be
	// cancelled, because its outcome would be unknown.
	lasting, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	detach := context.AfterFunc(ctx, end)
	defer detach()
	conn, err := connect(lasting)
	var tx *sql.Tx
	if err == nil {
		defer func() { _ = conn.Close() }() // returns it to the pool
		tx, err = conn.BeginTx(lasting, nil)
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	ended := false
	defer func() {
		if !ended { // fn panicked: release the writer for a caller that recovers
			_ = tx.Rollback()
		}
	}()
	t := &Tx{Dialect: s.Dialect, conn: conn, tx: tx, ctx: ctx, now: Moment(Micros(s.Clock())), DB: s}
	err = fn(t)
	if err == nil {
		err = t.beforeCommit()
	}
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
	defer time.AfterFunc(commitTimeout, end).Stop()
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

// BeginCommit registers begin to run directly before the commit. The function that begin
// returns runs after the commit. The argument committed is true only if the commit is known
// to have succeeded.
func (t *Tx) BeginCommit(begin func() (end func(committed bool))) {
	t.onCommit = append(t.onCommit, begin)
}

// AfterCommit registers fn to run after a successful commit.
func (t *Tx) AfterCommit(fn func()) {
	t.BeginCommit(func() func(bool) {
		return func(committed bool) {
			if committed {
				fn()
			}
		}
	})
}

// ignoreLost drops a rollback error that does not matter: the transaction has ended, or
// its connection was lost. PostgreSQL rolls back when a connection ends.
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

// Exec runs a statement and returns the number of affected rows.
func (t *Tx) Exec(query string, args ...any) (int64, error) {
	res, err := t.tx.ExecContext(t.ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// QueryRow runs a query for one row.
func (t *Tx) QueryRow(query string, args ...any) *sql.Row {
	return t.tx.QueryRowContext(t.ctx, query, args...)
}

// ErrRunAgain makes InTx run the transaction again. Return it from fn when another
// transaction changed the rows that fn had read.
var ErrRunAgain = errors.New("a concurrent transaction changed the rows: run the transaction again")
