package db

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"syscall"

	"modernc.org/sqlite" // registers the driver "sqlite"

	"assay/internal/diskfile"
)

// mode selects how an SQLite file is opened.
type mode int

const (
	reads         mode = iota // for reading in the running server
	writes                    // for writing; transactions begin IMMEDIATE
	readCopy                  // for copying a file that other processes may have open
	readImmutable             // reads the file without its write-ahead log
)

// openSQLite opens a connection pool. Write transactions begin IMMEDIATE. A deferred
// transaction that reads first and then writes fails immediately if another one wrote in
// between. The busy timeout does not apply to that error.
func openSQLite(path string, m mode) (*sql.DB, error) {
	q := url.Values{}
	q.Add("_pragma", "busy_timeout(10000)")
	// Connections are opened on demand. They must not create a new file if the database
	// was deleted.
	q.Set("mode", "rw")
	switch m {
	case writes:
		q.Set("_txlock", "immediate")
		q.Add("_pragma", "journal_mode(WAL)")
		q.Add("_pragma", "synchronous(FULL)")
		q.Add("_pragma", "temp_store(MEMORY)")
		q.Add("_pragma", "cache_size(-6000)")
		// A full refresh writes hundreds of MB. With fewer, larger checkpoints, a page that
		// changed several times is written to the file only once.
		q.Add("_pragma", "wal_autocheckpoint(4000)")
		q.Add("_pragma", "journal_size_limit(67108864)")
	case reads:
		q.Add("_pragma", "query_only(1)")
		q.Add("_pragma", "temp_store(MEMORY)")
		q.Add("_pragma", "cache_size(-1000)")
	case readCopy:
		q.Set("mode", "ro")
	case readImmutable:
		q.Set("mode", "ro")
		q.Set("immutable", "1")
	}
	dsn := (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: q.Encode()}).String()
	return sql.Open("sqlite", dsn)
}

// ShrinkCache frees the page cache of the SQLite connection that writes.
func (s *DB) ShrinkCache(ctx context.Context) error {
	if s.Dialect != SQLite {
		return nil
	}
	_, err := s.write.ExecContext(ctx, `PRAGMA shrink_memory`)
	return err
}

// sqliteCode returns the SQLite error code in err, for example sqliteFull for a full disk.
// It returns 0 for other errors and for a statement that its caller cancelled.
func sqliteCode(err error) int {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return 0
	}
	const interrupted = 9
	if code := e.Code(); code&0xff != interrupted {
		return code
	}
	return 0
}

// fileGuard detects a database file that was deleted or replaced. Without it, the process
// would write to the deleted file or to a new one.
type fileGuard struct {
	path   string
	lock   databaseLock
	opened os.FileInfo
}

// SQLite error codes: https://www.sqlite.org/rescode.html
const (
	sqliteReadOnly   = 8
	sqliteIOError    = 10
	sqliteFull       = 13
	sqliteCannotOpen = 14
)

// CannotWrite reports whether err means that an SQLite file cannot be written: the disk
// is full or fails, or the file is read-only.
func CannotWrite(err error) bool {
	switch sqliteCode(err) & 0xff {
	case sqliteReadOnly, sqliteIOError, sqliteFull, sqliteCannotOpen:
		return true
	}
	return false
}

// minFreeSpace is the disk space in bytes that a read-only server needs before it
// restarts for writing. The first writes go to the write-ahead log.
const minFreeSpace = 4 << 20

// WritableAgain reports whether a file that was opened read-only can now be written. It
// tests with another file in the same directory. Opening and closing the database file
// itself would release its locks.
func (s *DB) WritableAgain() bool {
	if !writable(s.file.path) {
		return false
	}
	f, err := os.OpenFile(s.file.path+".room", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return false
	}
	_, err = f.Write(make([]byte, minFreeSpace))
	return errors.Join(err, f.Sync(), f.Close(), os.Remove(f.Name())) == nil
}

// noLog reports whether the write-ahead log of a database is empty or missing.
func noLog(path string) bool {
	info, err := os.Stat(path + "-wal")
	return errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0
}

var (
	// ErrReadOnly means that the database was opened for reading only.
	ErrReadOnly = errors.New("the database was not writable when the server started and is open for reading only: free disk space or make the file writable; the server retries automatically")
	// ErrDatabaseMissing means that the database file was deleted.
	ErrDatabaseMissing = errors.New("the database file is missing: restore a backup with `assay restore`, or delete the .id file beside it to start with an empty database")
	// ErrDatabaseReplaced means that the path no longer leads to the file that was
	// opened.
	ErrDatabaseReplaced = errors.New("the database file was deleted or replaced: stop the server and put the original file back")
	// ErrDatabaseLocked means that another process has the database open.
	ErrDatabaseLocked = errors.New("another process uses this database, perhaps through a link in another directory: stop it first; SQLite supports one `assay` process at a time")
)

