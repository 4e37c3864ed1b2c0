package db

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"assay/internal/fault"
	"assay/internal/pgtest"
)

// The test holds every connection that lists can use. Health checks must still get one.
func TestHealthy_UsesReservedConnections(t *testing.T) {
	for _, o := range []struct {
		Options
		lists int // number of connections that lists can use
	}{
		{Options{Path: filepath.Join(t.TempDir(), "a.db")}, readers},
		{Options{URL: pgtest.Shared(t).NewDatabase(t)}, poolSize/2 - 2*(poolSize/8)},
	} {
		s, err := Open(t.Context(), o.Options)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for range o.lists {
			c, err := s.Read.Conn(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
		}
		soon, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		_, schema := s.SchemaVersion(soon)
		if err := errors.Join(s.Healthy(soon), schema); err != nil {
			t.Errorf("with %d list connections in use: got error %v, want none", o.lists, err)
		}
	}
}

// A failed write counts until the window has passed, even if other writes succeed. Errors
// that the database did not cause do not count.
func TestFailures_CountForTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f failures
		for _, harmless := range []error{nil, errors.New("a conflict"), fault.New(fault.Conflict, "c", "no"), &pgconn.PgError{Code: pgTooMany}} {
			f.note(harmless)
		}
		if err := f.recent(); err != nil {
			t.Errorf("got error %v before any failure, want none", err)
		}
		f.note(fmt.Errorf("write: %w", ErrDatabaseReplaced))
		f.note(nil)
		<-time.After(failureWindow - time.Second)
		if f.recent() == nil {
			t.Error("got no error within the window, want the failure")
		}
		<-time.After(time.Second)
		if err := f.recent(); err != nil {
			t.Errorf("got error %v after the window, want none", err)
		}
	})
}

// Transient marks only database errors that a retry can fix.
func TestTransient_MarksOnlyTemporaryDatabaseErrors(t *testing.T) {
	if f := fault.Of(Transient(fmt.Errorf("begin: %w", ErrDatabaseReplaced))); f == nil || f.Kind != fault.Unavailable {
		t.Errorf("replaced database: got fault %+v, want unavailable", f)
	}
	for _, err := range []error{nil, errors.New("other error"), ErrCommitUnknown} {
		if f := fault.Of(Transient(err)); f != nil {
			t.Errorf("%v: got fault %+v, want none", err, f)
		}
	}
}
