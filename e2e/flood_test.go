package e2e

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"assay/internal/provider/sim"
	"assay/internal/randtest"
)

// flooders is the number of clients that send expensive reads. Each client waits for a response
// before it sends the next read. crowd is a number of clients above the limit of waiting requests.
const (
	flooders = 32
	crowd    = 5 * flooders
)

// latencies are the latencies of one kind of request, measured from the scheduled time.
type latencies []time.Duration

func (l latencies) quantile(percent int) time.Duration {
	slices.Sort(l)
	return l[min(len(l)*percent/100, len(l)-1)].Round(10 * time.Microsecond)
}

// paced calls send at fixed intervals for the given time and returns the latencies.
func paced(every, total time.Duration, send func()) latencies {
	var mu sync.Mutex
	var all latencies
	var group sync.WaitGroup
	start := time.Now()
	for n := 0; time.Duration(n)*every < total; n++ {
		due := start.Add(time.Duration(n) * every)
		<-time.After(time.Until(due))
		group.Go(func() {
			send()
			mu.Lock()
			defer mu.Unlock()
			all = append(all, time.Since(due))
		})
	}
	group.Wait()
	return all
}

// TestFlood_ExpensiveReadsDoNotStarveOthers sends each kind of expensive read with 32
// concurrent clients. It also sends searches with more clients than may wait. At the same time
// it measures health checks, postings and new listings, and compares them with their latency at
// rest. On a shared machine the limits are wide and detect only starvation, which takes seconds.
// With ASSAY_LONG the limits apply to an idle machine. With -v the test prints the figures.
func TestFlood_ExpensiveReadsDoNotStarveOthers(t *testing.T) {
	onBoth(t, testFlood)
}

func testFlood(t *testing.T, on engine) {
	items, rounds, slice, slowest := 3_000, 2, 500*time.Millisecond, time.Second
	if randtest.Long() {
		items, rounds, slice, slowest = 30_000, 4, 2*time.Second, 50*time.Millisecond
	}
	markets, simURL := simulator(t, sim.Options{Names: items, Frozen: true})
	names := markets.Names()
	s := on.newServer(t, "MARKET_PRICE_PROVIDERS=sim", "SIM_BASE_URL="+simURL, "LOG_LEVEL=warn")
	s.start()
	pushNames(s, names, 5)
	s.awaitPriced()
	always := func(line string) func(int64) string { return func(int64) string { return line } }
	t.Logf("%-13s %-8s %9s %9s %6s %9s %9s %9s %9s", "flood", "request", "p50 rest", "flood", "ratio", "p95 rest", "flood", "p99 rest", "flood")
	for _, f := range []struct {
		name    string
		clients int
		line    func(n int64) string // request line of the n-th request
	}{
		{"searches", flooders, always("GET /api/prices/items?q=no+item+has+this+name")},
		{"refusals", crowd, always("GET /api/prices/items?q=no+item+has+this+name")},
		{"item lists", flooders, always("GET /api/prices/items?limit=1000&sort=-price")},
		{"inventories", flooders, func(n int64) string { return fmt.Sprintf("GET /api/inventory/user%d?limit=1000", n%5) }},
		{"explanations", flooders, func(n int64) string {
			return "GET /api/prices/items/" + url.PathEscape(names[n%int64(items)])
		}},
		{"dry runs", flooders, always("POST /api/market-prices/refresh?dryRun=1&force=1")},
		{"listings", flooders, always("GET /api/listings?limit=1000")},
		{"verifications", flooders, always("GET /api/functions/admin/wallet-ledger/buyer/verify")},
	} {
		b := newBystanders(s, "owner of "+f.name, names[:10], 2*rounds*int(slice/postingPace))
		reads := &flooding{s: s, clients: f.clients, line: f.line}
		rest, flooded := map[string]latencies{}, map[string]latencies{}
		var used processorTime
		var lasted time.Duration
		for range rounds {
			b.measure(slice, rest)
			before, began := s.processors(), time.Now()
			stop := reads.start(t)
			b.measure(slice, flooded)
			stop()
			used.add(before, s.processors())
			lasted += time.Since(began)
		}
		for _, request := range []string{"health", "posting", "listing"} {
			before, now := rest[request], flooded[request]
			ratio := float64(now.quantile(50)) / float64(before.quantile(50))
			t.Logf("%-13s %-8s %9v %9v %6.2f %9v %9v %9v %9v", f.name, request, before.quantile(50), now.quantile(50), ratio,
				before.quantile(95), now.quantile(95), before.quantile(99), now.quantile(99))
			switch {
			case request == "health":
				if slow := now.quantile(99); slow > slowest {
					t.Errorf("%s: health p99: got %v, want at most %v", f.name, slow, slowest)
				}
			case randtest.Long() && ratio > 2:
				t.Errorf("%s: request %s took %.2f times as long as at rest, want at most 2", f.name, request, ratio)
			case now.quantile(50) > time.Second:
				t.Errorf("%s: request %s took %v, want at most 1s", f.name, request, now.quantile(50))
			}
		}
		t.Logf("%-13s %d successful, %d rejected in %v; processors: %s", f.name, reads.responded.Load(), reads.refused.Load(), lasted.Round(time.Millisecond), used.shares(lasted))
		if reads.responded.Load() == 0 {
			t.Errorf("flood %s: got no successful response, want at least one", f.name)
		}
		if refused := reads.refused.Load(); f.name == "dry runs" && refused > 0 {
			t.Errorf("got %d rejected dry runs, want none, because equal dry runs share one read", refused)
		}
	}
}

