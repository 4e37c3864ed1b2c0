//go:build unix

// Package pgtest runs a PostgreSQL server for tests and benchmarks, with the programs
// that are installed on the system. The server and its data are removed when the test
// binary ends, even after a crash.
package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Options configures a server. All other settings have PostgreSQL's defaults.
type Options struct {
	// Durable keeps the files of the server on disk and enables fsync, as in production.
	// Use it for benchmarks and for tests that kill the server.
	Durable bool
	// Settings are additional server settings, such as "max_connections=20".
	Settings []string
}

// Server is a PostgreSQL server of this process. It listens on a Unix socket in its own
// directory.
type Server struct {
	options Options
	home    home
	guard   io.Closer // starts the cleanup when it is closed

	mu        sync.Mutex
	process   *exec.Cmd
	exited    chan struct{} // closed when process has ended
	templates map[string]bool
	databases int
}

// timeout limits how long a server may take to start or stop on a busy machine.
const timeout = time.Minute

// Start starts a server that stops when tb ends. If PostgreSQL is not installed, the test
// is skipped, or fails if CI is set.
func Start(tb testing.TB, o Options) *Server {
	tb.Helper()
	s, err := Run(o)
	if err != nil {
		skipOrFail(tb, err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// skipOrFail ends a test that has no server.
func skipOrFail(tb testing.TB, err error) {
	tb.Helper()
	if errors.Is(err, ErrNotInstalled) && os.Getenv("CI") == "" {
		tb.Skip(err)
	}
	tb.Fatal(err)
}

// shared is the server that all tests of a binary use, possibly at the same time.
var shared = sync.OnceValues(func() (*Server, error) { //nolint:gochecknoglobals // starting a server takes seconds
	return Run(Options{Settings: []string{"max_connections=300"}})
})

// Shared returns a server that all tests of the binary share. Fsync is off. Tests must
// not stop it.
func Shared(tb testing.TB) *Server {
	tb.Helper()
	s, err := shared()
	if err != nil {
		skipOrFail(tb, err)
	}
	return s
}

// Run starts a server. The caller must close it. All files are removed when the process
// ends.
func Run(o Options) (_ *Server, err error) {
	s := &Server{options: o, templates: map[string]bool{}}
	if s.home, err = makeHome(o.Durable); err != nil {
		return nil, err
	}
	if s.guard, err = s.home.guard(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.home.dir))
	}
	if err = s.home.initialize(); err == nil {
		err = s.Restart()
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Restart starts the server after Stop or Kill.
func (s *Server) Restart() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running() {
		return errors.New("the server is already running")
	}
	settings := append([]string{"listen_addresses=", "unix_socket_directories=" + s.home.dir}, s.options.Settings...)
	if !s.options.Durable {
		settings = append(settings, "fsync=off")
	}
	args := []string{"-D", s.home.data()}
	for _, setting := range settings {
		args = append(args, "-c", setting)
	}
	log, err := os.OpenFile(s.home.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	s.process = s.home.command("postgres", args...)
	s.process.Stdout, s.process.Stderr = log, log
	if err := s.process.Start(); err != nil {
		return err
	}
	process, exited := s.process, make(chan struct{})
	s.exited = exited
	go func() {
		defer close(exited)
		_ = process.Wait() // the log has the exit status
	}()
	return s.await(exited)
}

func (s *Server) running() bool {
	if s.process == nil {
		return false
	}
	select {
	case <-s.exited:
		return false
	default:
		return true
	}
}

// await waits until the server accepts connections.
func (s *Server) await(exited <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := s.exec(ctx, "SELECT 1")
		if err == nil {
			return nil
		}
		select {
		case <-exited:
			return fmt.Errorf("PostgreSQL did not start: %s", s.logTail())
		case <-ctx.Done():
			return fmt.Errorf("PostgreSQL did not become ready: %w: %s", err, s.logTail())
		case <-tick.C:
		}
	}
}

// logTail returns the end of the server log.
func (s *Server) logTail() string {
	text, err := os.ReadFile(s.home.log())
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-2000):])
}

// Stop shuts the server down and disconnects all sessions.
func (s *Server) Stop() error { return s.signal(syscall.SIGINT) }

// Kill kills the main process of the server. The processes of its sessions end when they
// detect this.
func (s *Server) Kill() error { return s.signal(syscall.SIGKILL) }

func (s *Server) signal(sig syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running() {
		return nil
	}
	if err := s.process.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-s.exited:
		return nil
	case <-time.After(timeout):
		return errors.New("PostgreSQL did not stop in time")
	}
}

// Close stops the server and removes its data.
func (s *Server) Close() error {
	err := s.signal(syscall.SIGQUIT) // a clean shutdown is not needed, because the data is removed
	return errors.Join(err, s.guard.Close(), os.RemoveAll(s.home.dir))
}

// URL returns the address of a database of the server.
func (s *Server) URL(database string) string {
	return "postgres://postgres@/" + database + "?host=" + s.home.dir
}

// Dir returns the directory of the server's socket. The port is 5432.
func (s *Server) Dir() string { return s.home.dir }

// Exec runs a statement as superuser in the database postgres.
func (s *Server) Exec(tb testing.TB, statement string) {
	tb.Helper()
	if err := s.exec(tb.Context(), statement); err != nil {
		tb.Fatal(err)
	}
}

func (s *Server) exec(ctx context.Context, statement string) (err error) {
	c, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close(ctx)) }()
	_, err = c.Exec(ctx, statement)
	return err
}

// Log returns the server log.
func (s *Server) Log(tb testing.TB) []byte {
	tb.Helper()
	text, err := os.ReadFile(s.home.log())
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

// Dump returns the contents of the database at url as SQL.
func (s *Server) Dump(tb testing.TB, url string) []byte {
	tb.Helper()
	out, err := s.home.command("pg_dump", "--dbname="+url).Output()
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

// pid returns the process id of the server, or 0. Only tests of this package use it.
func (s *Server) pid() int {
	text, err := os.ReadFile(filepath.Join(s.home.data(), "postmaster.pid"))
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	pid, _ := strconv.Atoi(line)
	return pid
}
