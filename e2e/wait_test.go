package e2e

import (
	"errors"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"assay/internal/pgtest"
)

// TestWait_StartWaitsForDatabase starts a server before its database responds. In the first
// case the database is late. In the second case it responds in time.
func TestWait_StartWaitsForDatabase(t *testing.T) {
	t.Parallel()
	db := pgtest.Start(t, pgtest.Options{})
	url := db.NewDatabase(t)
	if err := db.Stop(); err != nil {
		t.Fatal(err)
	}
	late := newServerOn(t, url, "DATABASE_WAIT=1s")
	late.spawn()
	err := <-late.done
	late.done <- err
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 3 || !contains(late.log, "did not respond within 1s") {
		t.Errorf("start without a database: got error %v, want exit code 3 and the reason: %s", err, late.log)
	}
	s := newServerOn(t, url, "DATABASE_WAIT=2m")
	s.spawn()
	for end := time.Now().Add(patience); !contains(s.log, "database not reachable, retrying"); {
		if time.Now().After(end) {
			t.Fatalf("the log lacks the message about the unreachable database: %s", s.log)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := db.Restart(); err != nil {
		t.Fatal(err)
	}
	s.awaitHealth()
}

// TestWait_StartWaitsForMissingDatabase uses a PostgreSQL server without the database. In the
// first case nothing creates the database in time. In the second case the test creates it.
func TestWait_StartWaitsForMissingDatabase(t *testing.T) {
	t.Parallel()
	there := pgtest.Shared(t).NewDatabase(t)
	absent, err := url.Parse(there)
	if err != nil {
		t.Fatal(err)
	}
	absent.Path += "_absent"
	late := newServerOn(t, absent.String(), "DATABASE_WAIT=1s")
	late.spawn()
	err = <-late.done
	late.done <- err
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 3 ||
		!contains(late.log, "database not reachable, retrying") || !contains(late.log, "does not exist: create it") {
		t.Errorf("start without a database: got error %v, want exit code 3 and the reason: %s", err, late.log)
	}
	s := newServerOn(t, absent.String(), "DATABASE_WAIT=2m")
	s.spawn()
	for end := time.Now().Add(patience); !contains(s.log, "database not reachable, retrying"); {
		if time.Now().After(end) {
			t.Fatalf("the log lacks the message about the unreachable database: %s", s.log)
		}
		time.Sleep(10 * time.Millisecond)
	}
	db, err := pgx.Connect(t.Context(), there)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(t.Context())
	name := pgx.Identifier{strings.TrimPrefix(absent.Path, "/")}.Sanitize()
	if _, err := db.Exec(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.kill()
		if db, err := pgx.Connect(t.Context(), there); err == nil {
			_, _ = db.Exec(t.Context(), "DROP DATABASE "+name)
			_ = db.Close(t.Context())
		}
	})
	s.awaitHealth()
}

// TestWait_CommandsWaitForDatabase runs every command that opens the database, once with a
// late database and once with one that responds in time.
func TestWait_CommandsWaitForDatabase(t *testing.T) {
	t.Parallel()
	db := pgtest.Start(t, pgtest.Options{})
	address := db.NewDatabase(t)
	filled := newServerOn(t, address)
	filled.command(0, "migrate")
	dir := t.TempDir()
	old := filepath.Join(dir, "old")
	filled.command(0, "backup", old)
	if err := db.Stop(); err != nil {
		t.Fatal(err)
	}
	commands := [][]string{
		{"migrate"},
		{"backup", filepath.Join(dir, "new")},
		{"verify", "--all"},
		{"verify", "u1", "--database"},
		{"copy", "--from", address, "--to", "sqlite:" + filepath.Join(dir, "copy.db")},
		{"restore", "--force", old},
	}
	late := newServerOn(t, address, "DATABASE_WAIT=1s")
	for _, args := range commands {
		_, stderr := late.command(3, args...)
		if !strings.Contains(stderr, "database not reachable, retrying") || !strings.Contains(stderr, "did not respond within 1s") {
			t.Errorf("%v: got the output %s, want a message about the unreachable database", args, stderr)
		}
	}
	for _, args := range commands {
		if args[0] == "verify" && args[1] == "u1" {
			continue // the user does not exist
		}
		s := newServerOn(t, address, "DATABASE_WAIT=2m")
		s.spawnCommand(args...)
		for end := time.Now().Add(patience); !contains(s.log, "database not reachable, retrying"); {
			if time.Now().After(end) {
				t.Fatalf("%v: the log lacks the message about the unreachable database: %s", args, s.log)
			}
			time.Sleep(10 * time.Millisecond)
		}
		if err := db.Restart(); err != nil {
			t.Fatal(err)
		}
		err := <-s.done
		s.done <- err
		if err != nil {
			t.Errorf("%v after the database was reachable: got %v, want success\n%s", args, err, s.log)
		}
		if err := db.Stop(); err != nil {
			t.Fatal(err)
		}
	}
}
