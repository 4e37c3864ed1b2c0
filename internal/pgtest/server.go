//go:build unix

// Package pgtest starts a real PostgreSQL for tests, from the system's package.
// A server and its data are gone when the test binary ends, however it ends. It
// is imported by tests and measurements alone.
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

// Options say how a server is run. All settings that they leave out are the
// defaults of PostgreSQL.
type Options struct {
	// Durable keeps the server's files on a disk and waits for the disk, as a
	// real one does; for measurements and for tests that kill the server.
	Durable bool
	// Settings are more settings of the server: max_connections=20.
	Settings []string
}

// Server is a PostgreSQL that belongs to this process. It listens on a socket in
// a directory of its own.
type Server struct {
	options Options
	home    home
	watch   io.Closer // the guard cleans up when it is closed

	mu        sync.Mutex
	process   *exec.Cmd
	exited    chan struct{} // closed when process has ended
	templates map[string]bool
	databases int
}

// patience is how long a server may take to start or stop on a loaded machine.
const patience = time.Minute

// Start starts a server, which ends with tb. Without PostgreSQL on the machine
// the test is skipped, and fails where CI is set.
func Start(tb testing.TB, o Options) *Server {
	tb.Helper()
	s, err := Run(o)
	if err != nil {
		give(tb, err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// give ends a test for which there is no server.
func give(tb testing.TB, err error) {
	tb.Helper()
	if errors.Is(err, ErrNotInstalled) && os.Getenv("CI") == "" {
		tb.Skip(err)
	}
	tb.Fatal(err)
}

// shared is the server that all tests of a binary may use, many at once.
var shared = sync.OnceValues(func() (*Server, error) { //nolint:gochecknoglobals // starting one takes seconds
	return Run(Options{Settings: []string{"max_connections=300"}})
})

// Shared returns the one server of the test binary that tests take databases
// from. It does not wait for the disk. Do not stop it.
func Shared(tb testing.TB) *Server {
	tb.Helper()
	s, err := shared()
	if err != nil {
		give(tb, err)
	}
	return s
}

// Run starts a server that its caller closes; what it leaves behind is removed
// when the process ends.
func Run(o Options) (_ *Server, err error) {
	s := &Server{options: o, templates: map[string]bool{}}
	if s.home, err = makeHome(o.Durable); err != nil {
		return nil, err
	}
	if s.watch, err = s.home.guard(); err != nil {
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

// Restart starts the server again after Stop or Kill.
func (s *Server) Restart() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running() {
		return errors.New("the server runs already")
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
		_ = process.Wait() // how it ended is in its log
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

// await waits until the server answers.
func (s *Server) await(exited <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
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
			return fmt.Errorf("PostgreSQL did not start: %s", s.lastWords())
		case <-ctx.Done():
			return fmt.Errorf("PostgreSQL does not answer: %w: %s", err, s.lastWords())
		case <-tick.C:
		}
	}
}

// lastWords are the end of the server's log.
func (s *Server) lastWords() string {
	text, err := os.ReadFile(s.home.log())
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-2000):])
}

// Stop ends the server as an operator does, cutting its sessions off.
func (s *Server) Stop() error { return s.signal(syscall.SIGINT) }

// Kill ends the server's main process at once; its sessions follow when they
// notice.
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
	case <-time.After(patience):
		return errors.New("PostgreSQL does not stop")
	}
}

// Close stops the server and removes its data.
func (s *Server) Close() error {
	err := s.signal(syscall.SIGQUIT) // nobody reads its data again
	return errors.Join(err, s.watch.Close(), os.RemoveAll(s.home.dir))
}

// URL returns the address of a database of the server.
func (s *Server) URL(database string) string {
	return "postgres://postgres@/" + database + "?host=" + s.home.dir
}

// Dir returns the directory of the server's socket, of which the port is 5432.
func (s *Server) Dir() string { return s.home.dir }

// Exec runs a statement as the superuser, in the database postgres.
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

// Log returns what the server has logged.
func (s *Server) Log(tb testing.TB) []byte {
	tb.Helper()
	text, err := os.ReadFile(s.home.log())
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

// Dump returns all that is in the database that URL names, as SQL.
func (s *Server) Dump(tb testing.TB, url string) []byte {
	tb.Helper()
	out, err := s.home.command("pg_dump", "--dbname="+url).Output()
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

// pid returns the process id of the server, for tests of this package.
func (s *Server) pid() int {
	text, err := os.ReadFile(filepath.Join(s.home.data(), "postmaster.pid"))
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	pid, _ := strconv.Atoi(line)
	return pid
}
