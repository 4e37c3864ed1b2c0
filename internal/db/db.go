// Package db opens an SQLite or PostgreSQL database and runs transactions on it. Most
// statements are the same for both engines. Where the engines differ, a method of Dialect
// returns the SQL. The package that owns a table also holds the statements for that
// table.
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
	"sync/atomic"
	"time"
)

// Options configures Open.
type Options struct {
	Path string // path of the SQLite file
	URL  string // address of a PostgreSQL database (postgres://...), used instead of Path
	// Direct is an address that bypasses the connection pooler of URL. Set it when URL
	// leads to a pooler in transaction mode. Migrations use it.
	Direct string
	// Owner identifies this process among all processes that use the same PostgreSQL
	// database. It becomes part of the session name. It has at most 57 bytes and may be
	// empty.
	Owner string
	// Now is the clock. If it is nil, the clock is time.Now, and budgets on PostgreSQL use
	// the clock of the database server.
	Now    func() time.Time
	Logger *slog.Logger
	// KeepSchema makes Open return an error when the schema is not up to date. Without
	// it, Open migrates the schema.
	KeepSchema bool
	// ReadOnly opens an SQLite file for reading only. It allows a start when the disk is
	// full or the file is not writable. Write transactions fail with a fault.Unavailable,
	// code database_read_only.
	ReadOnly bool
	// Faults, if set, is called before and after each commit. Tests use it to inject
	// errors or to end the process.
	Faults func(point string) error
}

// DB is an open database. Its methods are safe for concurrent use. Reads return committed
// data only.
//
// SQLite has one writer connection and several readers. Write transactions begin
// IMMEDIATE, so that they wait for the writer instead of failing. PostgreSQL has many
// writers and readers, in this process and in others.
type DB struct {
	Dialect  Dialect
	write    *sql.DB
	Read     Reader         // its errors carry a fault.Unavailable if a retry may succeed
	Reserved Reader         // for health checks, postings and listings; never used for long lists
	Frequent Reader         // for small queries about jobs, which clients repeat many times a second
	queue    *writerQueue   // SQLite only: transactions that wait for the writer connection
	bulks    []preparedBulk // prepared on write
	file     *fileGuard     // SQLite only
	Clock    func() time.Time
	ownClock bool // budgets use the clock of the database server
	Log      *slog.Logger
	faults   func(point string) error
	owner    string
	failures failures
	locals   sync.Map     // keyed by type; see Local
	readOnly bool         // see Options.ReadOnly
	turns    bool         // see Turn
	noTurns  atomic.Int64 // time until which Turn does not wait
}

// These constants limit the read connections of an SQLite file. Reserved connections
// serve health checks, postings and listings, which must not wait for a long list.
const (
	readers         = 4
	reservedReaders = 2
)

