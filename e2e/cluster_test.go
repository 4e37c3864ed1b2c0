package e2e

import (
	"database/sql"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"assay/internal/pgtest"
	"assay/internal/provider/sim"
	"assay/internal/randtest"
	"assay/internal/refresh"
)

// slowed is a simulator with slow responses.
type slowed struct {
	*sim.Handler
	wait atomic.Int64
}

func (s *slowed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	t := time.NewTimer(time.Duration(s.wait.Load()))
	defer t.Stop()
	select {
	case <-t.C:
	case <-r.Context().Done():
	}
	s.Handler.ServeHTTP(w, r)
}

// slots is the number of concurrent requests per instance.
const slots = 2

// cluster is several servers on one PostgreSQL database, and their slow provider. Tests may
// stop servers.
type cluster struct {
	*server // first server; tests send their requests to it and never kill it
	servers []*server
	markets *slowed
	runs    []string // IDs of the runs that the test started
	before  int      // number of requests before the first run
}

// newCluster starts a server for each URL. All URLs select the same database. It then prices
// the given number of names of three users.
func newCluster(t *testing.T, names int, urls ...string) *cluster {
	t.Helper()
	return newClusterWith(t, names, urls)
}

// newClusterWith is like newCluster, with additional settings.
func newClusterWith(t *testing.T, names int, urls []string, env ...string) *cluster {
	t.Helper()
	h, err := sim.NewHandler(sim.Options{Names: names, Frozen: true})
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{markets: &slowed{Handler: h}}
	provider, err := sim.Start(t.Context(), "127.0.0.1:0", c.markets)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = provider.Close() })
	for _, url := range urls {
		s := newServerOn(t, url, slices.Concat(env, []string{"MARKET_PRICE_PROVIDERS=sim", "SIM_BASE_URL=" + provider.URL(), "MARKET_PRICE_WORKERS=1"})...)
		c.servers = append(c.servers, s)
		s.spawn()
	}
	for _, s := range c.servers {
		s.awaitHealth()
	}
	c.server = c.servers[0]
	pushNames(c.server, h.Names(), 3)
	c.awaitPriced()
	c.before = served(h)
	return c
}

// begin starts a run, or joins the current run. It retries until a server responds.
func (c *cluster) begin() (id string) {
	c.t.Helper()
	c.await("a run", func() bool {
		_, body, err := c.call(http.MethodPost, "/api/market-prices/refresh?force=1", nil)
		var response struct {
			Started bool
			Job     struct{ ID string }
		}
		if err != nil || json.Unmarshal(body, &response) != nil || response.Job.ID == "" {
			return false
		}
		id = response.Job.ID
		if n := len(c.runs); n == 0 || c.runs[n-1] != id {
			c.runs = append(c.runs, id)
			c.markets.Advance(2_000) // changes nearly all prices
		}
		return true
	})
	return id
}

// ended waits for the end of a run. It tolerates failing requests.
func (c *cluster) ended(id string) (j job) {
	c.t.Helper()
	c.await("the end of job "+id, func() bool {
		return c.tryGet("/api/market-prices/jobs/"+id, &j) == nil && j.Stage == "done"
	})
	return j
}

// estimated waits for the end of all runs and checks the database. Each name must be in each
// run once. The provider may receive one request per file and run, plus one for each lost
// request. On a busy machine, each instance may lose its lease once.
func (c *cluster) estimated(lost int) {
	c.t.Helper()
	lost += slots * len(c.servers)
	counted := 0
	for _, id := range c.runs {
		j := c.ended(id)
		if j.State != "finished" {
			c.t.Errorf("job %s: got the state %s (%s), want finished", id, j.State, quoted(j.LastError))
		}
		checkJob(c.t, c.server, id, int64(len(c.markets.Names())))
		counted += int(j.Usage.RequestCount)
	}
	sent := served(c.markets.Handler) - c.before
	c.t.Logf("%d runs; counted %d of %d requests; the kills lost at most %d", len(c.runs), counted, sent, lost)
	if most := len(c.runs)*sim.DefaultMarkets + lost; sent > most {
		c.t.Errorf("got %d requests for %d runs, want at most %d", sent, len(c.runs), most)
	}
	if counted < sent || counted > sent+lost {
		c.t.Errorf("got %d counted requests, want the %d that the provider received and at most %d more", counted, sent, lost)
	}
	checkRows(c.t, c.server, 3)
	checkInvariants(c.t, c.open())
}

