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

// Pooler is a PgBouncer in transaction mode: the transactions of one connection may run in
// different sessions.
type Pooler struct{ dir string }

// poolerPort is a part of the name of its socket.
const poolerPort = 6432

// StartPooler starts a PgBouncer with this many sessions per database. It stops when tb ends.
func (s *Server) StartPooler(tb testing.TB, sessions int) *Pooler {
	tb.Helper()
	program, err := pgbouncer()
	if err != nil {
		give(tb, err)
	}
	p := &Pooler{}
	if p.dir, err = os.MkdirTemp(s.home.dir, "pooler"); err != nil { //nolint:usetesting // the guard cleans up here
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
	process := s.home.owned(exec.Command(program, settings)) //nolint:noctx,gosec // it ends with the test; the program is a package's
	if err := process.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = process.Process.Kill()
		_ = process.Wait() // killed
	})
	p.await(tb)
	return p
}

// pgbouncer returns the path of the program, which Debian keeps out of the PATH
// of those who are not root.
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

// settings are defaults, but for what is said here.
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

// await waits until it answers.
func (p *Pooler) await(tb testing.TB) {
	tb.Helper()
	deadline := time.After(patience)
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
			tb.Fatalf("PgBouncer does not answer: %v: %s", err, log)
		case <-tick.C:
		}
	}
}

// URL returns the address of a database through the pooler.
func (p *Pooler) URL(database string) string {
	return fmt.Sprintf("postgres://postgres@/%s?host=%s&port=%d", database, p.dir, poolerPort)
}

// Through returns the address through the pooler of a database that Server.URL
// names.
func (p *Pooler) Through(tb testing.TB, url string) string {
	tb.Helper()
	c, err := pgx.ParseConfig(url)
	if err != nil {
		tb.Fatal(err)
	}
	return p.URL(c.Database)
}
