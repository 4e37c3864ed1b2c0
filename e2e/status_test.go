package e2e

import (
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"assay/internal/provider/sim"
	"assay/internal/randtest"
)

// TestStatus_IsFastDuringRun requests the status 200 times per second during a run, or 50 times
// per second in short mode. The run has 5,000 names on 10 markets, or 30,000 names in long mode.
// Latency is measured from the scheduled time of each request. The limit is wide because the
// machine is shared, so the test detects only stalls.
func TestStatus_IsFastDuringRun(t *testing.T) {
	onBoth(t, testStatus)
}

func testStatus(t *testing.T, on engine) {
	names, bound, every := 5_000, 5*time.Second, 20*time.Millisecond
	if randtest.Long() {
		names, bound, every = 30_000, 250*time.Millisecond, 5*time.Millisecond
	}
	markets, url := simulator(t, sim.Options{Names: names, Frozen: true})
	s := on.newServer(t, "MARKET_PRICE_PROVIDERS=sim", "SIM_BASE_URL="+url)
	s.start()
	pushNames(s, markets.Names(), 5)
	s.awaitPriced()
	markets.Advance(2_000)

	token := s.secret("MARKET_PRICE_SYNC_SECRET")
	var mu sync.Mutex
	var took []time.Duration
	var failed int
	var load sync.WaitGroup
	stop := make(chan struct{})
	load.Go(func() {
		for due := time.Now(); ; due = due.Add(every) {
			select {
			case <-stop:
				return
			case <-time.After(time.Until(due)):
			}
			load.Go(func() {
				ok := requestStatus(s.addr, token)
				mu.Lock()
				defer mu.Unlock()
				took = append(took, time.Since(due))
				if !ok {
					failed++
				}
			})
		}
	})
	began := time.Now()
	id := s.refresh()
	if end := s.awaitEnd(); end.Status.JobID != id || end.Status.State != "finished" {
		t.Errorf("run: got %+v, want it finished", end)
	}
	ran := time.Since(began)
	close(stop)
	load.Wait()
	slices.Sort(took)
	p99 := took[len(took)*99/100]
	t.Logf("%d requests in a run of %v: p50 %v, p99 %v, slowest %v", len(took), ran.Round(time.Millisecond), took[len(took)/2], p99, took[len(took)-1])
	if failed > 0 {
		t.Errorf("got %d failed requests, want none", failed)
	}
	if p99 > bound {
		t.Errorf("p99: got %v, want at most %v", p99, bound)
	}
}

func requestStatus(addr, secret string) bool {
	req, err := http.NewRequest(http.MethodGet, "http://"+addr+"/api/market-prices/status", nil)
	if err != nil {
		return false
	}
	req.Header.Set("X-Market-Sync-Secret", secret)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err == nil && resp.StatusCode == http.StatusOK
}
