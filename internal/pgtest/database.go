//go:build unix

package pgtest

import (
	"context"
	"fmt"
	"testing"
)

// NewDatabase makes an empty database, which is dropped when tb ends, and
// returns its address.
func (s *Server) NewDatabase(tb testing.TB) (url string) {
	tb.Helper()
	return s.copyOf(tb, "template0")
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
