package dbtest

import (
	"bytes"
	"log/slog"
	"reflect"
	"sync"
	"testing"
	"time"

	"assay/internal/db"
)

// Epoch is the initial time of each Fixture.
var Epoch = time.Date(2026, 3, 1, 12, 0, 0, 123_456_000, time.UTC)

// Fixture is an open, empty database. The test sets its clock.
type Fixture struct {
	testing.TB
	Database
	DB     *db.DB
	Now    time.Time
	Faults func(point string) error // as in db.Options
	Logged bytes.Buffer             // log output of the database
}

// Each runs a test on each engine, and on PostgreSQL again through a pooler. In a package
// that uses RunOnEngines, it runs the current engine only.
func Each(t *testing.T, test func(f *Fixture)) {
	t.Helper()
	for _, engine := range engines() {
		ways := []string{engine}
		if engine == PostgreSQL {
			ways = append(ways, pooled)
		}
		for _, way := range ways {
			t.Run(way, func(t *testing.T) {
				f := &Fixture{TB: t, Database: On(t, way), Now: Epoch}
				f.DB = f.Open(t, db.Options{
					Now:    func() time.Time { return f.Now },
					Logger: slog.New(slog.NewTextHandler(&f.Logged, nil)),
					Faults: func(point string) error {
						if f.Faults == nil {
							return nil
						}
						return f.Faults(point)
					},
				})
				test(f)
			})
		}
	}
}

// Must ends the test if err is not nil.
func (f *Fixture) Must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// Tx runs fn in a transaction. An error ends the test.
func (f *Fixture) Tx(fn func(tx *db.Tx) error) {
	f.Helper()
	f.Must(f.DB.InTx(f.Context(), fn))
}

// Try is Tx for goroutines: an error fails the test but does not end it.
func (f *Fixture) Try(fn func(tx *db.Tx) error) {
	if err := f.DB.InTx(f.Context(), fn); err != nil {
		f.Error(err)
	}
}

// Is fails the test if got differs from want.
func (f *Fixture) Is(what string, got, want any) {
	f.Helper()
	if !reflect.DeepEqual(got, want) {
		f.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// AtOnce runs fn in n goroutines that start together, and waits for them.
func AtOnce(n int, fn func(i int)) {
	var running sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		running.Go(func() {
			<-start
			fn(i)
		})
	}
	close(start)
	running.Wait()
}
