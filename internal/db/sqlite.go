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

	"modernc.org/sqlite" // also the driver "sqlite"

	"assay/internal/diskfile"
)

// mode is the purpose of connections.
type mode int

const (
	reads    mode = iota // of the running server
	writes               // begun IMMEDIATE
	readCopy             // copying the file, beside processes that have it open
	readBare             // the file alone, whatever log lies beside it
)

// openSQLite opens a pool of connections. A writer begins IMMEDIATE: a
// transaction that begins deferred, reads and then writes is refused at once
// when another one wrote, whatever the busy timeout says.
func openSQLite(path string, m mode) (*sql.DB, error) {
	q := url.Values{}
	q.Add("_pragma", "busy_timeout(10000)")
	// Connections are opened on demand. None may create a new file after the database was
	// deleted.
	q.Set("mode", "rw")
	switch m {
	case writes:
		q.Set("_txlock", "immediate")
		q.Add("_pragma", "journal_mode(WAL)")
		q.Add("_pragma", "synchronous(FULL)")
		q.Add("_pragma", "temp_store(MEMORY)")
		q.Add("_pragma", "cache_size(-16000)")
		// A full refresh writes some 100 MB; fewer, larger checkpoints write
		// a page that changed several times once.
		q.Add("_pragma", "wal_autocheckpoint(4000)")
		q.Add("_pragma", "journal_size_limit(67108864)")
	case reads:
		q.Add("_pragma", "query_only(1)")
		q.Add("_pragma", "temp_store(MEMORY)")
		q.Add("_pragma", "cache_size(-2000)")
	case readCopy:
		q.Set("mode", "ro")
	case readBare:
		q.Set("mode", "ro")
		q.Set("immutable", "1")
	}
	dsn := (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: q.Encode()}).String()
	return sql.Open("sqlite", dsn)
}

// sqliteCode returns the code of the database's own error in err, 0 if there is
// none: a full disk, say, and not a transaction that its caller gave up.
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

// fileGuard identifies the database file, so that a deleted or replaced file is an error
// instead of silent writes to it or a new file.
type fileGuard struct {
	path string
	lock databaseLock
	was  os.FileInfo
}

// Codes of SQLite's errors.
const (
	sqliteReadOnly   = 8
	sqliteIOError    = 10
	sqliteFull       = 13
	sqliteCannotOpen = 14
)

// CannotWrite reports whether an SQLite file could not be written, since its disk is full,
// may not be written or fails.
func CannotWrite(err error) bool {
	switch sqliteCode(err) & 0xff {
	case sqliteReadOnly, sqliteIOError, sqliteFull, sqliteCannotOpen:
		return true
	}
	return false
}

// roomToStart is what must be free beside a database before a server that reads alone
// starts anew: its first writes go to a log.
const roomToStart = 4 << 20

// WritableAgain reports whether the file of a store that was opened for reading only could
// be written now. It writes to a file beside it, since to open and close the database
// itself would give up its locks.
func (s *DB) WritableAgain() bool {
	const write = 2
	if syscall.Access(s.file.path, write) != nil {
		return false
	}
	f, err := os.OpenFile(s.file.path+".room", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return false
	}
	_, err = f.Write(make([]byte, roomToStart))
	return errors.Join(err, f.Sync(), f.Close(), os.Remove(f.Name())) == nil
}

// noLog reports whether a database is complete without a log beside it.
func noLog(path string) bool {
	info, err := os.Stat(path + "-wal")
	return errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0
}

var (
	// ErrReadOnly means that a database was opened for reading only.
	ErrReadOnly = errors.New("the database could not be written when the server started, and is open for reading only: make room or make it writable; the server tries again by itself")
	// ErrDatabaseMissing means that a database was here and is gone.
	ErrDatabaseMissing = errors.New("the database file is missing: restore a backup with `assay restore`, or, to begin anew, remove the .id file beside it")
	// ErrDatabaseReplaced means that the file is not the one it was.
	ErrDatabaseReplaced = errors.New("the database file was replaced or deleted while open, or is another database: stop, and put the right file back")
	// ErrDatabaseLocked means that another process has the database open.
	ErrDatabaseLocked = errors.New("another process uses this database, perhaps through another directory: on SQLite one `assay` runs at a time")
)

// guardFile takes the lock beside the database and refuses to go on where a
// database is known to have been and is gone.
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
		// Made here for its mode: no other user may read inventories.
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

// bind compares the database's own id with the one kept beside it, giving a new
// database an id first.
func (g *fileGuard) bind(ctx context.Context, db *sql.DB) error {
	random := make([]byte, 16)
	_, _ = rand.Read(random) // never fails
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
		// The id must be in the file itself, where checkBare looks for it.
		if _, err = db.ExecContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`); err == nil {
			err = writeID(g.path, id)
		}
	case err == nil && string(bytes.TrimSpace(want)) != id:
		err = ErrDatabaseReplaced
	}
	if err != nil {
		return err
	}
	g.was, err = os.Stat(g.path)
	return err
}

// checkBare refuses a file that is another database than the one known here. It
// comes before anything opens the file in earnest: after a crash the former
// one's log would be applied to it. A file that cannot be read without its log
// passes.
func (g *fileGuard) checkBare(ctx context.Context) (err error) {
	want, err := os.ReadFile(g.path + ".id")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	db, err := openSQLite(g.path, readBare)
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

// writeID atomically stores the id of a database in a file beside it. Half an id would be
// that of another database.
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

// check reports whether the file is still the one that was opened.
func (g *fileGuard) check() error {
	if g == nil {
		return nil // no file
	}
	info, err := os.Stat(g.path)
	if err != nil || !os.SameFile(info, g.was) {
		return ErrDatabaseReplaced
	}
	return nil
}

func (g *fileGuard) close() error { return g.lock.Close() }

// databaseLock is the locks of an SQLite database: on a file beside it, which is
// there before the database is, and on the database file itself, which may be
// reached through another directory. The files stay open as long as the database:
// closing one of its descriptors would end SQLite's own locks.
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

// Close ends the locks.
func (l databaseLock) Close() error {
	var errs []error
	for _, f := range l {
		errs = append(errs, funlock(f), f.Close())
	}
	return errors.Join(errs...)
}

// lockFile takes an exclusive lock that ends with the process, however it ends.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if errors.Is(err, syscall.EROFS) || errors.Is(err, fs.ErrPermission) {
		f, err = os.Open(path) // a lock needs no more, and a read-only database is still served
	}
	if err != nil {
		return nil, err
	}
	if err := flock(f); err != nil {
		return nil, errors.Join(fmt.Errorf("%w (%s)", ErrDatabaseLocked, filepath.Base(path)), f.Close())
	}
	return f, nil
}
