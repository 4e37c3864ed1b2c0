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

// Lists may hold every connection that they can get.
func TestHealthy_UsesNoConnectionOfLists(t *testing.T) {
	for _, o := range []struct {
		Options
		lists int // connections
	}{
		{Options{Path: filepath.Join(t.TempDir(), "a.db")}, readers},
		{Options{URL: pgtest.Shared(t).NewDatabase(t)}, poolSize/2 - poolSize/8},
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
			t.Errorf("with %d connections of lists in use: %v", o.lists, err)
		}
	}
}

// A failed write counts until the window has passed, whatever succeeds
// meanwhile; what is not the database's fault does not count.
func TestFailures_CountForTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f failures
		for _, harmless := range []error{nil, errors.New("a conflict"), fault.New(fault.Conflict, "c", "no"), &pgconn.PgError{Code: pgTooMany}} {
			f.note(harmless)
		}
		if err := f.recent(); err != nil {
			t.Errorf("unwell without a failure: %v", err)
		}
		f.note(fmt.Errorf("write: %w", ErrDatabaseReplaced))
		f.note(nil)
		<-time.After(failureWindow - time.Second)
		if f.recent() == nil {
			t.Error("well again before the window has passed")
		}
		<-time.After(time.Second)
		if err := f.recent(); err != nil {
			t.Errorf("unwell after the window: %v", err)
		}
	})
}

// Whoever called is told to try again when the database is to blame, and only
// then.
func TestTransient_LetsTheCallerRetryWhatMayPass(t *testing.T) {
	if f := fault.Of(Transient(fmt.Errorf("begin: %w", ErrDatabaseReplaced))); f == nil || f.Kind != fault.Unavailable {
		t.Errorf("a replaced database: %+v", f)
	}
	for _, err := range []error{nil, errors.New("our own"), ErrCommitUnknown} {
		if f := fault.Of(Transient(err)); f != nil {
			t.Errorf("%v: %+v", err, f)
		}
	}
}
