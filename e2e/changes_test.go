package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"assay/internal/pgtest"
	"assay/internal/provider/sim"
	"assay/internal/randtest"
)

// published is a price in a snapshot or a change.
type published struct {
	AppID                       int
	MarketHashName, Phase       string
	CurrentPriceDecimal         string
	PriceStatus, PriceUpdatedAt string
	Interval                    struct{ Low, High json.Number }
	Average                     json.Number
	UsedMarkets                 int
}

// The figures of published, and the parameter that selects them.
const (
	figures     = "interval,average,usedMarkets"
	withFigures = "fields=" + figures
)

func (p *published) key() string { return fmt.Sprintf("%d %q %q", p.AppID, p.MarketHashName, p.Phase) }

// snapshot is an export with the number of its last change.
type snapshot struct {
	change int64
	prices map[string]published
}

// trySnapshot reads snapshot.ndjson.
func (s *server) trySnapshot() (*snapshot, error) {
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, "http://"+s.addr+"/api/prices/snapshot.ndjson?"+withFigures, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+s.secret("PLATFORM_API_TOKEN"))
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("got status %d, want 200", resp.StatusCode)
	}
	out := &snapshot{prices: map[string]published{}}
	if out.change, err = strconv.ParseInt(resp.Header.Get("Assay-Change"), 10, 64); err != nil {
		return nil, err
	}
	for lines := json.NewDecoder(resp.Body); ; {
		var p published
		if err := lines.Decode(&p); err != nil {
			if err.Error() == "EOF" {
				return out, nil
			}
			return nil, err
		}
		out.prices[p.key()] = p
	}
}

func (s *server) readSnapshot() (read *snapshot) {
	s.t.Helper()
	s.await("a snapshot", func() bool {
		var err error
		read, err = s.trySnapshot()
		return err == nil
	})
	return read
}

// follower keeps a copy of all prices by following the changes. It checks that the server sends
// no change twice, and compares its copy with snapshots that the test takes meanwhile.
type follower struct {
	t       *testing.T
	servers []*server
	mu      sync.Mutex
	copy    map[string]published
	next    int64
	expect  []*snapshot // snapshots to compare with the copy, in order of change
	changes int
	figures int // changes of figures only
	equal   int // number of snapshots that were equal to the copy
}

// follow follows the changes until stop is closed. Servers may be killed meanwhile.
func (f *follower) follow(stop chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		s := f.servers[rand.IntN(len(f.servers))]
		path := fmt.Sprintf("/api/prices/changes?since=%d&wait=%d&limit=%d&%s", f.next, rand.IntN(3), 1+rand.IntN(1000), withFigures)
		status, body, err := s.call(http.MethodGet, path, nil)
		switch {
		case err != nil || status == http.StatusServiceUnavailable || status == http.StatusInternalServerError:
			time.Sleep(20 * time.Millisecond)
		case status != http.StatusOK:
			f.t.Errorf("%s: got %d %s, want 200", path, status, body)
			return
		default:
			f.apply(path, body)
		}
	}
}

func (f *follower) apply(path string, body []byte) {
	var page struct {
		Items []struct {
			Change string
			published
		}
		Next string
	}
	if err := json.Unmarshal(body, &page); err != nil {
		f.t.Errorf("%s: got error %v, want a page of changes", path, err)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range page.Items {
		number, _ := strconv.ParseInt(c.Change, 10, 64)
		if number <= f.next {
			f.t.Errorf("%s: got change %d after %d, want a higher number", path, number, f.next)
		}
		f.compare(number - 1)
		old := f.copy[c.key()]
		if old == c.published {
			f.t.Errorf("%s: change %d of %s: got the same price as before, want a difference: %v", path, number, c.key(), old)
		}
		if old.CurrentPriceDecimal == c.CurrentPriceDecimal && old.PriceStatus == c.PriceStatus {
			f.figures++
		}
		f.copy[c.key()], f.next = c.published, number
		f.changes++
	}
	f.next, _ = strconv.ParseInt(page.Next, 10, 64)
	f.compare(f.next)
}

// compare compares the copy with the snapshots up to a change number.
func (f *follower) compare(number int64) {
	for len(f.expect) > 0 && f.expect[0].change <= number {
		if want := f.expect[0]; !maps.Equal(f.copy, want.prices) {
			f.t.Errorf("at change %d, the copy of %d prices differs from the snapshot of %d prices: %s", want.change, len(f.copy), len(want.prices), difference(f.copy, want.prices))
		}
		f.expect = f.expect[1:]
		f.equal++
	}
}

// difference lists the first differences of two copies.
func difference(got, want map[string]published) string {
	var b strings.Builder
	for k, w := range want {
		if g := got[k]; g != w && b.Len() < 1000 {
			fmt.Fprintf(&b, "\n got %v\nwant %v", g, w)
		}
	}
	return b.String()
}

// check adds a snapshot to compare with the copy when the copy has reached its change.
func (f *follower) check(of *snapshot) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if of.change >= f.next && (len(f.expect) == 0 || f.expect[len(f.expect)-1].change <= of.change) {
		f.expect = append(f.expect, of)
	}
}