// These are the intervals of the other requests.
const (
	healthPace  = 20 * time.Millisecond
	postingPace = 100 * time.Millisecond // also for listings
)

// bystanders send requests that must not be starved.
type bystanders struct {
	s             *server
	owner         string // owner of the listed assets
	listed        atomic.Int64
	public, admin idleConnections
}

// newBystanders pushes an inventory with the given number of assets, one for each listing.
func newBystanders(s *server, owner string, names []string, assets int) *bystanders {
	owned := make([]asset, assets)
	for i := range owned {
		owned[i] = asset{AssetID: fmt.Sprintf("%s %d", owner, i), MarketHashName: names[i%len(names)]}
	}
	s.push(owner, 730, owned)
	return &bystanders{s: s, owner: owner, public: make(idleConnections, 100), admin: make(idleConnections, 100)}
}

// measure sends requests for the given time and adds their latencies to all.
func (b *bystanders) measure(total time.Duration, all map[string]latencies) {
	var mu sync.Mutex
	var group sync.WaitGroup
	kind := func(name string, every time.Duration, idle idleConnections, token, line string, want int, body func() string) {
		group.Go(func() {
			l := paced(every, total, func() {
				if status, err := idle.send(b.s, token, line, body()); status != want {
					b.s.t.Errorf("%s: got status %d, %v, want %d", name, status, err, want)
				}
			})
			mu.Lock()
			defer mu.Unlock()
			all[name] = append(all[name], l...)
		})
	}
	kind("health", healthPace, b.public, "", "GET /api/health", http.StatusOK, func() string { return "" })
	kind("posting", postingPace, b.admin, b.s.secret("ADMIN_API_TOKEN"), "POST /api/functions/admin/wallet-ledger/buyer/entries", http.StatusCreated, func() string {
		return `{"kind":"deposit","amount":100,"currency":"USD"}`
	})
	kind("listing", postingPace, b.admin, b.s.secret("ADMIN_API_TOKEN"), "POST /api/listings", http.StatusCreated, func() string {
		return fmt.Sprintf(`{"userId":%q,"appId":730,"contextId":"2","assetId":"%s %d","price":100,"currency":"USD"}`, b.owner, b.owner, b.listed.Add(1)-1)
	})
	group.Wait()
}

// idleConnections contains connections without an active request.
type idleConnections chan *keptConnection

// send sends a request on an idle connection, or a new one.
func (idle idleConnections) send(s *server, token, line, body string) (status int, err error) {
	c := &keptConnection{addr: s.addr, token: token}
	select {
	case c = <-idle:
	default:
	}
	status, _, err = c.send(line, body)
	select {
	case idle <- c:
	default:
		c.close()
	}
	return status, err
}

// flooding is a group of clients. Each client sends one expensive read after the other.
type flooding struct {
	s                        *server
	clients                  int
	line                     func(n int64) string
	sent, responded, refused atomic.Int64
}

// start starts the clients. The returned function stops them.
func (f *flooding) start(t *testing.T) (stop func()) {
	var group sync.WaitGroup
	ended := make(chan struct{})
	for range f.clients {
		group.Go(func() {
			c := &keptConnection{addr: f.s.addr, token: f.s.secret("ADMIN_API_TOKEN")}
			defer c.close()
			for {
				select {
				case <-ended:
					return
				default:
				}
				line := f.line(f.sent.Add(1))
				status, retry, err := c.send(line, "")
				switch {
				case err == nil && status == http.StatusOK:
					f.responded.Add(1)
				case err == nil && status == http.StatusServiceUnavailable && retry:
					f.refused.Add(1)
				default:
					t.Errorf("%s: got status %d, Retry-After %v, error %v, want success or 503 with Retry-After", line, status, retry, err)
					return
				}
			}
		})
	}
	return func() {
		close(ended)
		group.Wait()
	}
}

// keptConnection sends requests on one connection and reads only the required parts of a
// response. A client of net/http would use as much processor time as the server.
type keptConnection struct {
	addr, token string   // an empty token sends no credentials
	conn        net.Conn // nil: not connected
	in          *bufio.Reader
}

