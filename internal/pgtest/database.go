//go:build unix

package pgtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// NewDatabase creates an empty database and returns its address. The database is dropped
// when tb ends.
func (s *Server) NewDatabase(tb testing.TB) (url string) {
	tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.createDatabase(tb, "template0")
}

// NewDatabaseIn creates an empty database with its own tablespace in folder, for example
// on a small disk. Every user must have access to the folder. Database and tablespace are
// dropped when tb ends.
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

// CopyDatabase creates a copy of the database template and returns its address. The copy
// is dropped when tb ends. The first call creates the template and calls fill to add its
// contents. Fill must close its connections.
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
	return s.createDatabase(tb, template)
}

// createDatabase copies a template. The caller holds s.mu, because PostgreSQL cannot copy
// a template that is in use.
func (s *Server) createDatabase(tb testing.TB, template string) (url string) {
	tb.Helper()
	s.databases++
	name := fmt.Sprint("test", s.databases)
	s.Exec(tb, `CREATE DATABASE `+name+` TEMPLATE `+template)
	tb.Cleanup(func() {
		// This fails if the server was stopped. Its data is removed with the server.
		_ = s.exec(context.WithoutCancel(tb.Context()), `DROP DATABASE IF EXISTS `+name+` WITH (FORCE)`)
	})
	return s.URL(name)
}
