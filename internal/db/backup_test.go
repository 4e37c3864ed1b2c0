package db

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"assay/internal/randtest"
)

// database creates a database with one setting and returns its path and a backup. It changes the
// setting after the backup.
func database(t *testing.T, value string) (path string, backup []byte) {
	t.Helper()
	dir := t.TempDir()
	path = filepath.Join(dir, "a b?.db") // a name with characters that have a meaning in a URI
	s := open(t, path)
	set(t, s, value)
	to := filepath.Join(dir, "backup")
	if err := Backup(t.Context(), path, to); err != nil {
		t.Fatal(err)
	}
	set(t, s, value+" and later")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	backup, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	return path, backup
}

func open(t *testing.T, path string) *DB {
	t.Helper()
	s, err := Open(t.Context(), Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func set(t *testing.T, s *DB, value string) {
	t.Helper()
	err := s.InTx(t.Context(), func(tx *Tx) error {
		_, err := tx.Exec(`INSERT INTO setting (name, value) VALUES ('x', $1) ON CONFLICT (name) DO UPDATE SET value = excluded.value`, value)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func value(t *testing.T, path string) string {
	t.Helper()
	s := open(t, path)
	defer s.Close()
	var v string
	if err := s.Read.QueryRowContext(t.Context(), `SELECT value FROM setting WHERE name = 'x'`).Scan(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func restore(path string, backup []byte, replace bool) error {
	return Restore(context.Background(), bytes.NewReader(backup), path, replace)
}

func TestRestore_ReplacesOnlyWithForceAndKeepsTheOldDatabase(t *testing.T) {
	path, backup := database(t, "old")
	if err := restore(path, backup, false); !errors.Is(err, ErrDatabaseExists) {
		t.Fatalf("got error %v, want %v", err, ErrDatabaseExists)
	}
	for _, kept := range []string{".before-restore", ".before-restore-2"} {
		if err := restore(path, backup, true); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path + kept); err != nil {
			t.Errorf("Stat of the old database: got error %v, want none", err)
		}
		if got := value(t, path); got != "old" {
			t.Errorf("got value %q, want %q from the backup", got, "old")
		}
	}
}

func TestRestore_DiscardsTheLogOfTheOldDatabase(t *testing.T) {
	path, backup := database(t, "old")
	log := bytes.Repeat([]byte("a log of another database "), 4000)
	for _, part := range []string{"-wal", "-shm"} {
		if err := os.WriteFile(path+part, log, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Options{Path: path}); !errors.Is(err, ErrDatabaseMissing) {
		t.Fatalf("got error %v, want %v", err, ErrDatabaseMissing)
	}
	if err := restore(path, backup, false); err != nil {
		t.Fatal(err)
	}
	if got := value(t, path); got != "old" {
		t.Errorf("got value %q, want %q from the backup", got, "old")
	}
}

func TestRestore_ReplacesADamagedDatabase(t *testing.T) {
	path, backup := database(t, "old")
	if err := os.WriteFile(path, bytes.Repeat([]byte("garbage "), 50_000), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := restore(path, backup, true); err != nil {
		t.Fatal(err)
	}
	if got := value(t, path); got != "old" {
		t.Errorf("got value %q, want %q from the backup", got, "old")
	}
}

// TestBackup_IsRefusedWithAnySingleBitFlipped flips random bits of a backup, some of them
// in the checksum line.
func TestBackup_IsRefusedWithAnySingleBitFlipped(t *testing.T) {
	path, backup := database(t, "old")
	random := randtest.New(t)
	file := filepath.Join(t.TempDir(), "backup")
	for n := range randtest.Count(60, 1000) {
		bit := random.IntN(8 * len(backup))
		if n%10 == 0 {
			bit = 8*len(backup) - 1 - random.IntN(8*checksumSize)
		}
		damaged := bytes.Clone(backup)
		damaged[bit/8] ^= 1 << (bit % 8)
		if err := restore(path, damaged, true); !errors.Is(err, ErrBackupDamaged) {
			t.Fatalf("restore with bit %d of %d flipped: got error %v, want ErrBackupDamaged", bit, 8*len(backup), err)
		}
		if err := os.WriteFile(file, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := VerifyBackup(file); !errors.Is(err, ErrBackupDamaged) {
			t.Fatalf("verify with bit %d flipped: got error %v, want ErrBackupDamaged", bit, err)
		}
	}
	if err := os.WriteFile(file, backup, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := VerifyBackup(file); err != nil {
		t.Errorf("verify the undamaged backup: got error %v, want none", err)
	}
	if got := value(t, path); got != "old and later" {
		t.Errorf("got value %q, want %q as before", got, "old and later")
	}
}

func TestBackup_GetsItsNameOnlyWhenComplete(t *testing.T) {
	path, _ := database(t, "old")
	file := filepath.Join(t.TempDir(), "backup")
	failed := errors.New("failed")
	err := writeBackup(file, func(partial *os.File) error {
		if _, err := partial.WriteString("half"); err != nil {
			return err
		}
		if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Stat before the backup is complete: got error %v, want fs.ErrNotExist", err)
		}
		return failed
	})
	if _, statErr := os.Stat(file); !errors.Is(err, failed) || !errors.Is(statErr, fs.ErrNotExist) {
		t.Errorf("got error %v and Stat error %v, want %v and no file", err, statErr, failed)
	}
	// A killed backup may leave a pg_dump that continues to write to the old partial
	// file.
	left, err := os.Create(file + ".partial")
	if err != nil {
		t.Fatal(err)
	}
	defer left.Close()
	if err := Backup(t.Context(), path, file); err != nil {
		t.Fatal(err)
	}
	if _, err := left.WriteString("late output"); err != nil {
		t.Fatal(err)
	}
	if err := VerifyBackup(file); err != nil {
		t.Error(err)
	}
	if err := Backup(t.Context(), path, file); !errors.Is(err, fs.ErrExist) {
		t.Errorf("second backup with the same name: got error %v, want fs.ErrExist", err)
	}
}

func TestOpen_RefusesTheSameFileThroughAnotherDirectory(t *testing.T) {
	path, backup := database(t, "old")
	s := open(t, path)
	other := filepath.Join(t.TempDir(), "other.db")
	if err := os.Link(path, other); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Options{Path: other}); !errors.Is(err, ErrDatabaseLocked) {
		t.Errorf("open through a link: got error %v, want ErrDatabaseLocked", err)
	}
	if err := restore(other, backup, true); !errors.Is(err, ErrDatabaseLocked) {
		t.Errorf("restore through a link: got error %v, want ErrDatabaseLocked", err)
	}
	set(t, s, "written after that")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestRestore_RefusesInvalidBackupsAndChangesNothing(t *testing.T) {
	path, backup := database(t, "old")
	for name, content := range map[string][]byte{
		"garbage": []byte("garbage"), "empty file": {}, "first half": backup[:len(backup)/2],
	} {
		if err := restore(path, content, true); err == nil {
			t.Errorf("%s: restore succeeded, want an error", name)
		}
	}
	if got := value(t, path); got != "old and later" {
		t.Errorf("got value %q, want %q as before", got, "old and later")
	}
}

// A build can restore only backups with its own schema, so Backup refuses any other schema.
func TestBackup_RefusesADatabaseOfAnotherBuild(t *testing.T) {
	for _, d := range []Dialect{SQLite, PostgreSQL} {
		s := emptySide(t, d)
		_, err := s.db.ExecContext(t.Context(), `UPDATE setting SET value = 'another' WHERE name = $1`, fingerprintSetting)
		must(t, err)
		to := filepath.Join(t.TempDir(), "backup")
		if d == SQLite {
			err = Backup(t.Context(), s.Path, to)
		} else {
			err = BackupPostgres(t.Context(), s.URL, to)
		}
		if !errors.Is(err, ErrSchemaUnknown) {
			t.Errorf("got error %v, want ErrSchemaUnknown", err)
		}
		if _, err := os.Stat(to); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Stat after the failed backup: got error %v, want fs.ErrNotExist", err)
		}
	}
}