// send returns the status, and whether the response has a Retry-After.
func (c *keptConnection) send(line, body string) (status int, retry bool, err error) {
	if c.conn == nil {
		if c.conn, err = net.Dial("tcp", c.addr); err != nil {
			return 0, false, err
		}
		c.in = bufio.NewReaderSize(c.conn, 64<<10)
	}
	head := line + " HTTP/1.1\r\nHost: " + c.addr + "\r\nContent-Length: " + strconv.Itoa(len(body))
	if c.token != "" {
		head += "\r\nAuthorization: Bearer " + c.token
	}
	if body != "" {
		head += "\r\nContent-Type: application/json\r\nIdempotency-Key: " + rand.Text()
	}
	if _, err := io.WriteString(c.conn, head+"\r\n\r\n"+body); err != nil {
		return 0, false, err
	}
	length := -1
	for {
		text, err := c.in.ReadSlice('\n')
		if err != nil {
			return 0, false, err
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(string(text), "\r\n"), ": ")
		switch {
		case status == 0:
			_, err = fmt.Sscanf(name, "HTTP/1.1 %d", &status)
		case name == "Content-Length":
			length, err = strconv.Atoi(value)
		case name == "Retry-After":
			retry = true
		case name == "":
			if length < 0 {
				return status, retry, errors.New("response without Content-Length")
			}
			_, err = c.in.Discard(length)
			return status, retry, err
		}
		if err != nil {
			return 0, false, err
		}
	}
}

func (c *keptConnection) close() {
	if c.conn != nil {
		_ = c.conn.Close()
	}
}

// processorTime is used processor time, in total or between two readings.
type processorTime struct{ server, test, machine time.Duration }

// processors returns the processor time used so far.
func (s *server) processors() processorTime {
	s.t.Helper()
	const tick = time.Second / 100
	fields := func(path, after string, indices ...int) (sum time.Duration) {
		text, err := os.ReadFile(path)
		if err != nil {
			s.t.Skipf("cannot read processor times: %v", err)
		}
		line, _, _ := strings.Cut(string(text), "\n")
		all := strings.Fields(line[strings.LastIndex(line, after)+len(after):])
		for _, i := range indices {
			n, err := strconv.ParseInt(all[i], 10, 64)
			if err != nil {
				s.t.Fatal(err)
			}
			sum += time.Duration(n) * tick
		}
		return sum
	}
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		s.t.Fatal(err)
	}
	return processorTime{
		server: fields(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid), ")", 11, 12), // user, system
		test:   time.Duration(own.Utime.Nano() + own.Stime.Nano()),
		// user, nice, system, interrupts
		machine: fields("/proc/stat", "cpu ", 0, 1, 2, 5, 6),
	}
}

// add adds the processor time between two readings.
func (p *processorTime) add(from, to processorTime) {
	p.server += to.server - from.server
	p.test += to.test - from.test
	p.machine += to.machine - from.machine
}

// shares formats the times as shares of one processor within a duration.
func (p processorTime) shares(of time.Duration) string {
	percent := func(d time.Duration) int64 { return int64(100 * max(d, 0) / of) }
	return fmt.Sprintf("server %d %%, this test %d %%, all others %d %% of one processor", percent(p.server), percent(p.test), percent(p.machine-p.server-p.test))
}

// TestFlood_HalfSentRequestsUseBoundedMemory opens more connections than the server accepts by
// default. Each sends half a request. The memory must stay within the limit in
// docs/reference/limits.md, and complete requests must succeed.
func TestFlood_HalfSentRequestsUseBoundedMemory(t *testing.T) {
	clients := randtest.Count(1_500, 15_000)
	s := newServer(t)
	s.start()
	before := s.peakMemory()
	half := "GET /api/health HTTP/1.1\r\nHost: x\r\nX-Pad: " + strings.Repeat("x", 12<<10)
	for range clients {
		c, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, _ = io.WriteString(c, half) // the connection may already be closed
	}
	for range 20 {
		status, body, err := s.call(http.MethodGet, "/api/health", nil)
		var health struct{ Status string }
		if err != nil || status != http.StatusOK || json.Unmarshal(body, &health) != nil || health.Status != "ok" {
			t.Fatalf("health: got %d %s, %v, want 200 and ok", status, body, err)
		}
	}
	grown := s.peakMemory() - before
	t.Logf("%d half-sent requests: memory grew by %d MiB to %d MiB", clients, grown>>20, (before+grown)>>20)
	if grown > 128<<20 {
		t.Errorf("memory grew by %d MiB, want at most 128", grown>>20)
	}
	resp, err := http.DefaultClient.Do(&http.Request{
		Method: http.MethodGet, URL: &url.URL{Scheme: "http", Host: s.addr, Path: "/api/health"}, Header: http.Header{"X-Pad": {strings.Repeat("x", 20<<10)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("headers of 20 KiB: got status %d, want 431", resp.StatusCode)
	}
}
