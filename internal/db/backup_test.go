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

// database makes a database that holds one setting, and returns its path and a
// backup of it.
func database(t *testing.T, value string) (path string, backup []byte) {
	t.Helper()
	dir := t.TempDir()
	path = filepath.Join(dir, "a b?.db") // a name that a URI could misread
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

func TestRestore_ReplacesOnlyWhenToldAndKeepsWhatWasThere(t *testing.T) {
	path, backup := database(t, "old")
	if err := restore(path, backup, false); !errors.Is(err, ErrDatabaseExists) {
		t.Fatalf("err %v, want %v", err, ErrDatabaseExists)
	}
	for _, kept := range []string{".before-restore", ".before-restore-2"} {
		if err := restore(path, backup, true); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path + kept); err != nil {
			t.Errorf("the old database is not kept: %v", err)
		}
		if got := value(t, path); got != "old" {
			t.Errorf("restored %q, want what the backup holds", got)
		}
	}
}

func TestRestore_NeverReplaysTheLogOfTheDatabaseBefore(t *testing.T) {
	path, backup := database(t, "old")
	log := bytes.Repeat([]byte("a log that somebody else left "), 4000)
	for _, part := range []string{"-wal", "-shm"} {
		if err := os.WriteFile(path+part, log, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Options{Path: path}); !errors.Is(err, ErrDatabaseMissing) {
		t.Fatalf("err %v, want %v", err, ErrDatabaseMissing)
	}
	if err := restore(path, backup, false); err != nil {
		t.Fatal(err)
	}
	if got := value(t, path); got != "old" {
		t.Errorf("restored %q, want what the backup holds", got)
	}
}

func TestRestore_MendsADamagedDatabase(t *testing.T) {
	path, backup := database(t, "old")
	if err := os.WriteFile(path, bytes.Repeat([]byte("rubbish "), 50_000), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := restore(path, backup, true); err != nil {
		t.Fatal(err)
	}
	if got := value(t, path); got != "old" {
		t.Errorf("restored %q, want what the backup holds", got)
	}
}

// TestBackup_IsRefusedWithAnySingleBitFlipped flips random bits of a backup, and all
// those of its last line.
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
			t.Fatalf("restore with bit %d of %d flipped: %v", bit, 8*len(backup), err)
		}
		if err := os.WriteFile(file, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := VerifyBackup(file); !errors.Is(err, ErrBackupDamaged) {
			t.Fatalf("verification with bit %d flipped: %v", bit, err)
		}
	}
	if err := os.WriteFile(file, backup, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := VerifyBackup(file); err != nil {
		t.Errorf("the backup itself: %v", err)
	}
	if got := value(t, path); got != "old and later" {
		t.Errorf("the database holds %q, want what it held", got)
	}
}

func TestBackup_LeavesNothingUnderItsNameUnlessItIsWhole(t *testing.T) {
	path, _ := database(t, "old")
	file := filepath.Join(t.TempDir(), "backup")
	died := errors.New("died")
	err := writeBackup(file, func(partial *os.File) error {
		if _, err := partial.WriteString("half"); err != nil {
			return err
		}
		if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the backup has its name while it is written: %v", err)
		}
		return died
	})
	if _, statErr := os.Stat(file); !errors.Is(err, died) || !errors.Is(statErr, fs.ErrNotExist) {
		t.Errorf("err %v, and then %v", err, statErr)
	}
	// What a killed backup had started may write on.
	left, err := os.Create(file + ".partial")
	if err != nil {
		t.Fatal(err)
	}
	defer left.Close()
	if err := Backup(t.Context(), path, file); err != nil {
		t.Fatal(err)
	}
	if _, err := left.WriteString("of a process that was killed"); err != nil {
		t.Fatal(err)
	}
	if err := VerifyBackup(file); err != nil {
		t.Error(err)
	}
	if err := Backup(t.Context(), path, file); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second backup of that name: %v", err)
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
		t.Errorf("a second store: %v", err)
	}
	if err := restore(other, backup, true); !errors.Is(err, ErrDatabaseLocked) {
		t.Errorf("a restore beside it: %v", err)
	}
	set(t, s, "written after that")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestRestore_RefusesWhatIsNoBackupAndChangesNothing(t *testing.T) {
	path, backup := database(t, "old")
	for name, content := range map[string][]byte{
		"rubbish": []byte("rubbish"), "nothing": {}, "half": backup[:len(backup)/2],
	} {
		if err := restore(path, content, true); err == nil {
			t.Errorf("%s was restored", name)
		}
	}
	if got := value(t, path); got != "old and later" {
		t.Errorf("the database holds %q, want what it held", got)
	}
}

// A backup that this build could not restore is worth nothing.
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
			t.Errorf("the backup of a database of another build ends with %v", err)
		}
		if _, err := os.Stat(to); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("it left a file: %v", err)
		}
	}
}