// caughtUp waits until the copy reaches the change of a snapshot, and compares the two.
func (f *follower) caughtUp(s *server, of *snapshot) {
	f.t.Helper()
	s.await("the change "+strconv.FormatInt(of.change, 10), func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.next >= of.change
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.next != of.change || !maps.Equal(f.copy, of.prices) {
		f.t.Errorf("got %d prices at change %d, want the %d prices of change %d:%s", len(f.copy), f.next, len(of.prices), of.change, difference(f.copy, of.prices))
	}
	f.t.Logf("%d changes of %d items, %d of figures only, compared with %d snapshots", f.changes, len(f.copy), f.figures, f.equal)
}

// churn refreshes all prices while a follower reads the changes. The refreshes are spread over
// one hour of the clock. disturb runs once in each refresh. Snapshots are taken all the time.
func churn(t *testing.T, servers []*server, h *sim.Handler, c sharedClock, disturb func(round int)) {
	t.Helper()
	rounds := randtest.Count(4, 60)
	s := servers[0]
	start := s.readSnapshot()
	f := &follower{t: t, servers: servers, copy: maps.Clone(start.prices), next: start.change}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { f.follow(stop) })
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Millisecond):
			}
			if got, err := s.trySnapshot(); err == nil {
				f.check(got)
			}
		}
	})
	for round := range rounds {
		c.set(t, time.Duration(round+1)*time.Hour/time.Duration(rounds))
		h.Advance(500) // changes a part of the prices
		s.await("a refresh", func() bool {
			status, _, err := s.call(http.MethodPost, "/api/market-prices/refresh?force=1", nil)
			return err == nil && status == http.StatusAccepted
		})
		time.Sleep(time.Duration(rand.IntN(400)) * time.Millisecond)
		disturb(round)
		s.await("the end of the refresh", func() bool {
			var st status
			return s.tryGet("/api/market-prices/status", &st) == nil && !st.Status.Running
		})
	}
	f.caughtUp(s, s.readSnapshot())
	close(stop)
	wg.Wait()
	if f.changes < rounds*len(f.copy)/10 || f.equal < rounds {
		t.Errorf("got %d changes of %d items and %d equal snapshots in %d rounds, want more", f.changes, len(f.copy), f.equal, rounds)
	}
}

func TestChanges_FollowerEqualsSnapshotsOnSQLite(t *testing.T) {
	t.Parallel()
	h, url := simulator(t, sim.Options{Names: 2_000, Frozen: true})
	clock := newSharedClock(t)
	s := newServer(t, "MARKET_PRICE_PROVIDERS=sim", "SIM_BASE_URL="+url, clock.setting())
	s.start()
	pushNames(s, h.Names(), 1)
	s.awaitPriced()
	churn(t, []*server{s}, h, clock, func(round int) {
		if round%2 == 1 {
			s.kill()
			s.spawn()
			s.awaitHealth()
		}
	})
}

// TestChanges_FollowerEqualsSnapshotsOnPostgres uses three instances, kills them and restarts
// PostgreSQL.
func TestChanges_FollowerEqualsSnapshotsOnPostgres(t *testing.T) {
	t.Parallel()
	pg := pgtest.Start(t, pgtest.Options{})
	url := pg.NewDatabase(t)
	clock := newSharedClock(t)
	c := newClusterWith(t, 2_000, []string{url, url, url}, clock.setting())
	churn(t, c.servers, c.markets.Handler, clock, func(round int) { c.disturb(pg, round) })
}

// disturb kills an instance in odd rounds and PostgreSQL in even rounds, and starts it again.
func (c *cluster) disturb(pg *pgtest.Server, round int) {
	c.t.Helper()
	if round%2 == 1 {
		victim := c.servers[rand.IntN(len(c.servers))]
		victim.kill()
		victim.spawn()
	} else {
		if err := pg.Kill(); err != nil {
			c.t.Fatal(err)
		}
		c.await("a restart of PostgreSQL", func() bool { return pg.Restart() == nil })
	}
	c.back()
}

