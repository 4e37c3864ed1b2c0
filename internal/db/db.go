// Package db opens the database, on SQLite or PostgreSQL, and runs transactions on it.
// Statements are written for both alike; where the two differ, the difference is a method
// of a Dialect. What is stored, and by which statements, is the business of the packages
// that own the tables.
package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"reflect"
	"sync"
	"time"

	"assay/internal/fault"
)

// Options configures Open.
type Options struct {
	Path string // the SQLite file
	URL  string // of a PostgreSQL database, postgres://..., instead of a Path
	// Direct says that URL leads through a pooler that hands out transactions, and
	// is the way round it, by which tables are changed.
	Direct string
	// Owner names this process among all that use a PostgreSQL database: at most
	// 57 bytes, or none. Its sessions have that name.
	Owner string
	// Now is the clock; nil: time.Now, and, for budgets on PostgreSQL, the
	// database's own.
	Now    func() time.Time
	Logger *slog.Logger
	// KeepSchema refuses a database whose schema is not this program's, instead of
	// bringing it up to date.
	KeepSchema bool
	// ReadOnly opens an SQLite file for reading only, for a start on a disk that is full
	// or may not be written. Transactions that write fail with a fault.Unavailable,
	// database_read_only.
	ReadOnly bool
	// Faults, when set, is called before and after each commit; tests make it
	// fail, or end the process.
	Faults func(point string) error
}

// DB is an open database. Its methods may be used concurrently, and what is
// read was committed. SQLite has one writer, begun IMMEDIATE so that it waits for
// its turn instead of failing, and several readers. On PostgreSQL many write and
// read, in this process and in others.
type DB struct {
	Dialect  Dialect
	write    *sql.DB
	Read     Reader         // errors of the database carry a fault.Unavailable
	Reserved Reader         // for health checks, postings and listings: no list is read on it
	turns    *turns         // at write, of SQLite
	bulks    []preparedBulk // on write
	file     *fileGuard     // of SQLite
	Clock    func() time.Time
	ownClock bool // of the database, for budgets
	Log      *slog.Logger
	faults   func(point string) error
	failures failures
	locals   sync.Map // by type: see local
	readOnly bool     // see Options
}

// ErrCommitUnknown means that a commit returned an error and may still have
// been applied. Read the state again before deciding.
var ErrCommitUnknown = errors.New("outcome of the commit is unknown")

// How many connections to a file read at once. Those that are reserved serve health
// checks and what postings and listings read, so that these never wait for a list.
const (
	readers         = 4
	reservedReaders = 2
)

