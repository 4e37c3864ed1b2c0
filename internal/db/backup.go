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

// Backup writes a consistent copy of the database at path to the new file to.
// It needs no lock: another process may have the database open and write to it
// meanwhile.
func Backup(ctx context.Context, path, to string) (err error) {
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("back up: no database at %s: %w", path, err)
	}
	db, err := openSQLite(path, readCopy)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if _, _, err := knownSchema(ctx, SQLite, db); err != nil {
		return err // this build could not restore it
	}
	return writeBackup(to, func(partial *os.File) error {
		if _, err := db.ExecContext(ctx, `VACUUM INTO $1`, partial.Name()); err != nil {
			return fmt.Errorf("back up: %w", err)
		}
		return nil
	})
}

// ErrDatabaseExists means that a restore would replace a database.
var ErrDatabaseExists = errors.New("there is a database already: move it away first, or restore with --force, which keeps the old one beside it as .before-restore")

// Restore puts a copy made by Backup in the place of the database at path. The
// copy is checked first; the database must not be in use. An existing database
// is kept beside the new one when replace is set, and is an error otherwise.
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
	// It is on the disk before the old database is moved away.
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
	// The id goes first: the next start detects a crash in between.
	if err := writeID(path, id); err != nil {
		return err
	}
	return f.Commit(path)
}

// checkCopy reports whether a file is a sound database of this program, and
// returns its id.
func checkCopy(ctx context.Context, path string) (id string, err error) {
	db, err := openSQLite(path, readCopy)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var verdict string
	if err := db.QueryRowContext(ctx, `PRAGMA integrity_check(1)`).Scan(&verdict); err != nil {
		return "", err
	}
	if verdict != "ok" {
		return "", fmt.Errorf("it is damaged: %s", verdict)
	}
	version, _, err := checkSchema(ctx, SQLite, db)
	if err != nil {
		return "", err
	}
	if version == 0 {
		return "", errors.New("it is no database of assay")
	}
	err = db.QueryRowContext(ctx, `SELECT value FROM setting WHERE name = 'database_id'`).Scan(&id)
	return id, err
}

// setAside moves away what is left of a database, its log too: a log that stayed
// would be taken for the new one's. The log is folded in first where that is
// possible; a damaged database goes as it is.
func setAside(ctx context.Context, path string) error {
	if _, err := os.Stat(path); err == nil {
		if db, err := openSQLite(path, writes); err == nil {
			_, _ = db.ExecContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`)
			_ = db.Close() // what fails here is kept beside the file
		}
	}
	to := unused(path + ".before-restore")
	for _, part := range []string{"", "-wal", "-shm"} {
		if err := os.Rename(path+part, to+part); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("move the old database away: %w", err)
		}
	}
	return diskfile.SyncDir(filepath.Dir(path))
}

// unused returns a name that no file has: name itself, or with a number.
func unused(name string) string {
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