// owns returns an SQL condition for the claims of a server's process.
func (s *server) owns() string { return "owner LIKE '%-" + strconv.Itoa(s.cmd.Process.Pid) + "-%'" }

// holds reports whether a server has a claim.
func (s *server) holds(db *sql.DB) bool {
	s.t.Helper()
	return len(rows(s.t, db, `SELECT 1 FROM fetch_unit WHERE state = 'running' AND `+s.owns()+`
		UNION ALL SELECT 1 FROM refresh_batch WHERE state = 'running' AND `+s.owns())) > 0
}

func (s *server) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// forgets waits until the other instances have removed a server.
func (c *cluster) forgets(db *sql.DB, s *server) {
	c.t.Helper()
	c.await("the removal of the instance", func() bool {
		return len(rows(c.t, db, `SELECT 1 FROM instance WHERE `+s.owns())) == 0
	})
}

// starter starts runs repeatedly.
type starter struct {
	mu      sync.Mutex
	started map[string]bool
	count   int
}

// start starts runs on a server, which may be unavailable.
func (a *starter) start(s *server, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(20 * time.Millisecond):
		}
		id, err := s.tryRefresh()
		a.mu.Lock()
		a.count++
		if err == nil && a.started[id] {
			s.t.Errorf("job %s was started twice, want once", id)
		}
		if err == nil {
			a.started[id] = true
		}
		a.mu.Unlock()
	}
}

// TestInstances_StoppedAndKilledInstancesShareRun uses three instances and starts runs on each
// continuously. It stops one instance for three lease periods while the instance has a claim. It
// kills another instance every second.
func TestInstances_StoppedAndKilledInstancesShareRun(t *testing.T) {
	t.Parallel()
	names := 3_000
	if randtest.Long() {
		names = 30_000
	}
	url := pgtest.Shared(t).NewDatabase(t)
	c := newCluster(t, names, url, url, url)
	stopped, killed := c.servers[1], c.servers[2]
	db := c.open()
	c.markets.wait.Store(int64(2 * time.Second))

	first := c.begin()
	starter := starter{started: map[string]bool{}}
	var asking sync.WaitGroup
	enough := make(chan struct{})
	for _, s := range c.servers {
		asking.Go(func() { starter.start(s, enough) })
	}
	c.await("a claim of the instance to stop", func() bool { return stopped.holds(db) })
	stopped.signal(syscall.SIGSTOP)
	kills := 0
	for end := time.Now().Add(3 * refresh.Lease); time.Now().Before(end); kills++ {
		time.Sleep(time.Second)
		killed.kill()
		killed.start()
		if live := rows(t, db, `SELECT id FROM refresh_job WHERE kind = 'bulk' AND state IN ('queued', 'running')`); len(live) > 1 {
			t.Errorf("got %d concurrent bulk jobs, want 1", len(live))
		}
	}
	c.forgets(db, stopped)
	stopped.signal(syscall.SIGCONT)
	close(enough)
	asking.Wait()
	stopped.await("a lost lease", func() bool { return contains(stopped.log, "lease lost") })
	if starter.started[first] {
		t.Errorf("job %s was started twice, want once", first)
	}
	for id := range starter.started {
		c.runs = append(c.runs, id)
	}
	if got := rows(t, db, `SELECT count(*) FROM refresh_job WHERE kind = 'bulk'`); got[0] != strconv.Itoa(len(c.runs)) {
		t.Errorf("got %s bulk jobs, want %d", got[0], len(c.runs))
	}
	t.Logf("%d kills, %d requests to start a run", kills, starter.count)
	c.estimated(slots * (kills + 1))
	c.share(db)
}

