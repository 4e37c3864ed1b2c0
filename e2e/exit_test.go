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
	"assay/internal/pgtest"
	"assay/internal/provider/sim"
	"assay/internal/randtest"
)

// exitPoint is an environment variable of the test program. If it names a commit, such as
// "before commit:17", the program runs a server that exits there without cleanup, like kill -9.
const exitPoint = "ASSAY_E2E_EXIT"

// exitedAtPoint is the exit code of a server that reached its exit point.
const exitedAtPoint = 42

// clockFile is an environment variable of the test program. It runs a server whose clock is ahead
// of the real one by the duration in this file.
const clockFile = "ASSAY_E2E_CLOCK"

// runServer runs a server in this process until a signal, or until it reaches the exit point.
func runServer(point, clock string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	cfg, err := config.Load(config.Options{
		Environ:   slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "ASSAY_E2E_") }),
		Providers: app.Providers(),
	})
	if err != nil {
		panic(err)
	}
	o := app.Options{Config: cfg, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	if clock != "" {
		o.Now = sharedClock(clock).now
	}
	if point != "" {
		where, number, _ := strings.Cut(point, ":")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			panic(err)
		}
		var count atomic.Int64
		o.Faults = func(at string) error {
			if at == where && count.Add(1) == n {
				os.Exit(exitedAtPoint)
			}
			return nil
		}
	}
	a, err := app.New(ctx, o)
	if err == nil {
		err = a.Run(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// exits is a small world in which everything happens concurrently: known prices change, new
// names get prices, and ended jobs are removed.
type exits struct {
	t          *testing.T
	shape      string
	env        []string
	copy       func(t *testing.T) *server // copies the world; tests end the copy
	known, all []asset
}

func newExits(t *testing.T, on engine, shape string) *exits {
	// The names are too few to learn levels. Therefore a price does not depend on how often a
	// run learns levels.
	markets, url := simulator(t, sim.Options{Names: 45, Frozen: true})
	e := &exits{t: t, shape: shape, env: []string{
		"MARKET_PRICE_PROVIDERS=sim", "SIM_BASE_URL=" + url, "SIM_SHAPE=" + shape,
		"MARKET_PRICE_JOB_RETENTION_DAYS=0", "MARKET_PRICE_JOB_RETENTION_MIN_JOBS=1",
	}}
	for i, n := range markets.Names() {
		e.all = append(e.all, asset{AssetID: fmt.Sprint(i), MarketHashName: n})
	}
	e.known = e.all[:35]
	e.copy = e.fill(on, shape)
	markets.Advance(2_000) // changes nearly all prices
	return e
}

// fill creates the world. It returns a function that prepares a server on a copy of it.
func (e *exits) fill(on engine, shape string) func(t *testing.T) *server {
	e.t.Helper()
	if on == onSQLite {
		base := newServer(e.t, e.env...)
		e.begin(base)
		return func(t *testing.T) *server { return copyOf(t, base, e.env) }
	}
	pg := pgtest.Shared(e.t)
	template := "exits_" + shape
	fill := func(_ context.Context, url string) error {
		e.begin(newServerOn(e.t, url, e.env...))
		return nil
	}
	_ = pg.CopyDatabase(e.t, template, fill) // copies now, before the prices change
	return func(t *testing.T) *server { return newServerOn(t, pg.CopyDatabase(t, template, fill), e.env...) }
}

// begin prices all known names one hour in the past. If the responses were younger than a
// provider's interval, missing prices would be estimated from them.
func (e *exits) begin(s *server) {
	s.t.Helper()
	s.now = func() time.Time { return time.Now().Add(-time.Hour) }
	l := s.within(app.Options{Now: s.now})
	s.push("u", 730, e.known)
	s.awaitPriced()
	s.refresh()
	s.awaitEnd()
	if _, err := l.end(); err != nil {
		s.t.Fatal(err)
	}
}

// copyOf prepares a server on a copy of another server's files.
func copyOf(t *testing.T, base *server, env []string) *server {
	s := newServer(t, env...)
	for _, name := range []string{"assay.db", "assay.db.id"} {
		copyFile(t, filepath.Join(base.dir, name), filepath.Join(s.dir, name))
	}
	if err := os.CopyFS(filepath.Join(s.dir, "secrets"), os.DirFS(filepath.Join(base.dir, "secrets"))); err != nil {
		t.Fatal(err)
	}
	return s
}

// drive pushes the new names, starts a run and waits until all work has ended. It returns an
// error if the server exits or makes no progress.
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
	return fmt.Errorf("the work did not end within %v", patience)
}

// result returns the data that must not depend on the number of exits.
func (e *exits) result(s *server) map[string][]string {
	e.t.Helper()
	db := s.open()
	out := map[string][]string{}
	// A run that was interrupted requests names again, and learns the distance between markets
	// again. Therefore intervals and statuses can differ.
	figures, distinct := "status, interval_low, interval_high", ""
	if e.shape == "batch" {
		figures, distinct = "price", "DISTINCT"
	}
	for what, query := range map[string]string{
		"items":     `SELECT name || phase, price, method, average, median, consensus, low, high, markets, used_markets, failures, ` + figures + ` FROM item ORDER BY 1`,
		"rows":      `SELECT v.asset_id, v.value, i.name FROM inventory v JOIN item i ON i.id = v.item_id ORDER BY 1`,
		"history":   `SELECT ` + distinct + ` i.name || i.phase, p.price FROM price_point p JOIN item i ON i.id = p.item_id ORDER BY 1, 2`,
		"snapshots": `SELECT i.name || i.phase, s.market_id, s.ask, s.bid, s.sale, s.listings, s.sales, s.reason FROM market_snapshot s JOIN item i ON i.id = s.item_id ORDER BY 1, 2`,
		"queue":     `SELECT item_id FROM missing_price`,
		"live jobs": `SELECT id FROM refresh_job WHERE state NOT IN ('finished')`,
	} {
		out[what] = rows(e.t, db, query)
	}
	checkInvariants(e.t, db)
	return out
}

// TestRule8_ExitAtAnyCommitChangesNothing exits the server before and after every commit of a
// small world, including its start. The next start must continue the work. In short mode it
// tests one exit before a commit and one exit after a commit. On PostgreSQL it tests only some
// commits, because each start waits for a lease.
func TestRule8_ExitAtAnyCommitChangesNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, on engine) {
		t.Parallel()
		for _, shape := range []string{"bulk", "batch"} {
			if shape == "batch" || randtest.Long() {
				t.Run(shape, func(t *testing.T) { testExits(t, on, shape) })
			}
		}
	})
}