// Open opens the database, which is created when there is none and none is
// known to have been here, and brings its schema up to date.
func Open(ctx context.Context, o Options) (_ *DB, err error) {
	s := &DB{Clock: o.Now, Log: o.Logger, faults: o.Faults}
	if s.Clock == nil {
		s.Clock = time.Now
	}
	if s.Log == nil {
		s.Log = slog.New(slog.DiscardHandler)
	}
	defer func() {
		if err != nil {
			_ = s.Close()
			err = fmt.Errorf("open database: %w", err)
		}
	}()
	s.ownClock = o.URL != "" && o.Now == nil
	if o.URL != "" {
		err = s.openServer(ctx, o)
	} else {
		err = s.openFile(ctx, o)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// openServer opens a PostgreSQL database.
func (s *DB) openServer(ctx context.Context, o Options) (err error) {
	s.Dialect = PostgreSQL
	open, conns, err := poolsPostgres(o)
	if err != nil {
		return err
	}
	reads := conns / 2
	reserved := max(reads/4, 1)
	s.write, s.Read, s.Reserved = open(conns-reads), Reader{open(reads - reserved)}, Reader{open(reserved)}
	if err := checkEncodingPostgres(ctx, s.write); err != nil {
		return err
	}
	if o.KeepSchema {
		err = requireSchema(ctx, s.Dialect, s.write)
	} else {
		err = s.migratePostgres(ctx, o.Direct)
	}
	if err != nil {
		return err
	}
	s.bulks, err = prepareBulks(ctx, s.Dialect, s.write)
	return err
}

// openFile opens an SQLite file.
func (s *DB) openFile(ctx context.Context, o Options) (err error) {
	if s.file, err = guardFile(o.Path); err != nil {
		return err
	}
	if err := s.file.checkBare(ctx); err != nil {
		return err
	}
	s.turns = newTurns()
	if o.ReadOnly {
		return s.openForReading(ctx, o.Path)
	}
	return s.openForWriting(ctx, o.Path, o.KeepSchema)
}

// Alone reports whether no other process writes the database: the lock of a file keeps
// them out.
func (s *DB) Alone() bool { return s.file != nil }

// openForReading opens a file that this process cannot write, and no other one does
// while this one has its lock. A file that is complete without a log is read without
// files beside it, for which a full disk has no room.
func (s *DB) openForReading(ctx context.Context, path string) (err error) {
	m := reads
	if noLog(path) {
		m = readBare
	}
	if s.write, err = openSQLite(path, m); err != nil {
		return err
	}
	s.write.SetMaxOpenConns(1)
	if err := requireSchema(ctx, s.Dialect, s.write); err != nil {
		return err
	}
	if s.file.was, err = os.Stat(path); err != nil {
		return err
	}
	if s.bulks, err = prepareBulks(ctx, s.Dialect, s.write); err != nil {
		return err
	}
	if s.Read, err = openReaders(ctx, path, m, readers); err != nil {
		return err
	}
	s.Reserved, err = openReaders(ctx, path, m, reservedReaders)
	s.readOnly = true
	return err
}

func (s *DB) openForWriting(ctx context.Context, path string, keepSchema bool) (err error) {
	if s.write, err = openSQLite(path, writes); err != nil {
		return err
	}
	s.write.SetMaxOpenConns(1)
	if keepSchema {
		err = requireSchema(ctx, s.Dialect, s.write)
	} else {
		err = s.migrateSQLite(ctx)
	}
	if err != nil {
		return err
	}
	if err := s.file.bind(ctx, s.write); err != nil {
		return err
	}
	if s.bulks, err = prepareBulks(ctx, s.Dialect, s.write); err != nil {
		return err
	}
	if s.Read, err = openReaders(ctx, path, reads, readers); err != nil {
		return err
	}
	s.Reserved, err = openReaders(ctx, path, reads, reservedReaders)
	return err
}

// openReaders opens n connections to a file for reading.
func openReaders(ctx context.Context, path string, m mode, n int) (Reader, error) {
	db, err := openSQLite(path, m)
	if err != nil {
		return Reader{}, err
	}
	db.SetMaxOpenConns(n)
	db.SetMaxIdleConns(n)
	return Reader{&prepared{DB: db, statements: map[string]*sql.Stmt{}}}, connect(ctx, db, n)
}

// connect makes n connections of a pool at once, so that they go on reading a
// file that is deleted.
func connect(ctx context.Context, db *sql.DB, n int) error {
	for range n {
		c, err := db.Conn(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = c.Close() }() // all are held until there are n of them
		if err := c.PingContext(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Close closes the database. It waits for what is under way.
func (s *DB) Close() error {
	var errs []error
	for _, r := range []Reader{s.Read, s.Reserved} {
		if r.pool != nil {
			errs = append(errs, r.Close())
		}
	}
	if s.write != nil {
		errs = append(errs, s.write.Close())
	}
	if s.file != nil {
		errs = append(errs, s.file.close())
	}
	return errors.Join(errs...)
}

// Tx is one write transaction. Everything that it writes carries the same
// moment, Now.
type Tx struct {
	Dialect Dialect
	tx      *sql.Tx
	ctx     context.Context //nolint:containedctx // a Tx lives within one call of InTx, which got this context
	now     time.Time
	DB      *DB

	indexed  bool // byIndex was called
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

// Local returns what a subject keeps in memory beside a database: the one T of each. It
// is zero at first.
func Local[T any](s *DB) *T {
	v, _ := s.locals.LoadOrStore(reflect.TypeFor[T](), new(T))
	return v.(*T) //nolint:forcetypeassert // stored under its type
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

// Collect reads all rows of a query by scan.
func Collect[T any](ctx context.Context, q Querier, scan func(*sql.Rows, *T) error, query string, args ...any) (_ []T, err error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var out []T
	for rows.Next() {
		var v T
		if err := scan(rows, &v); err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, Transient(rows.Err())
}

// Micros turns a time into microseconds; the zero time is 0.
func Micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// Moment turns microseconds into a time; 0 is the zero time.
func Moment(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

// ClockArg is what the clock of a statement is to be: null where the database's own
// is meant.
func (s *DB) ClockArg() any {
	if s.ownClock {
		return nil
	}
	return Micros(s.Clock())
}

// First returns the first of what was found, or nil.
func First[T any](found []T, err error) (*T, error) {
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// ErrRunAgain ends a transaction that is run again: what it has read was changed by another
// one since.
var ErrRunAgain = errors.New("what was read has changed meanwhile")
