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
	"os"
	"reflect"
	"sync"
	"time"
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

// Local returns what a subject keeps in memory beside a database: the one T of each. It
// is zero at first.
func Local[T any](s *DB) *T {
	v, _ := s.locals.LoadOrStore(reflect.TypeFor[T](), new(T))
	return v.(*T) //nolint:forcetypeassert // stored under its type
}
