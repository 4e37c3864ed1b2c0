package prices

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"

	"assay/internal/db"
)

// scripted is a version check. The test controls the result of each query.
type scripted struct {
	versionCheck
	requested chan struct{} // a query began
	response  chan int64    // version of bucket 0
	err       error
}

func newScripted(t *testing.T) *scripted {
	t.Helper()
	d, err := db.Open(t.Context(), db.Options{Path: filepath.Join(t.TempDir(), "a.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	s := &scripted{requested: make(chan struct{}, 8), response: make(chan int64)}
	s.store, s.versionCheck.sum = d, s.sum
	return s
}

// sum stores and returns the version that the test sends. It does not call
// catalog.PriceVersion, so catalog.KnownPriceVersion has no value.
func (s *scripted) sum(ctx context.Context, d *db.DB) (int64, error) {
	s.requested <- struct{}{}
	select {
	case version := <-s.response:
		err := d.InTx(ctx, func(tx *db.Tx) error {
			_, err := tx.Exec(`INSERT INTO price_version (bucket, version) VALUES (0, $1)
				ON CONFLICT (bucket) DO UPDATE SET version = excluded.version`, version)
			return err
		})
		return version, errors.Join(s.err, err)
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func TestLatest_CallersDuringQueryShareTheNextQuery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScripted(t)
		got := make(chan int64, 8)
		ask := func() {
			v, err := s.latest(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			got <- v[0]
		}
		go ask()
		synctest.Wait()
		for range 3 {
			go ask()
		}
		synctest.Wait()
		if len(s.requested) != 1 {
			t.Fatalf("got %d queries, want 1", len(s.requested))
		}
		s.response <- 5
		synctest.Wait()
		if len(got) != 1 || <-got != 5 {
			t.Fatal("first query: got a different version or number of callers, want version 5 for one caller")
		}
		s.response <- 6
		synctest.Wait()
		if len(got) != 3 {
			t.Fatalf("got %d callers served by the second query, want 3", len(got))
		}
		for range 3 {
			if v := <-got; v != 6 {
				t.Errorf("got version %d, want 6", v)
			}
		}
		if len(s.requested) != 2 {
			t.Errorf("got %d queries, want 2", len(s.requested))
		}
	})
}

func TestLatest_CancelledCallerDoesNotAffectOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScripted(t)
		impatient, leave := context.WithCancel(t.Context())
		left, got := make(chan error, 1), make(chan int64, 1)
		go func() { _, err := s.latest(impatient); left <- err }()
		synctest.Wait()
		go func() {
			v, err := s.latest(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			got <- v[0]
		}()
		leave()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled caller: got error %v, want context.Canceled", err)
		}
		s.response <- 1
		s.response <- 2
		if v := <-got; v != 2 {
			t.Errorf("remaining caller: got version %d, want 2", v)
		}
	})
}

func TestLatest_ReturnsErrorsWithoutCachingThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScripted(t)
		s.err = errors.New("gone")
		go func() { s.response <- 1 }()
		if _, err := s.latest(t.Context()); !errors.Is(err, s.err) {
			t.Errorf("failed query: got error %v, want the error of the query", err)
		}
		// A database that does not respond must not block the caller forever.
		if _, err := s.latest(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("slow query: got error %v, want context.DeadlineExceeded", err)
		}
		s.err = nil
		go func() { s.response <- 3 }()
		if v, err := s.latest(t.Context()); err != nil || v[0] != 3 {
			t.Errorf("next query: got versions %v, error %v, want version 3", v, err)
		}
	})
}