// TestStream_EqualsASnapshotOnSQLite reads the stream while the server is killed.
func TestStream_EqualsASnapshotOnSQLite(t *testing.T) {
	t.Parallel()
	h, url := simulator(t, sim.Options{Names: 1_000, Frozen: true})
	s := newServer(t, "MARKET_PRICE_PROVIDERS=sim", "SIM_BASE_URL="+url)
	s.start()
	pushNames(s, h.Names(), 1)
	s.awaitPriced()
	kinds := stream(t, []*server{s}, h, func(round int) {
		if round%2 == 1 {
			s.kill()
			s.spawn()
			s.awaitHealth()
		}
	})
	if kinds["error"] > 0 {
		t.Errorf("got the events %v, want no error", kinds)
	}
	open := s.openStream(t.Context(), s.readSnapshot().change)
	if open == nil || open.StatusCode != http.StatusOK {
		t.Fatalf("stream: got %+v, want status 200", open)
	}
	defer open.Body.Close()
	if took, err := s.stop(); err != nil || took > 4*time.Second {
		t.Errorf("stop with an open stream: got error %[2]v after %[1]v, want none within 4s", took, err)
	}
}

// TestStream_EqualsASnapshotOnPostgres reads the streams of three instances in turn, kills
// instances and restarts PostgreSQL.
func TestStream_EqualsASnapshotOnPostgres(t *testing.T) {
	t.Parallel()
	pg := pgtest.Start(t, pgtest.Options{})
	url := pg.NewDatabase(t)
	c := newCluster(t, 1_000, url, url, url)
	stream(t, c.servers, c.markets.Handler, func(round int) { c.disturb(pg, round) })
}

// stream refreshes prices while a follower reads the stream of a random server. When the stream
// ends, the follower continues on another server with the id of the last event. disturb runs
// once in each refresh. It returns the number of events by kind.
func stream(t *testing.T, servers []*server, h *sim.Handler, disturb func(round int)) (kinds map[string]int) {
	t.Helper()
	s := servers[0]
	start := s.readSnapshot()
	f := &follower{t: t, copy: maps.Clone(start.prices), next: start.change}
	ctx, stop := context.WithCancel(t.Context())
	kinds = map[string]int{}
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			servers[rand.IntN(len(servers))].readStream(ctx, f, kinds)
			time.Sleep(20 * time.Millisecond)
		}
	})
	for round := range randtest.Count(4, 60) {
		h.Advance(500)
		s.await("a refresh", func() bool {
			_, err := s.tryRefresh()
			return err == nil
		})
		time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond)
		disturb(round)
		s.await("the end of the refresh", func() bool {
			var st status
			return s.tryGet("/api/market-prices/status", &st) == nil && !st.Status.Running
		})
	}
	last := s.readSnapshot()
	s.await("the last change", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.next >= last.change
	})
	stop()
	wg.Wait()
	if !maps.Equal(f.copy, last.prices) {
		t.Errorf("the copy differs from the snapshot:%s", difference(f.copy, last.prices))
	}
	t.Logf("%d changes of %d items, %d of figures only, events %v", f.changes, len(f.copy), f.figures, kinds)
	if kinds["price.changed"] == 0 || kinds["job.finished"]+kinds["job.partial"] == 0 {
		t.Errorf("got the events %v, want changed prices and ended jobs", kinds)
	}
	return kinds
}

// openStream requests the events after a number. It returns nil while the server cannot be reached.
func (s *server) openStream(ctx context.Context, after int64) *http.Response {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.addr+"/api/prices/stream?"+withFigures, nil)
	if err != nil {
		s.t.Error(err)
		return nil
	}
	req.Header.Set("Authorization", "Bearer "+s.secret("PLATFORM_API_TOKEN"))
	req.Header.Set("Last-Event-ID", strconv.FormatInt(after, 10))
	resp, err := client.Do(req)
	if err != nil {
		return nil
	}
	return resp
}

// readStream applies the events of the stream until it ends.
func (s *server) readStream(ctx context.Context, f *follower, kinds map[string]int) {
	resp := s.openStream(ctx, f.next)
	if resp == nil {
		return // the server is starting
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		if resp.StatusCode != http.StatusServiceUnavailable {
			s.t.Errorf("stream: got status %d, want 503", resp.StatusCode)
		}
		return
	}
	var number int64
	var kind string
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "id":
			number, _ = strconv.ParseInt(value, 10, 64)
		case "event":
			kind = value
		case "data":
			kinds[kind]++
			switch kind {
			case "price.changed":
				f.apply("the stream", []byte(fmt.Sprintf(`%s,"next":"%d"}`, strings.TrimSuffix(value, "}"), number)))
			case "job.progress":
			default:
				f.mu.Lock()
				f.next = number
				f.mu.Unlock()
			}
		}
	}
}
