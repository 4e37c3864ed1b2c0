package e2e

import (
	"errors"
	"os/exec"
	"testing"
	"time"

	"assay/internal/pgtest"
)

// TestWait_AStartWaitsForItsDatabase starts a server before its database answers:
// once for longer than it may wait, and once so that the database comes in time.
func TestWait_AStartWaitsForItsDatabase(t *testing.T) {
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
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 3 || !contains(late.log, "did not answer within 1s") {
		t.Errorf("a start without a database ended with %v, want exit code 3 and why: %s", err, late.log)
	}
	s := newServerOn(t, url, "DATABASE_WAIT=2m")
	s.spawn()
	for end := time.Now().Add(patience); !contains(s.log, "database not reachable, retrying"); {
		if time.Now().After(end) {
			t.Fatalf("it does not say that it waits: %s", s.log)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := db.Restart(); err != nil {
		t.Fatal(err)
	}
	s.awaitHealth()
}
