package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"assay/internal/provider/sim"
	"assay/internal/randtest"
)

// flooders are how many clients send expensive reads, each as soon as it has its
// answer.
const flooders = 32

// latencies are those of a kind of request, from when each was due.
type latencies []time.Duration

func (l latencies) quantile(percent int) time.Duration {
	slices.Sort(l)
	return l[min(len(l)*percent/100, len(l)-1)]
}

// paced calls send every so often until the time is over.
func paced(every, total time.Duration, send func(n int)) latencies {
	var mu sync.Mutex
	var all latencies
	var group sync.WaitGroup
	start := time.Now()
	for n := 0; time.Duration(n)*every < total; n++ {
		due := start.Add(time.Duration(n) * every)
		<-time.After(time.Until(due))
		group.Go(func() {
			send(n)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, time.Since(due))
		})
	}
	group.Wait()
	return all
}

// TestFlood_OfExpensiveReadsLeavesRoomForOthers sends each kind of expensive read by 32
// clients at once, and health checks, postings and new listings beside them. The bounds are
// wide: the machine is shared, and this test tells starvation (seconds) from a slow
// answer. With ASSAY_LONG they are those that a quiet machine must keep.
func TestFlood_OfExpensiveReadsLeavesRoomForOthers(t *testing.T) {
	onBoth(t, testFlood)
}

func testFlood(t *testing.T, on engine) {
	names, total, most, ratio := 3_000, 1500*time.Millisecond, time.Second, 0
	if randtest.Long() {
		names, total, most, ratio = 30_000, 10*time.Second, 50*time.Millisecond, 2
	}
	markets, simURL := simulator(t, sim.Options{Names: names, Frozen: true})
	s := on.newServer(t, "MARKET_PRICE_PROVIDERS=sim", "SIM_BASE_URL="+simURL, "LOG_LEVEL=warn")
	s.start()
	pushNames(s, markets.Names(), 5)
	s.awaitPriced()
	const every = 100 * time.Millisecond // of postings and listings
	owned := make([]asset, 10*int(total/every))
	for i := range owned {
		owned[i] = asset{AssetID: fmt.Sprint(i), MarketHashName: markets.Names()[i%10]}
	}
	s.push("owner", 730, owned)
	var listed atomic.Int64
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * flooders}}
	send := func(method, path, body string) int {
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.addr+path, strings.NewReader(body))
		if err != nil {
			return 0
		}
		req.Header.Set("Authorization", "Bearer "+s.secret("ADMIN_API_TOKEN"))
		if body != "" {
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Idempotency-Key", fmt.Sprint(time.Now().UnixNano()))
		}
		resp, err := client.Do(req)
		if err != nil {
			return 0
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		if resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") == "" {
			t.Errorf("%s %s: 503 without Retry-After", method, path)
		}
		return resp.StatusCode
	}
	measure := func() map[string]latencies {
		out := map[string]latencies{}
		var mu sync.Mutex
		var group sync.WaitGroup
		beside := func(what string, every time.Duration, want int, method, path string, body func() string) {
			group.Go(func() {
				l := paced(every, total, func(int) {
					if status := send(method, path, body()); status != want {
						t.Errorf("%s: %d", what, status)
					}
				})
				mu.Lock()
				defer mu.Unlock()
				out[what] = l
			})
		}
		beside("health", 20*time.Millisecond, http.StatusOK, "GET", "/api/health", func() string { return "" })
		beside("posting", every, http.StatusCreated, "POST", "/api/functions/admin/wallet-ledger/buyer/entries", func() string {
			return `{"kind":"deposit","amount":100,"currency":"USD"}`
		})
		beside("listing", every, http.StatusCreated, "POST", "/api/listings", func() string {
			return fmt.Sprintf(`{"userId":"owner","appId":730,"contextId":"2","assetId":"%d","price":100,"currency":"USD"}`, listed.Add(1)-1)
		})
		group.Wait()
		return out
	}
	for name, read := range map[string][2]string{
		"searches":     {"GET", "/api/prices/items?q=no+item+has+this+name"},
		"inventories":  {"GET", "/api/inventory/user0?limit=1000"},
		"explanations": {"GET", "/api/prices/items/" + url.PathEscape(markets.Names()[0])},
		"dry runs":     {"POST", "/api/market-prices/refresh?dryRun=1&force=1"},
	} {
		rest := measure() // each time: what else the machine does changes
		var group sync.WaitGroup
		var answered, refused atomic.Int64
		stop := make(chan struct{})
		for range flooders {
			group.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					switch status := send(read[0], read[1], ""); status {
					case http.StatusOK:
						answered.Add(1)
					case http.StatusServiceUnavailable:
						refused.Add(1)
					default:
						t.Errorf("%s: %d", name, status)
						return
					}
				}
			})
		}
		got := measure()
		close(stop)
		group.Wait()
		t.Logf("%s: %d answered, %d refused; health p99 %v (at rest %v), postings %v (%v), listings %v (%v)", name, answered.Load(), refused.Load(),
			got["health"].quantile(99), rest["health"].quantile(99), got["posting"].quantile(50), rest["posting"].quantile(50),
			got["listing"].quantile(50), rest["listing"].quantile(50))
		if answered.Load() == 0 {
			t.Errorf("%s: none was answered", name)
		}
		if refused := refused.Load(); name == "dry runs" && refused > 0 {
			t.Errorf("%d equal dry runs were refused instead of sharing a read", refused)
		}
		if p99 := got["health"].quantile(99); p99 > most {
			t.Errorf("%s: health p99 is %v, want at most %v", name, p99, most)
		}
		for _, what := range []string{"posting", "listing"} {
			now, before := got[what].quantile(50), rest[what].quantile(50)
			if ratio > 0 && now > time.Duration(ratio)*before || now > most {
				t.Errorf("%s: a %s takes %v, at rest %v", name, what, now, before)
			}
		}
	}
}

// TestFlood_OfHalfSentRequestsIsBounded opens more connections than the server takes by
// default, each with half a request: memory stays bounded (docs/reference/limits.md gives
// the figure), and whole requests are answered.
func TestFlood_OfHalfSentRequestsIsBounded(t *testing.T) {
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
		_, _ = io.WriteString(c, half) // it may be closed already
	}
	for range 20 {
		status, body, err := s.call(http.MethodGet, "/api/health", nil)
		var health struct{ Status string }
		if err != nil || status != http.StatusOK || json.Unmarshal(body, &health) != nil || health.Status != "ok" {
			t.Fatalf("health: %d %s, %v", status, body, err)
		}
	}
	grown := s.peakMemory() - before
	t.Logf("%d half-sent requests: memory grew by %d MiB to %d MiB", clients, grown>>20, (before+grown)>>20)
	if grown > 128<<20 {
		t.Errorf("memory grew by %d MiB", grown>>20)
	}
	resp, err := http.DefaultClient.Do(&http.Request{
		Method: http.MethodGet, URL: &url.URL{Scheme: "http", Host: s.addr, Path: "/api/health"}, Header: http.Header{"X-Pad": {strings.Repeat("x", 20<<10)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("headers of 20 KiB: %d", resp.StatusCode)
	}
}
