package db

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"assay/internal/diskfile"
)

// Backup writes a consistent copy of the database at path to a new file. It takes no
// lock. Other processes may use the database at the same time.
func Backup(ctx context.Context, path, target string) (err error) {
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("back up: no database at %s: %w", path, err)
	}
	db, err := openSQLite(path, readCopy)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if _, _, err := checkVersion(ctx, SQLite, db); err != nil {
		return err // this build could not restore the backup
	}
	return writeBackup(target, func(partial *os.File) error {
		if _, err := db.ExecContext(ctx, `VACUUM INTO $1`, partial.Name()); err != nil {
			return fmt.Errorf("back up: %w", err)
		}
		return nil
	})
}

// ErrDatabaseExists means that Restore would replace a database.
var ErrDatabaseExists = errors.New("a database already exists: move it away first, or restore with --force, which keeps the old one as .before-restore")

// Restore replaces the database at path with a copy made by Backup. It checks the copy
// first. The database must not be in use. If replace is set, Restore keeps an existing
// database beside the new one. Otherwise an existing database is an error.
func Restore(ctx context.Context, from io.Reader, path string, replace bool) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	lock, err := lockDatabase(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	_, statErr := os.Stat(path)
	exists := statErr == nil
	if exists && !replace {
		return ErrDatabaseExists
	}
	// Write the copy to disk before moving the old database away.
	f, err := diskfile.Create(path + ".restoring")
	if err != nil {
		return err
	}
	defer f.Discard()
	if err := errors.Join(copyBackup(from, f), f.Sync()); err != nil {
		return err
	}
	id, err := checkCopy(ctx, f.Name())
	if err != nil {
		return fmt.Errorf("the backup cannot be used: %w", err)
	}
	if err := setAside(ctx, path); err != nil {
		return err
	}
	// Write the id first, so that the next start detects a crash between the two steps.
	if err := writeID(path, id); err != nil {
		return err
	}
	return f.Commit(path)
}

// checkCopy returns the id of a database file. It returns an error if the file is damaged
// or not a database of this program.
func checkCopy(ctx context.Context, path string) (id string, err error) {
	db, err := openSQLite(path, readCopy)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var found string
	if err := db.QueryRowContext(ctx, `PRAGMA integrity_check(1)`).Scan(&found); err != nil {
		return "", err
	}
	if found != "ok" {
		return "", fmt.Errorf("the database is damaged: %s", found)
	}
	version, _, err := checkSchema(ctx, SQLite, db)
	if err != nil {
		return "", err
	}
	if version == 0 {
		return "", errors.New("the file is not an assay database")
	}
	err = db.QueryRowContext(ctx, `SELECT value FROM setting WHERE name = 'database_id'`).Scan(&id)
	return id, err
}

// setAside moves the old database files away, including the write-ahead log. SQLite would
// otherwise apply that log to the new database. If possible, setAside first writes the log
// to the database file.
func setAside(ctx context.Context, path string) error {
	if _, err := os.Stat(path); err == nil {
		if db, err := openSQLite(path, writes); err == nil {
			_, _ = db.ExecContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`)
			_ = db.Close() // after an error, the log stays beside the database file and is moved with it
		}
	}
	to := unusedName(path + ".before-restore")
	for _, part := range []string{"", "-wal", "-shm"} {
		if err := os.Rename(path+part, to+part); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("move the old database away: %w", err)
		}
	}
	return diskfile.SyncDir(filepath.Dir(path))
}

// unusedName returns name. If a database with that name exists, it appends a number.
func unusedName(name string) string {
	for n, free := 2, name; ; n++ {
		taken := false
		for _, part := range []string{"", "-wal"} {
			_, err := os.Lstat(free + part)
			taken = taken || err == nil
		}
		if !taken {
			return free
		}
		free = fmt.Sprintf("%s-%d", name, n)
	}
}