// Open opens a database and migrates its schema. It creates an SQLite file that does not
// exist, unless the .id file beside it shows that a database was deleted.
func Open(ctx context.Context, o Options) (_ *DB, err error) {
	s := &DB{Clock: o.Now, Log: o.Logger, faults: o.Faults, owner: o.Owner}
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

func (s *DB) openServer(ctx context.Context, o Options) (err error) {
	s.Dialect = PostgreSQL
	open, conns, err := poolsPostgres(o)
	if err != nil {
		return err
	}
	reads := conns / 2
	reserved := max(reads/4, 1)
	frequent := min(reserved, (reads-reserved)/3) // 0 if the process has few connections
	s.turns = conns-reads >= turnConns && o.Direct == ""
	s.write, s.Reserved = open(conns-reads, planEach), Reader{open(reserved, planEach)}
	s.Read = Reader{open(reads-reserved-frequent, planEach)}
	if s.Frequent = s.Read; frequent > 0 {
		s.Frequent = Reader{open(frequent, keepPlans)}
	}
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

func (s *DB) openFile(ctx context.Context, o Options) (err error) {
	if s.file, err = guardFile(o.Path); err != nil {
		return err
	}
	if err := s.file.checkID(ctx); err != nil {
		return err
	}
	s.queue = newWriterQueue()
	if o.ReadOnly {
		return s.openForReading(ctx, o.Path)
	}
	return s.openForWriting(ctx, o.Path, o.KeepSchema)
}

// OnlyWriter reports whether this process is the only writer of the database. It is true on
// SQLite, because the process holds the file lock.
func (s *DB) OnlyWriter() bool { return s.file != nil }

// Owner returns the name of this process from the Options. It may be empty.
func (s *DB) Owner() string { return s.owner }

// openForReading opens a file that this process cannot write. The file lock keeps other
// processes from writing it. If the write-ahead log is empty, the file is opened as
// immutable, which creates no files beside it. A full disk has no space for them.
func (s *DB) openForReading(ctx context.Context, path string) (err error) {
	m := reads
	if noLog(path) {
		m = readImmutable
	}
	if s.write, err = openSQLite(path, m); err != nil {
		return err
	}
	s.write.SetMaxOpenConns(1)
	if err := requireSchema(ctx, s.Dialect, s.write); err != nil {
		return err
	}
	if s.file.opened, err = os.Stat(path); err != nil {
		return err
	}
	if s.bulks, err = prepareBulks(ctx, s.Dialect, s.write); err != nil {
		return err
	}
	if s.Read, err = openReaders(ctx, path, m, readers); err != nil {
		return err
	}
	s.Frequent = s.Read
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
	s.Frequent = s.Read
	s.Reserved, err = openReaders(ctx, path, reads, reservedReaders)
	return err
}

// openReaders opens a pool of n read connections to an SQLite file.
func openReaders(ctx context.Context, path string, m mode, n int) (Reader, error) {
	db, err := openSQLite(path, m)
	if err != nil {
		return Reader{}, err
	}
	db.SetMaxOpenConns(n)
	db.SetMaxIdleConns(n)
	return Reader{&prepared{DB: db, statements: map[string]*sql.Stmt{}}}, connect(ctx, db, n)
}

// connect opens all n connections of a pool. An open connection can still read a file
// that is deleted later.
func connect(ctx context.Context, db *sql.DB, n int) error {
	for range n {
		c, err := db.Conn(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = c.Close() }() // keep each connection until all n are open
		if err := c.PingContext(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Close closes the database. It waits for running statements.
func (s *DB) Close() error {
	var errs []error
	for _, r := range []Reader{s.Read, s.Reserved, s.Frequent} { // a pool may be closed twice
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

// Each runs a query and reads each row with scan.
func Each(ctx context.Context, q Querier, scan func(*sql.Rows) error, query string, args ...any) (err error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return Transient(rows.Err())
}

// Found reports whether a query for one row returned a row. scan is the error of Scan. A missing
// row is no error: see "SQL is beside its subject" in docs/adr.
func Found(scan error) (bool, error) {
	if errors.Is(scan, sql.ErrNoRows) {
		return false, nil
	}
	return scan == nil, scan
}

// Collect runs a query and returns its rows, which scan reads.
func Collect[T any](ctx context.Context, q Querier, scan func(*sql.Rows, *T) error, query string, args ...any) (out []T, err error) {
	err = Each(ctx, q, func(r *sql.Rows) error {
		var v T
		if err := scan(r, &v); err != nil {
			return err
		}
		out = append(out, v)
		return nil
	}, query, args...)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Micros converts a time to microseconds since 1970. The zero time is 0.
func Micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// Moment converts microseconds since 1970 to a time. 0 is the zero time.
func Moment(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

// ClockArg returns the parameter for Dialect.Clock. It is nil when the statement must use
// the clock of the database server.
func (s *DB) ClockArg() any {
	if s.ownClock {
		return nil
	}
	return Micros(s.Clock())
}

// First returns a pointer to the first element, or nil if there is none.
func First[T any](found []T, err error) (*T, error) {
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// Local returns the T that belongs to a database, and creates a zero T on the first call.
// Packages use it for in-memory state beside their tables.
func Local[T any](s *DB) *T {
	v, _ := s.locals.LoadOrStore(reflect.TypeFor[T](), new(T))
	return v.(*T) //nolint:forcetypeassert // the key is the type of the value
}