// share starts runs until each instance has estimated a batch.
func (c *cluster) share(db *sql.DB) {
	c.t.Helper()
	c.markets.wait.Store(0)
	for _, s := range c.servers {
		s.await("a batch estimated by "+s.addr, func() bool {
			c.ended(c.begin())
			return len(rows(c.t, db, `SELECT 1 FROM refresh_batch WHERE state = 'estimated' AND `+s.owns()+` LIMIT 1`)) > 0
		})
	}
	c.t.Logf("after %d runs, each instance has estimated items", len(c.runs))
}

// estimating reports whether an open transaction has estimated a batch.
func estimating(db *sql.DB) bool {
	found, err := tryRows(db, `SELECT a.pid FROM pg_stat_activity a
		WHERE a.datname = current_database() AND a.state = 'idle in transaction' AND 2 = (
			SELECT count(*) FROM pg_locks l WHERE l.pid = a.pid AND l.mode = 'RowExclusiveLock'
				AND l.relation IN (CAST('item_quotes' AS regclass), CAST('refresh_batch' AS regclass)))`)
	return err == nil && len(found) > 0
}

// TestInstances_StoppedTransactionDoesNotBlockOthers stops an instance after it has estimated a
// batch, but before the commit. The instance keeps its locks until other instances terminate its
// database session. No timeout of the database ends such a session.
func TestInstances_StoppedTransactionDoesNotBlockOthers(t *testing.T) {
	t.Parallel()
	var armed atomic.Bool
	var db *sql.DB
	url := pgtest.Shared(t).NewDatabase(t)
	p := newProxy(t, url, func() cut {
		if armed.Load() && estimating(db) && armed.CompareAndSwap(true, false) {
			return late
		}
		return passes
	})
	c := newCluster(t, 2_000, url, p.url()+"&default_query_exec_mode=exec")
	behind := c.servers[1]
	db = c.open()
	c.servers[0].signal(syscall.SIGSTOP) // makes the other instance estimate
	c.forgets(db, c.servers[0])
	armed.Store(true)
	c.markets.Advance(2_000)
	id := behind.refresh()
	c.runs = append(c.runs, id)
	behind.await("a transaction that has estimated a batch", func() bool { return !armed.Load() })
	behind.signal(syscall.SIGSTOP)
	began := time.Now()
	c.servers[0].signal(syscall.SIGCONT)
	c.ended(id)
	took := time.Since(began)
	t.Logf("the other instance ended the run %v after the stop of the first instance", took)
	if randtest.Long() && took > 5*time.Second {
		t.Errorf("the other instance needed %v to continue the run, want at most 5s", took)
	}
	behind.signal(syscall.SIGCONT)
	close(p.resume)
	behind.await("a lost lease", func() bool { return contains(behind.log, "lease lost") })
	c.estimated(slots)
	c.share(db)
	c.stopAll()
}

// TestInstances_RejectLateCommit delays a commit of an instance, and all its later requests.
// Another instance does the work. Then the delayed requests reach the database.
func TestInstances_RejectLateCommit(t *testing.T) {
	t.Parallel()
	var armed atomic.Bool
	url := pgtest.Shared(t).NewDatabase(t)
	p := newProxy(t, url, func() cut {
		if armed.Load() {
			return late
		}
		return passes
	})
	c := newCluster(t, 2_000, url, p.url())
	behind, db := c.servers[1], c.open()
	c.markets.wait.Store(int64(time.Second))
	id := c.begin()
	c.await("a claim of the instance behind the proxy", func() bool { return behind.holds(db) })
	armed.Store(true)
	c.ended(id)
	c.forgets(db, behind)
	armed.Store(false)
	close(p.resume)
	behind.await("a lost lease", func() bool { return contains(behind.log, "lease lost") })
	c.estimated(slots)
	c.share(db)
	c.stopAll()
}