func testExits(t *testing.T, on engine, shape string) {
	e := newExits(t, on, shape)
	s := e.copy(t)
	var commits atomic.Int64
	l := s.within(app.Options{Faults: func(at string) error {
		if at == "after commit" {
			commits.Add(1)
		}
		return nil
	}})
	if err := e.drive(s); err != nil {
		t.Fatal(err)
	}
	if _, err := l.end(); err != nil {
		t.Fatal(err)
	}
	want := e.result(s)
	for _, point := range pointsOf(t, on, commits.Load()) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			here := *e
			here.t = t
			here.endsAt(point, want)
		})
	}
}

// pointsOf returns the exit points for the given number of commits.
func pointsOf(t *testing.T, on engine, commits int64) []string {
	var out []string
	for n := range commits {
		for i, where := range []string{"before commit", "after commit"} {
			if randtest.Long() || n%2 != int64(i) {
				out = append(out, fmt.Sprintf("%s:%d", where, n+1))
			}
		}
	}
	if on == onPostgres && !randtest.Long() {
		r := randtest.New(t)
		r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
		out = out[:min(len(out), 10)]
	}
	t.Logf("the run needs %d commits", commits)
	return out
}

// endsAt runs the world until the server reaches the exit point. The next start then completes
// the work.
func (e *exits) endsAt(point string, want map[string][]string) {
	e.t.Helper()
	s := e.copy(e.t)
	s.cmd = exec.Command(os.Args[0])
	s.cmd.Env = append(slices.Clone(s.env), exitPoint+"="+point)
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	if err := s.cmd.Start(); err != nil {
		e.t.Fatal(err)
	}
	s.done = make(chan error, 1)
	go func() { s.done <- s.cmd.Wait() }()
	if responses(s) {
		if err := e.drive(s); err == nil {
			s.kill()
			return // the run ended with fewer commits, so it did not reach the point
		}
	}
	if err := <-s.done; s.cmd.ProcessState.ExitCode() != exitedAtPoint {
		e.t.Fatalf("exit at %s: got the result %v, want exit code %d; log:\n%s", point, err, exitedAtPoint, s.log)
	}
	s.cmd = nil
	l := s.within(app.Options{})
	if err := e.drive(s); err != nil {
		e.t.Errorf("kill at %s: the next start failed: %v", point, err)
	}
	if _, err := l.end(); err != nil {
		e.t.Errorf("kill at %s: the last server failed: %v", point, err)
	}
	for what, got := range e.result(s) {
		if !slices.Equal(got, want[what]) {
			e.t.Errorf("kill at %s: %s differ from the result without a kill: %s", point, what, firstDifference(got, want[what]))
		}
	}
}

// TestRule8_ExitDuringFirstStart kills a first start at the system calls that write. The first
// start creates the schema, the database's ID and the secrets. In short mode it tests only
// some writes to the database.
func TestRule8_ExitDuringFirstStart(t *testing.T) {
	t.Parallel()
	strace := straceOrSkip(t)
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
			if responses(s) {
				if _, err := s.stop(); err != nil {
					t.Logf("kill at call %[2]d of %[1]s: the server did not stop: %[3]v", call, n, err)
				}
				break
			}
			<-s.done
			s.cmd = nil
			killed++
			l := s.within(app.Options{})
			s.push("u", 730, []asset{{AssetID: "1", MarketHashName: "A"}})
			if _, err := l.end(); err != nil {
				t.Errorf("kill at call %[2]d of %[1]s: the last server failed: %[3]v", call, n, err)
			}
			checkInvariants(t, s.open())
			if t.Failed() {
				t.Fatalf("stopped after the failure at call %[2]d of %[1]s", call, n)
			}
			n++
			if !randtest.Long() && call == "pwrite64" {
				n += r.IntN(30)
			}
		}
		t.Logf("killed the server at %d calls of %s", killed, call)
	}
}

// responses waits until a server responds or exits, and reports which.
func responses(s *server) bool {
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
