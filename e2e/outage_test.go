package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"assay/internal/pgtest"
	"assay/internal/randtest"
)

func contains(log *buffer, text string) bool { return strings.Contains(log.String(), text) }

// unavailable checks that a server rejects requests with a clear error, and reports itself as
// unhealthy.
func (s *server) unavailable() {
	s.t.Helper()
	push := `{"appId":730,"contextId":"2","snapshotAt":"` + time.Now().UTC().Format(time.RFC3339Nano) + `","items":[]}`
	for _, r := range []struct{ method, path, body string }{
		{"GET", "/api/market-prices/status", ""},
		{"GET", "/api/market-prices/jobs", ""},
		{"GET", "/api/market-prices/job-debug", ""},
		{"GET", "/api/market-prices/provider-debug", ""},
		{"GET", "/api/prices/items", ""},
		{"GET", "/api/inventory/user0", ""},
		{"POST", "/api/prices/lookup", `{"items":[{"marketHashName":"x"}]}`},
		{"POST", "/api/market-prices/refresh", ""},
		{"POST", "/api/inventory/user0/sync", push},
		{"PUT", "/api/users/user0", `{"displayName":"x"}`},
	} {
		req, err := http.NewRequestWithContext(s.t.Context(), r.method, "http://"+s.addr+r.path, strings.NewReader(r.body))
		if err != nil {
			s.t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+s.secret("ADMIN_API_TOKEN"))
		if r.body != "" {
			req.Header.Set("Content-Type", "application/json")
		}
		resp, err := client.Do(req)
		if err != nil {
			s.t.Errorf("%s %s: got error %v, want a response", r.method, r.path, err)
			continue
		}
		_ = resp.Body.Close()
		if after, err := strconv.Atoi(resp.Header.Get("Retry-After")); resp.StatusCode != http.StatusServiceUnavailable || err != nil || after < 1 {
			s.t.Errorf("%s %s: got %d with Retry-After %q, want 503 and seconds", r.method, r.path, resp.StatusCode, resp.Header.Get("Retry-After"))
		}
	}
	resp, err := client.Get("http://" + s.addr + "/api/health")
	if err != nil {
		s.t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusServiceUnavailable {
		s.t.Errorf("health check: got status %d, want 503", resp.StatusCode)
	}
}

// back waits until all servers are healthy, and returns the duration.
func (c *cluster) back() time.Duration {
	c.t.Helper()
	began := time.Now()
	for _, s := range c.servers {
		s.awaitHealth()
		s.await("a response of the database", func() bool {
			var st status
			return s.tryGet("/api/market-prices/status", &st) == nil
		})
	}
	return time.Since(began)
}

// mostBack returns the time limit for recovery after an outage: 5 s on an idle machine.
func mostBack() time.Duration {
	if randtest.Long() {
		return 5 * time.Second
	}
	return 30 * time.Second
}

// stopAll stops all servers. This must succeed after any outage.
func (c *cluster) stopAll() {
	c.t.Helper()
	for _, s := range c.servers {
		if took, err := s.stop(); err != nil || took > mostStop {
			c.t.Errorf("stop after the outage: got error %v after %v, want none within %v", err, took, mostStop)
		}
	}
}

// TestPostgres_RunSurvivesRestarts restarts the database twenty times, or three times in short
// mode. It alternates between a graceful stop and a kill.
func TestPostgres_RunSurvivesRestarts(t *testing.T) {
	t.Parallel()
	r := randtest.New(t)
	pg := pgtest.Start(t, pgtest.Options{})
	url := pg.NewDatabase(t)
	c := newCluster(t, 2_000, url, url)
	c.markets.wait.Store(int64(500 * time.Millisecond))
	restarts, slowest := randtest.Count(3, 20), time.Duration(0)
	for n := range restarts {
		c.begin()
		time.Sleep(time.Duration(r.IntN(1_500)) * time.Millisecond)
		if n%2 == 0 {
			if err := pg.Stop(); err != nil {
				t.Fatal(err)
			}
			for _, s := range c.servers {
				s.unavailable()
			}
		} else if err := pg.Kill(); err != nil {
			t.Fatal(err)
		}
		c.await("a restart of PostgreSQL", func() bool { return pg.Restart() == nil })
		slowest = max(slowest, c.back())
	}
	t.Logf("%d restarts; slowest recovery %v", restarts, slowest)
	if slowest > mostBack() {
		t.Errorf("the recovery from a restart took %v, want at most %v", slowest, mostBack())
	}
	c.estimated(restarts * slots * len(c.servers))
	c.stopAll()
}

// TestPostgres_RunSurvivesKilledSessions terminates all sessions of the servers every second
// during a run. In long mode it does this thirty times.
func TestPostgres_RunSurvivesKilledSessions(t *testing.T) {
	t.Parallel()
	pg := pgtest.Shared(t)
	url := pg.NewDatabase(t)
	c := newCluster(t, 2_000, url, url)
	c.markets.wait.Store(int64(500 * time.Millisecond))
	rounds, ended := randtest.Count(5, 30), 0
	for range rounds {
		c.begin()
		time.Sleep(time.Second)
		ended += endSessions(t, url)
	}
	t.Logf("%d sessions terminated", ended)
	if back := c.back(); back > mostBack() {
		t.Errorf("the recovery took %v, want at most %v", back, mostBack())
	}
	useConnections(c.server)
	c.estimated(rounds * slots * len(c.servers))
	c.stopAll()
}

// useConnections uses all idle connections of a server at the same time. Each of them whose session
// was terminated fails one request.
func useConnections(s *server) {
	var reading sync.WaitGroup
	for range 50 {
		reading.Go(func() {
			var page struct{}
			_ = s.tryGet("/api/market-prices/jobs?limit=1", &page)
		})
	}
	reading.Wait()
}

// endSessions terminates all other sessions of a database, and returns their number.
func endSessions(t *testing.T, url string) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	const end = `SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`
	if err := conn.QueryRow(t.Context(), end).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestPostgres_CommitsSurviveLostConnections closes connections exactly at a COMMIT, during runs
// and pushes. It closes them alternately before the database receives the COMMIT and before the
// response. It does this two hundred times, or ten times in short mode.
func TestPostgres_CommitsSurviveLostConnections(t *testing.T) {
	t.Parallel()
	r := randtest.New(t)
	cuts := randtest.Count(10, 200)
	var mu sync.Mutex
	made := map[cut]int{}
	armed := false
	commit := func() cut {
		mu.Lock()
		defer mu.Unlock()
		if !armed || made[refused]+made[unknown] == cuts || r.IntN(5) > 0 {
			return passes
		}
		where := []cut{refused, unknown}[r.IntN(2)]
		made[where]++
		return where
	}
	left := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return made[refused]+made[unknown] < cuts
	}
	p := newProxy(t, pgtest.Shared(t).NewDatabase(t), commit)
	c := newCluster(t, 2_000, p.url(), p.url())
	mu.Lock()
	armed = true
	mu.Unlock()
	names := c.markets.Names()
	pushes := 0
	for left() {
		c.begin()
		// A push that returned an error may have succeeded, so the test sends it again.
		items := make([]asset, 100)
		for i := range items {
			items[i] = asset{AssetID: fmt.Sprintf("0-%d", i), MarketHashName: names[r.IntN(len(names))]}
		}
		c.await("a successful push", func() bool {
			pushes++
			_, err := c.tryPush("user0", 730, items)
			return err == nil
		})
		if got := rows(t, c.open(), `SELECT count(*) FROM inventory v JOIN platform_user u ON u.id = v.user_key WHERE u.user_id = 'user0'`); got[0] != "100" {
			t.Errorf("got %s rows after a push of 100, want 100", got[0])
		}
	}
	t.Logf("%d commits refused, %d of unknown outcome; %d pushes", made[refused], made[unknown], pushes)
	c.estimated(cuts)
	c.stopAll()
}

