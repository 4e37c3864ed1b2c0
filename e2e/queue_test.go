package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"assay/internal/provider/sim"
	"assay/internal/randtest"
)

// requested counts the requests to a simulator by name.
type requested struct {
	markets http.Handler
	mu      sync.Mutex
	names   map[string]int
}

func (a *requested) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "incomplete body", http.StatusBadRequest)
		return
	}
	var batch struct{ Names []string }
	if err := json.Unmarshal(body, &batch); err == nil {
		a.mu.Lock()
		for _, n := range batch.Names {
			a.names[n]++
		}
		a.mu.Unlock()
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	a.markets.ServeHTTP(w, r)
}

// TestRule3_ConcurrentPushesQueueEachNameOnce concurrently pushes the inventories of 200
// users, or of 1,000 users with 500 names in long mode. All users share three fifths of the
// names.
func TestRule3_ConcurrentPushesQueueEachNameOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, testManyPushes)
}

func testManyPushes(t *testing.T, on engine) {
	t.Parallel()
	users, each := 200, 100
	if randtest.Long() {
		users, each = 1_000, 500
	}
	shared := each * 3 / 5
	distinct := shared + users*(each-shared)
	markets, err := sim.NewHandler(sim.Options{Names: distinct, Frozen: true})
	if err != nil {
		t.Fatal(err)
	}
	counter := &requested{markets: markets, names: map[string]int{}}
	provider, err := sim.Start(t.Context(), "127.0.0.1:0", counter)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = provider.Close() })
	s := on.newServer(t, "MARKET_PRICE_PROVIDERS=sim", "SIM_BASE_URL="+provider.URL(), "SIM_SHAPE=batch")
	s.start()
	names := markets.Names()
	token := s.secret("PLATFORM_API_TOKEN")

	var queued, later atomic.Int64
	var all sync.WaitGroup
	began := time.Now()
	for u := range users {
		all.Go(func() {
			own := names[shared+u*(each-shared):][:each-shared]
			n, tries, err := s.pushInsisting(token, fmt.Sprintf("user%d", u), append(names[:shared:shared], own...))
			if err != nil {
				t.Errorf("push of user %d: got error %v, want none", u, err)
			}
			queued.Add(n)
			later.Add(int64(tries - 1))
		})
	}
	all.Wait()
	t.Logf("%d pushes of %d names in %v, %d retries", users, each, time.Since(began).Round(time.Millisecond), later.Load())
	if got := queued.Load(); got != int64(distinct) {
		t.Errorf("got %d queued names, want %d", got, distinct)
	}
	s.awaitPriced()
	t.Logf("all names had a price after %v", time.Since(began).Round(time.Millisecond))

	db := s.open()
	twice := rows(t, db, `SELECT i.name, count(*) FROM refresh_item r JOIN item i ON i.id = r.item_id GROUP BY r.item_id, i.name HAVING count(*) <> 1`)
	if len(twice) > 0 {
		t.Errorf("got %d names in more than one job, such as %s, want none", len(twice), twice[0])
	}
	if got := rows(t, db, `SELECT count(*) FROM refresh_item`); got[0] != strconv.Itoa(distinct) {
		t.Errorf("got %s names in jobs, want %d", got[0], distinct)
	}
	for n, times := range counter.names {
		if times != 1 {
			t.Fatalf("%q was requested %d times, want 1", n, times)
		}
	}
	if len(counter.names) != distinct {
		t.Errorf("got requests for %d names, want %d", len(counter.names), distinct)
	}
	if got := rows(t, db, `SELECT count(*) FROM inventory WHERE value > 0`); got[0] != strconv.Itoa(users*each) {
		t.Errorf("got %s rows with a value, want %d", got[0], users*each)
	}
	checkInvariants(t, db)
}

// pushInsisting pushes an inventory, and retries as long as the server requests it. It returns
// the number of queued names and the number of attempts.
func (s *server) pushInsisting(token, user string, names []string) (queued int64, tries int, err error) {
	items := make([]asset, len(names))
	for i, n := range names {
		items[i] = asset{AssetID: strconv.Itoa(i), MarketHashName: n}
	}
	body, err := json.Marshal(map[string]any{
		"appId": 730, "contextId": "2", "snapshotAt": time.Now().UTC().Format(time.RFC3339Nano), "items": items,
	})
	if err != nil {
		return 0, 0, err
	}
	for tries = 1; ; tries++ {
		req, err := http.NewRequest(http.MethodPost, "http://"+s.addr+"/api/inventory/"+url.PathEscape(user)+"/sync", bytes.NewReader(body))
		if err != nil {
			return 0, tries, err
		}
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return 0, tries, err
		}
		response, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		switch resp.StatusCode {
		case http.StatusOK:
			var result struct{ QueuedNames int64 }
			if err == nil {
				err = json.Unmarshal(response, &result)
			}
			return result.QueuedNames, tries, err
		case http.StatusTooManyRequests, http.StatusServiceUnavailable:
			wait, err := strconv.Atoi(resp.Header.Get("Retry-After"))
			if err != nil {
				return 0, tries, fmt.Errorf("got status %d without a valid Retry-After, want one", resp.StatusCode)
			}
			time.Sleep(time.Duration(wait) * time.Second)
		default:
			return 0, tries, fmt.Errorf("got status %d %s, want 200, 429 or 503", resp.StatusCode, response)
		}
	}
}
