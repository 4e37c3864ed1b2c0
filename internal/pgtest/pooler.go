//go:build unix

package pgtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Pooler is a PgBouncer in transaction mode. Transactions of one connection may run in
// different sessions.
type Pooler struct{ dir string }

// poolerPort is part of the socket name.
const poolerPort = 6432

// StartPooler starts a PgBouncer with the given number of sessions per database. It stops
// when tb ends.
func (s *Server) StartPooler(tb testing.TB, sessions int) *Pooler {
	tb.Helper()
	program, err := pgbouncer()
	if err != nil {
		skipOrFail(tb, err)
	}
	p := &Pooler{}
	if p.dir, err = os.MkdirTemp(s.home.dir, "pooler"); err != nil { //nolint:usetesting // the guard removes this directory
		tb.Fatal(err)
	}
	settings := filepath.Join(p.dir, "settings")
	if err := os.WriteFile(settings, []byte(p.settings(s, sessions)), 0o600); err != nil {
		tb.Fatal(err)
	}
	if s.home.as != nil {
		for _, path := range []string{p.dir, settings} {
			if err := os.Chown(path, int(s.home.as.Uid), int(s.home.as.Gid)); err != nil {
				tb.Fatal(err)
			}
		}
	}
	process := s.home.owned(exec.Command(program, settings)) //nolint:noctx,gosec // it ends with the test; the program is an installed package
	if err := process.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = process.Process.Kill()
		_ = process.Wait() // it always fails, because the process was killed
	})
	p.await(tb)
	return p
}

// pgbouncer returns the path of the program. Debian installs it outside the PATH of
// ordinary users.
func pgbouncer() (string, error) {
	if path, err := exec.LookPath("pgbouncer"); err == nil {
		return path, nil
	}
	const debian = "/usr/sbin/pgbouncer"
	if _, err := os.Stat(debian); err != nil {
		return "", ErrNotInstalled
	}
	return debian, nil
}

// settings returns the configuration file. Other settings have their defaults.
func (p *Pooler) settings(s *Server, sessions int) string {
	return strings.Join([]string{
		"[databases]",
		"* = host=" + s.home.dir + " user=postgres",
		"[pgbouncer]",
		"listen_port = " + strconv.Itoa(poolerPort),
		"unix_socket_dir = " + p.dir,
		"pidfile = " + filepath.Join(p.dir, "pid"),
		"logfile = " + filepath.Join(p.dir, "log"),
		"auth_type = any",
		"pool_mode = transaction",
		"max_client_conn = 1000",
		"default_pool_size = " + strconv.Itoa(sessions),
	}, "\n") + "\n"
}

// await waits until PgBouncer accepts connections.
func (p *Pooler) await(tb testing.TB) {
	tb.Helper()
	deadline := time.After(timeout)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		c, err := pgx.Connect(tb.Context(), p.URL("postgres")+"&default_query_exec_mode=exec")
		if err == nil {
			_ = c.Close(tb.Context())
			return
		}
		select {
		case <-deadline:
			log, _ := os.ReadFile(filepath.Join(p.dir, "log"))
			tb.Fatalf("PgBouncer did not start: %v: %s", err, log)
		case <-tick.C:
		}
	}
}

// URL returns the address of a database through the pooler.
func (p *Pooler) URL(database string) string {
	return fmt.Sprintf("postgres://postgres@/%s?host=%s&port=%d", database, p.dir, poolerPort)
}

// Through converts an address from Server.URL to one that uses the pooler.
func (p *Pooler) Through(tb testing.TB, url string) string {
	tb.Helper()
	c, err := pgx.ParseConfig(url)
	if err != nil {
		tb.Fatal(err)
	}
	return p.URL(c.Database)
}