// TestPostgres_SlowDatabaseOnlySlowsRun delays every response of the database.
func TestPostgres_SlowDatabaseOnlySlowsRun(t *testing.T) {
	t.Parallel()
	p := newProxy(t, pgtest.Shared(t).NewDatabase(t), nil)
	c := newCluster(t, 1_000, p.url(), p.url())
	p.delay.Store(int64(time.Duration(randtest.Count(20, 150)) * time.Millisecond))
	c.begin()
	c.estimated(0)
	c.stopAll()
}

// TestPostgres_RecoversFromMissingConnections takes all connections of a database away from a
// server during a run.
func TestPostgres_RecoversFromMissingConnections(t *testing.T) {
	t.Parallel()
	const connections = 30
	pg := pgtest.Start(t, pgtest.Options{Settings: []string{fmt.Sprint("max_connections=", connections)}})
	url := pg.NewDatabase(t)
	c := newCluster(t, 2_000, url)
	c.markets.wait.Store(int64(500 * time.Millisecond))
	c.begin()

	held := takeConnections(t, url, connections)
	c.unavailable()
	for _, conn := range held {
		if err := conn.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}
	if back := c.back(); back > mostBack() {
		t.Errorf("the recovery took %v, want at most %v", back, mostBack())
	}
	names := c.markets.Names()
	var pushing sync.WaitGroup
	for u := range randtest.Count(40, 400) { // many more users than connections
		pushing.Go(func() {
			if _, _, err := c.pushInsisting(c.secret("PLATFORM_API_TOKEN"), fmt.Sprintf("more%d", u), slices.Clone(names[:50])); err != nil {
				t.Errorf("push %d: got error %v, want none", u, err)
			}
		})
	}
	pushing.Wait()
	c.estimated(slots * 2)
	c.stopAll()
}

// takeConnections takes all connections that a database allows, including those of other
// clients.
func takeConnections(t *testing.T, url string, all int) (held []*pgx.Conn) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // the test closes them
	for began := time.Now(); len(held) < all; {
		conn, err := pgx.Connect(ctx, url+"&application_name=held")
		if err == nil {
			held = append(held, conn)
			continue
		}
		if time.Since(began) > patience {
			t.Fatalf("got %d connections, want %d: %v", len(held), all, err)
		}
		const end = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND application_name <> 'held'`
		if _, err := held[0].Exec(ctx, end); err != nil {
			t.Fatal(err)
		}
	}
	return held
}
