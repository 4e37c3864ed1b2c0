package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"assay/internal/randtest"
)

// demanding is a provider. If refuse is set, it sends a Retry-After and delays the end of the response.
type demanding struct {
	list    []byte
	mu      sync.Mutex
	refuse  bool
	refused chan struct{}
	log     []time.Time // requests since the first Retry-After
}

const demanded = 30 * time.Second

func (d *demanding) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	refuse := d.refuse
	if refuse {
		d.log = append(d.log, time.Now())
	}
	first := len(d.log) == 1
	d.mu.Unlock()
	if !refuse {
		_, _ = w.Write(d.list)
		return
	}
	w.Header().Set("Retry-After", "30")
	w.WriteHeader(http.StatusTooManyRequests)
	_ = http.NewResponseController(w).Flush()
	if first {
		close(d.refused)
	}
	select {
	case <-r.Context().Done():
	case <-time.After(5 * time.Second):
	}
}

// TestRetryAfter_SurvivesKill kills a busy server half a second after a provider has returned
// a Retry-After. After a restart the server must send no request before the end of the wait,
// according to the provider's log.
func TestRetryAfter_SurvivesKill(t *testing.T) {
	onBoth(t, func(t *testing.T, on engine) {
		for n := range randtest.Count(1, 25) {
			t.Run(fmt.Sprint("kill ", n), func(t *testing.T) { demandAndKill(t, on) }) // its servers end with it
		}
	})
}

func demandAndKill(t *testing.T, on engine) {
	t.Helper()
	var names []string
	var items []asset
	for i := range 400 {
		names = append(names, fmt.Sprint("Sticker | ", i))
		items = append(items, asset{AssetID: fmt.Sprint(i), MarketHashName: names[i]})
	}
	list := csvList(names, 500)
	d := &demanding{list: list, refused: make(chan struct{})}
	host := httptest.NewServer(d)
	t.Cleanup(host.Close)
	config := filepath.Join(t.TempDir(), "lists.json")
	writeFile(t, config, fmt.Sprintf(`{"lists":[{"key":"list","location":%q,"format":"csv","appId":730,"currency":"USD","name":"name",
		"markets":[{"key":"market","ask":"price"}]}]}`, host.URL+"/list"))
	s := on.newServer(t, "MARKET_PRICE_PROVIDERS=pricelist", "PRICELIST_CONFIG="+config)
	s.start()
	s.push("u", 730, items)
	s.awaitPriced()
	stop := make(chan struct{})
	var writing sync.WaitGroup
	for n := range 4 {
		writing.Go(func() {
			items := slices.Clone(items)
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
					items[i%len(items)].AssetID = fmt.Sprint("again ", i)
					_, _ = s.tryPush(fmt.Sprint("writer", n), 730, items)
				}
			}
		})
	}
	d.mu.Lock()
	d.refuse = true
	d.mu.Unlock()
	s.refresh()
	select {
	case <-d.refused:
	case <-time.After(patience):
		t.Fatal("got no request to the provider, want one")
	}
	time.Sleep(500 * time.Millisecond)
	s.kill()
	close(stop)
	writing.Wait()
	before := d.requests()
	s.start()
	_, _ = s.tryRefresh()
	time.Sleep(3 * time.Second)
	if again := d.requests() - before; again > 0 {
		t.Errorf("got %d requests after %v, within the demanded wait of %v, want none", again, time.Since(d.first()), demanded)
	}
}

func (d *demanding) requests() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.log)
}

func (d *demanding) first() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.log[0]
}
