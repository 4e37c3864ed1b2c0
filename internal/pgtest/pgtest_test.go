//go:build unix

package pgtest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// TestMain also runs the child process of TestRun_CleansUpAfterAKilledProcess.
func TestMain(m *testing.M) {
	if os.Getenv("PGTEST_WAIT") == "" {
		os.Exit(m.Run())
	}
	s, err := Run(Options{})
	if err != nil {
		panic(err)
	}
	os.Stdout.WriteString(s.Dir() + "\n")
	select {}
}

func TestRun_CleansUpAfterAKilledProcess(t *testing.T) {
	Shared(t) // skips the test if PostgreSQL is not installed
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), "PGTEST_WAIT=1")
	out, err := child.StdoutPipe()
	must(t, err)
	must(t, child.Start())
	line := make([]byte, 200)
	n, err := out.Read(line)
	must(t, err)
	s := &Server{home: home{dir: strings.TrimSpace(string(line[:n]))}}
	pid := s.pid()
	if pid == 0 {
		t.Fatal("got no process id of a server, want one")
	}
	must(t, child.Process.Kill())
	_ = child.Wait() // it always fails, because the process was killed
	until(t, func() bool {
		_, err := os.Stat(s.Dir())
		return errors.Is(err, os.ErrNotExist) && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
	})
}

func TestServer_RunsAgainAfterStopAndKill(t *testing.T) {
	s := Start(t, Options{Durable: true, Settings: []string{"max_connections=7"}})
	url := s.NewDatabase(t)
	must(t, query(t, url, `CREATE TABLE kept AS SELECT 1`))
	for _, end := range []func() error{s.Stop, s.Kill} {
		must(t, end())
		if query(t, url, `SELECT 1`) == nil {
			t.Error("query succeeded after the server stopped, want an error")
		}
		until(t, func() bool { return s.Restart() == nil }) // sessions of a killed server end with a delay
		must(t, query(t, url, `SELECT * FROM kept`))
	}
	must(t, query(t, url, `DO $$ BEGIN ASSERT current_setting('max_connections') = '7' AND current_setting('fsync') = 'on'; END $$`))
}

func TestCopyDatabase_FillsTheTemplateOnce(t *testing.T) {
	s := Shared(t)
	filled := 0
	for range 2 {
		must(t, query(t, s.CopyDatabase(t, "filled", func(_ context.Context, url string) error {
			filled++
			return query(t, url, `CREATE TABLE kept AS SELECT 1`)
		}), `DROP TABLE kept`))
	}
	if filled > 1 {
		t.Errorf("got %d calls of fill, want at most 1", filled)
	}
}

func query(tb testing.TB, url, statement string) (err error) {
	tb.Helper()
	c, err := pgx.Connect(tb.Context(), url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close(tb.Context())) }()
	_, err = c.Exec(tb.Context(), statement)
	return err
}

func until(tb testing.TB, condition func() bool) {
	tb.Helper()
	deadline := time.After(timeout)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-deadline:
			tb.Fatal("timed out waiting for the condition")
		case <-tick.C:
		}
	}
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
