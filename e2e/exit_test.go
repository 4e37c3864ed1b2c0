package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"assay/internal/app"
	"assay/internal/config"
	"assay/internal/provider/sim"
	"assay/internal/randtest"
)

// exitPoint, in the environment of the test program, makes it the server that
// ends, as by kill -9, at a commit: "before commit:17".
const exitPoint = "ASSAY_E2E_EXIT"

// exitedAtPoint is the exit code of a server that came to its point.
const exitedAtPoint = 42

func runUntil(point string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	where, number, _ := strings.Cut(point, ":")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		panic(err)
	}
	var count atomic.Int64
	cfg, err := config.Load(config.Options{
		Environ: slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, exitPoint) }),
		Sources: app.Sources(),
	})
	if err != nil {
		panic(err)
	}
	a, err := app.New(ctx, app.Options{
		Config: cfg, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Faults: func(at string) error {
			if at == where && count.Add(1) == n {
				os.Exit(exitedAtPoint)
			}
			return nil
		},
	})
	if err == nil {
		err = a.Run(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// exits is a small world in which everything happens at once: known prices
// change, new names wait for theirs, and ended jobs are removed.
type exits struct {
	t          *testing.T
	env        []string
	base       string // directory of the database before
	known, all []asset
}

func newExits(t *testing.T, shape string) *exits {
	markets, url := simulator(t, sim.Options{Names: 200, Frozen: true})
	e := &exits{t: t, env: []string{
		"MARKET_PRICE_PROVIDERS=sim", "SIM_BASE_URL=" + url, "SIM_SHAPE=" + shape,
		"MARKET_PRICE_JOB_RETENTION_DAYS=0", "MARKET_PRICE_JOB_RETENTION_MIN_JOBS=1",
	}}
	for i, n := range markets.Names() {
		e.all = append(e.all, asset{AssetID: fmt.Sprint(i), MarketHashName: n})
	}
	e.known = e.all[:150]
	s := newServer(t, e.env...)
	l := s.within(app.Options{})
	s.push("u", 730, e.known)
	s.awaitPriced()
	s.refresh()
	s.awaitEnd()
	if _, err := l.end(); err != nil {
		t.Fatal(err)
	}
	markets.Advance(2_000) // so that nearly all prices change
	e.base = s.dir
	return e
}

// copy prepares a server on a copy of the world.
func (e *exits) copy() *server {
	s := newServer(e.t, e.env...)
	for _, name := range []string{"assay.db", "assay.db.id"} {
		copyFile(e.t, filepath.Join(e.base, name), filepath.Join(s.dir, name))
	}
	if err := os.CopyFS(filepath.Join(s.dir, "secrets"), os.DirFS(filepath.Join(e.base, "secrets"))); err != nil {
		e.t.Fatal(err)
	}
	return s
}

// drive pushes the new names, starts a run and waits until everything has
// ended. It fails where the server has gone, or is stuck.
func (e *exits) drive(s *server) error {
	if _, err := s.tryPush("u", 730, e.all); err != nil {
		return err
	}
	if _, err := s.tryRefresh(); err != nil && !strings.Contains(err.Error(), "already_running") {
		return err
	}
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		var st status
		if err := s.tryGet("/api/market-prices/status", &st); err != nil {
			return err
		}
		if !st.Status.Running && !st.Missing.Running && st.Missing.PendingItems == 0 {
			return nil
		}
	}
	return fmt.Errorf("nothing ended within %v", patience)
}

// result is everything that must be the same however often the program ended.
func (e *exits) result(s *server) map[string][]string {
	e.t.Helper()
	db := s.open()
	out := map[string][]string{}
	for what, query := range map[string]string{
		"items":     `SELECT name || phase, price, status, method, average, median, robust, low, high, markets, used_markets, failures FROM item ORDER BY 1`,
		"rows":      `SELECT v.asset_id, v.value, i.name FROM inventory v JOIN item i ON i.id = v.item_id ORDER BY 1`,
		"history":   `SELECT i.name || i.phase, p.price FROM price_point p JOIN item i ON i.id = p.item_id ORDER BY 1, p.at`,
		"snapshots": `SELECT i.name || i.phase, s.market_id, s.ask, s.bid, s.sale, s.listings, s.sales, s.reason FROM snapshot s JOIN item i ON i.id = s.item_id ORDER BY 1, 2`,
		"queue":     `SELECT item_id FROM missing_price`,
		"live jobs": `SELECT id FROM refresh_job WHERE state NOT IN ('finished')`,
	} {
		out[what] = rows(e.t, db, query)
	}
	checkInvariants(e.t, db)
	return out
}

// TestRule8_EndingAtAnyCommitChangesNothing ends the server before and after
// every commit of a small world, the start included, and lets the next start go
// on (short: before one and after the next).
func TestRule8_EndingAtAnyCommitChangesNothing(t *testing.T) {
	t.Parallel()
	for _, shape := range []string{"bulk", "batch"} {
		if shape == "batch" || randtest.Long() {
			t.Run(shape, func(t *testing.T) { testExits(t, shape) })
		}
	}
}

func testExits(t *testing.T, shape string) {
	e := newExits(t, shape)
	s := e.copy()
	l := s.within(app.Options{})
	if err := e.drive(s); err != nil {
		t.Fatal(err)
	}
	if _, err := l.end(); err != nil {
		t.Fatal(err)
	}
	want := e.result(s)
	for n := 1; ; n++ {
		survived := 0
		for i, where := range []string{"before commit", "after commit"} {
			if !randtest.Long() && n%2 != i {
				continue
			}
			if e.endsAt(fmt.Sprintf("%s:%d", where, n), want) {
				survived++
			}
		}
		if survived > 0 || t.Failed() {
			t.Logf("ended at %d commits", n-1)
			return
		}
	}
}

// endsAt runs the world until the point, lets it end in another start, and
// reports whether the point was never reached.
func (e *exits) endsAt(point string, want map[string][]string) (survived bool) {
	e.t.Helper()
	s := e.copy()
	s.cmd = exec.Command(os.Args[0])
	s.cmd.Env = append(slices.Clone(s.env), exitPoint+"="+point)
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	if err := s.cmd.Start(); err != nil {
		e.t.Fatal(err)
	}
	s.done = make(chan error, 1)
	go func() { s.done <- s.cmd.Wait() }()
	if answers(s) {
		if err := e.drive(s); err == nil {
			s.kill()
			return true
		}
	}
	if err := <-s.done; s.cmd.ProcessState.ExitCode() != exitedAtPoint {
		e.t.Fatalf("%s: ended with %v, want the test's own exit; log:\n%s", point, err, s.log)
	}
	s.cmd = nil
	l := s.within(app.Options{})
	if err := e.drive(s); err != nil {
		e.t.Errorf("%s: the next start does not go on: %v", point, err)
	}
	if _, err := l.end(); err != nil {
		e.t.Errorf("%s: %v", point, err)
	}
	for what, got := range e.result(s) {
		if !slices.Equal(got, want[what]) {
			e.t.Errorf("%s: %s differ: %s", point, what, firstDifference(got, want[what]))
		}
	}
	return false
}

// TestRule8_EndingInTheFirstStartIsMadeUpForByTheNext kills a first start, which
// makes the schema, the database's id and the secrets, at system calls by which
// it writes (short: at some of the writes to the database).
func TestRule8_EndingInTheFirstStartIsMadeUpForByTheNext(t *testing.T) {
	t.Parallel()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed, so no process can be killed at a system call")
	}
	r := randtest.New(t)
	for _, call := range []string{"pwrite64", "write", "fsync", "ftruncate", "renameat", "unlinkat"} {
		killed := 0
		for n := 1; n < 400; {
			s := newServer(t)
			s.cmd = exec.Command(strace, "-D", "-f", "-o", "/dev/null", "-e", "trace="+call, "-e", fmt.Sprintf("inject=%s:signal=SIGKILL:when=%d", call, n), binary, "serve")
			s.cmd.Env = s.env
			s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
			if err := s.cmd.Start(); err != nil {
				t.Fatal(err)
			}
			s.done = make(chan error, 1)
			go func() { s.done <- s.cmd.Wait() }()
			if answers(s) {
				if _, err := s.stop(); err != nil {
					t.Logf("%s %d: %v", call, n, err)
				}
				break
			}
			<-s.done
			s.cmd = nil
			killed++
			l := s.within(app.Options{})
			s.push("u", 730, []asset{{AssetID: "1", MarketHashName: "A"}})
			if _, err := l.end(); err != nil {
				t.Errorf("%s %d: %v", call, n, err)
			}
			checkInvariants(t, s.open())
			if t.Failed() {
				t.Fatalf("stopped at %s %d", call, n)
			}
			n++
			if !randtest.Long() && call == "pwrite64" {
				n += r.IntN(30)
			}
		}
		t.Logf("killed at %d calls of %s", killed, call)
	}
}

// answers waits until a server answers or has ended, and reports which.
func answers(s *server) bool {
	for {
		if resp, err := http.Get("http://" + s.addr + "/api/health"); err == nil {
			_ = resp.Body.Close()
			return true
		}
		select {
		case err := <-s.done:
			s.done <- err
			return false
		case <-time.After(2 * time.Millisecond):
		}
	}
}

func firstDifference(got, want []string) string {
	for i := range max(len(got), len(want)) {
		var g, w string
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			return fmt.Sprintf("%d, want %d; row %d is %q, want %q", len(got), len(want), i, g, w)
		}
	}
	return "nothing"
}
