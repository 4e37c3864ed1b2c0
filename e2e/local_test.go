package e2e

import (
	"context"
	"database/sql"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // driver "pgx"
	_ "modernc.org/sqlite"             // driver "sqlite"

	"assay/internal/app"
	"assay/internal/config"
)

// local is the program in the process of the test. It cannot be killed, so tests call end.
type local struct {
	*server
	cancel context.CancelFunc
}

// within runs a prepared server in this process until end. It uses only Now and Faults of the
// options.
func (s *server) within(o app.Options) *local {
	s.t.Helper()
	l, err := s.tryWithin(o)
	if err != nil {
		s.t.Fatal(err)
	}
	return l
}

func (s *server) tryWithin(o app.Options) (*local, error) {
	cfg, err := config.Load(config.Options{Environ: s.env, Providers: app.Providers()})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	o.Config, o.Version = cfg, "test"
	o.Logger = slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	a, err := app.New(ctx, o)
	if err != nil {
		cancel()
		return nil, err
	}
	l := &local{server: s, cancel: cancel}
	done := make(chan error, 1)
	s.done = done
	go func() { done <- a.Run(ctx) }()
	s.t.Cleanup(func() {
		if l.cancel != nil {
			_, _ = l.end() // the test has failed or has called end already
		}
	})
	<-a.Ready()
	return l, nil
}

// end stops the program gracefully and returns the duration.
func (l *local) end() (time.Duration, error) {
	began := time.Now()
	l.cancel()
	l.cancel = nil
	err := <-l.done
	return time.Since(began), err
}

// open opens the database of a server for reading.
func (s *server) open() *sql.DB {
	s.t.Helper()
	if s.database != "" {
		return openDatabase(s.t, "pgx", s.database)
	}
	return openFile(s.t, filepath.Join(s.dir, "assay.db"))
}

func openFile(t *testing.T, path string) *sql.DB {
	t.Helper()
	return openDatabase(t, "sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
}

func openDatabase(t *testing.T, driver, name string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// copyFile copies a file, which must not change during the copy.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}
