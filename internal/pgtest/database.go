//go:build unix

package pgtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// NewDatabase makes an empty database, which is dropped when tb ends, and
// returns its address.
func (s *Server) NewDatabase(tb testing.TB) (url string) {
	tb.Helper()
	return s.copyOf(tb, "template0")
}

// NewDatabaseIn makes an empty database with a tablespace of its own in a folder that
// every user may enter, on a small disk for one. Both are dropped when tb ends.
func (s *Server) NewDatabaseIn(tb testing.TB, folder string) (url string) {
	tb.Helper()
	dir := filepath.Join(folder, "tablespace")
	if err := os.Mkdir(dir, 0o700); err != nil {
		tb.Fatal(err)
	}
	if s.home.as != nil {
		if err := os.Chown(dir, int(s.home.as.Uid), int(s.home.as.Gid)); err != nil {
			tb.Fatal(err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.databases++
	name := fmt.Sprint("test", s.databases)
	s.Exec(tb, `CREATE TABLESPACE `+name+` LOCATION '`+dir+`'`)
	s.Exec(tb, `CREATE DATABASE `+name+` TEMPLATE template0 TABLESPACE `+name)
	tb.Cleanup(func() {
		ctx := context.WithoutCancel(tb.Context())
		_ = s.exec(ctx, `DROP DATABASE IF EXISTS `+name+` WITH (FORCE)`)
		_ = s.exec(ctx, `DROP TABLESPACE IF EXISTS `+name)
	})
	return s.URL(name)
}

// CopyDatabase makes a copy of the database template, which is dropped when tb
// ends, and returns its address. The first call makes the template: fill is to
// put into it what all copies begin with, and to let go of it.
func (s *Server) CopyDatabase(tb testing.TB, template string, fill func(ctx context.Context, url string) error) (url string) {
	tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.templates[template] {
		s.Exec(tb, `CREATE DATABASE `+template+` TEMPLATE template0`)
		if err := fill(tb.Context(), s.URL(template)); err != nil {
			tb.Fatal(err)
		}
		s.templates[template] = true
	}
	return s.copied(tb, template)
}

func (s *Server) copyOf(tb testing.TB, template string) (url string) {
	tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.copied(tb, template)
}

// copied copies under the lock: a template must not be in use.
func (s *Server) copied(tb testing.TB, template string) (url string) {
	tb.Helper()
	s.databases++
	name := fmt.Sprint("test", s.databases)
	s.Exec(tb, `CREATE DATABASE `+name+` TEMPLATE `+template)
	tb.Cleanup(func() {
		// The server may have been stopped by then, and takes its data along.
		_ = s.exec(context.WithoutCancel(tb.Context()), `DROP DATABASE IF EXISTS `+name+` WITH (FORCE)`)
	})
	return s.URL(name)
}