// guardFile locks the database file and creates it if needed. It returns
// ErrDatabaseMissing if an .id file shows that a database was deleted.
func guardFile(path string) (_ *fileGuard, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	g := &fileGuard{path: path}
	if g.lock, err = lockDatabase(path); err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	missing := errors.Is(err, fs.ErrNotExist) || (err == nil && info.Size() == 0)
	if err != nil && !missing {
		return nil, errors.Join(err, g.close())
	}
	if _, err := os.Stat(path + ".id"); err == nil && missing {
		return nil, errors.Join(ErrDatabaseMissing, g.close())
	}
	if missing {
		// Create the file here to set its mode. Inventories must not be readable by other
		// users.
		f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, errors.Join(err, g.close())
		}
		if err := g.lock.add(path); err != nil {
			return nil, errors.Join(err, g.close())
		}
	}
	return g, nil
}

// bind compares the id in the database with the id in the .id file beside it. A new
// database first gets an id.
func (g *fileGuard) bind(ctx context.Context, db *sql.DB) error {
	random := make([]byte, 16)
	_, _ = rand.Read(random) // it never fails
	if _, err := db.ExecContext(ctx, `INSERT INTO setting (name, value) VALUES ('database_id', $1) ON CONFLICT (name) DO NOTHING`,
		hex.EncodeToString(random)); err != nil {
		return err
	}
	var id string
	if err := db.QueryRowContext(ctx, `SELECT value FROM setting WHERE name = 'database_id'`).Scan(&id); err != nil {
		return err
	}
	want, err := os.ReadFile(g.path + ".id")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		// Move the id from the log to the file itself, where checkID reads it.
		if _, err = db.ExecContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`); err == nil {
			err = writeID(g.path, id)
		}
	case err == nil && string(bytes.TrimSpace(want)) != id:
		err = ErrDatabaseReplaced
	}
	if err != nil {
		return err
	}
	g.opened, err = os.Stat(g.path)
	return err
}

// checkID returns ErrDatabaseReplaced if the id in the file differs from the id in the
// .id file. Call it before any other connection opens the file: after a crash, SQLite
// would apply the log of the old database to the new file. A file that cannot be read
// without its log passes the check.
func (g *fileGuard) checkID(ctx context.Context) (err error) {
	want, err := os.ReadFile(g.path + ".id")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	db, err := openSQLite(g.path, readImmutable)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var id string
	if err := db.QueryRowContext(ctx, `SELECT value FROM setting WHERE name = 'database_id'`).Scan(&id); err != nil {
		return ctx.Err()
	}
	if id != string(bytes.TrimSpace(want)) {
		return ErrDatabaseReplaced
	}
	return nil
}

// writeID stores the id of a database in a file beside it. The write is atomic, because a
// truncated id would look like the id of another database.
func writeID(path, id string) error {
	f, err := diskfile.Create(path + ".id.new")
	if err != nil {
		return err
	}
	defer f.Discard()
	if _, err := f.WriteString(id + "\n"); err != nil {
		return err
	}
	return f.Commit(path + ".id")
}

// check returns ErrDatabaseReplaced if the path no longer leads to the file that was
// opened.
func (g *fileGuard) check() error {
	if g == nil {
		return nil // PostgreSQL has no file
	}
	info, err := os.Stat(g.path)
	if err != nil || !os.SameFile(info, g.opened) {
		return ErrDatabaseReplaced
	}
	return nil
}

func (g *fileGuard) close() error { return g.lock.Close() }

// databaseLock holds the locks of an SQLite database. One is on the .lock file, which
// exists before the database does. The other is on the database file itself, because that
// may have links in several directories.
//
// The files stay open as long as the database. Closing any descriptor of the database
// file would release the locks of SQLite.
type databaseLock []*os.File

func lockDatabase(path string) (l databaseLock, err error) {
	if err := l.add(path + ".lock"); err != nil {
		return nil, err
	}
	if info, err := os.Stat(path); err == nil && info.Size() > 0 {
		if err := l.add(path); err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	return l, nil
}

func (l *databaseLock) add(path string) error {
	f, err := lockFile(path)
	if err == nil {
		*l = append(*l, f)
	}
	return err
}

// Close releases the locks.
func (l databaseLock) Close() error {
	var errs []error
	for _, f := range l {
		errs = append(errs, funlock(f), f.Close())
	}
	return errors.Join(errs...)
}

// lockFile locks a file exclusively and creates it if needed. The operating system releases
// the lock when the process ends.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if errors.Is(err, syscall.EROFS) || errors.Is(err, fs.ErrPermission) {
		f, err = os.Open(path) // a read-only descriptor is enough for a lock, and a read-only database is still served
	}
	if err != nil {
		return nil, err
	}
	if err := flock(f); err != nil {
		return nil, errors.Join(fmt.Errorf("%w (%s)", ErrDatabaseLocked, filepath.Base(path)), f.Close())
	}
	return f, nil
}
