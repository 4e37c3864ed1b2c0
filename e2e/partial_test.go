package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"assay/internal/provider/sim"
)

// partialRun contains the required fields of a run.
type partialRun struct {
	ID, State, Outcome        string
	StartedAt, FinishedAt     time.Time
	UpdatedItems, FailedItems int64
	TotalItems                int64
	SkippedItems              struct{ NoSales, Backoff int64 }
	Gaps                      struct {
		Items   []struct{ Reason string }
		Markets []struct{ Provider, Reason string }
	}
}

// TestPartialOutage_IsPartial uses two providers. One provider refuses connections. The price
// list of the other provider contains two of many known items.
func TestPartialOutage_IsPartial(t *testing.T) {
	t.Parallel()
	onBoth(t, testPartialOutage)
}

func testPartialOutage(t *testing.T, on engine) {
	t.Parallel()
	h, err := sim.NewHandler(sim.Options{Names: 300, Frozen: true})
	if err != nil {
		t.Fatal(err)
	}
	up, err := sim.Start(t.Context(), "127.0.0.1:0", h)
	if err != nil {
		t.Fatal(err)
	}
	closeOnce := sync.OnceValue(up.Close)
	defer func() { _ = closeOnce() }()
	dir := t.TempDir()
	list, config := filepath.Join(dir, "list.csv"), filepath.Join(dir, "lists.json")
	writeFile(t, list, string(csvList(h.Names()[:2], 500)))
	writeFile(t, config, listConfig(list))
	s := on.newServer(t, "MARKET_PRICE_PROVIDERS=sim,pricelist", "SIM_BASE_URL="+up.URL(), "SIM_SHAPE=batch", "SIM_BATCH_SIZE=10",
		"PRICELIST_CONFIG="+config, "MARKET_PRICE_PROVIDER_WAIT=3s", "MARKET_PRICE_TTL=0")
	s.start()
	var items []asset
	for i, n := range h.Names() {
		items = append(items, asset{AssetID: fmt.Sprint(i), MarketHashName: n})
	}
	s.push("u", 730, items)
	s.awaitPriced()
	before := timesOf(s, h.Names()[7])
	if err := closeOnce(); err != nil {
		t.Fatal(err)
	}

	defer watchRequestCount(s)()

	run := func(code int, args ...string) (r partialRun) {
		t.Helper()
		out, _ := s.command(code, append([]string{"refresh", "--wait", "--json"}, args...)...)
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatalf("status: got error %v, want JSON: %s", err, out)
		}
		return r
	}
	for _, args := range [][]string{{"--force"}, nil} { // the second run is not forced; the items are still due
		r := run(9, args...)
		if r.State != "finished" || r.Outcome != "partial" || len(r.Gaps.Items) == 0 || len(r.Gaps.Markets) == 0 || r.Gaps.Markets[0].Provider != "sim" {
			t.Errorf("run: got %+v, want a partial outcome with gaps of items and markets of sim", r)
		}
		missing := r.FailedItems + r.SkippedItems.Backoff // a run without --force skips items without sales
		if missing < 250 || r.UpdatedItems > 2 || missing+r.UpdatedItems+r.SkippedItems.NoSales != 300 {
			t.Errorf("got %d items without evidence and %d updated, want at least 250 and at most 2", missing, r.UpdatedItems)
		}
		if r.SkippedItems.NoSales == 0 && r.UpdatedItems != 2 {
			t.Errorf("got %d items with evidence, want 2", r.UpdatedItems)
		}
		if took := r.FinishedAt.Sub(r.StartedAt); took > 30*time.Second {
			t.Errorf("a provider that refuses connections delayed the run for %v, want at most 30s", took)
		}
	}
	if now := timesOf(s, h.Names()[7]); now != before {
		t.Errorf("the times of an item without evidence changed from %v to %v, want no change", before, now)
	}
	if now := timesOf(s, h.Names()[0]); !now.EstimatedAt.After(before.EstimatedAt) {
		t.Errorf("item with evidence: got the time of estimate %v, want a later one than before", now.EstimatedAt)
	}
	if _, metrics, err := s.call(http.MethodGet, "/metrics", nil); err != nil || !strings.Contains(string(metrics), `assay_refresh_outcome{outcome="partial"} 1`) {
		t.Errorf("the metrics lack the partial outcome, which an alert needs (error %v)", err)
	}
	if out, _ := s.command(0, "events"); !strings.Contains(out, "job.partial") {
		t.Errorf("events: got %s, want job.partial", out)
	}

	again, err := sim.Start(t.Context(), strings.TrimPrefix(up.URL(), "http://"), h)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = again.Close() }()
	if _, err := s.stop(); err != nil { // this resets the circuit breaker
		t.Fatal(err)
	}
	s.start()
	if r := run(0); r.Outcome != "complete" || r.UpdatedItems+r.SkippedItems.NoSales != 300 {
		t.Errorf("run after the provider recovered: got %+v, want a complete outcome", r)
	}
}

// watchRequestCount polls the status until the returned function is called. It fails the test if
// the request count of a run decreases.
func watchRequestCount(s *server) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for last := (status{}); ; {
			var now status
			if err := s.tryGet("/api/market-prices/status", &now); err == nil {
				if now.Status.JobID == last.Status.JobID && now.Usage.RequestCount < last.Usage.RequestCount {
					s.t.Errorf("run %s: the request count fell from %d to %d, want no decrease", now.Status.JobID, last.Usage.RequestCount, now.Usage.RequestCount)
				}
				last = now
			}
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	return func() { close(done); <-ended }
}

// itemTimes are the times of an item's price.
type itemTimes struct{ PriceCheckedAt, EstimatedAt time.Time }

func timesOf(s *server, name string) (times itemTimes) {
	s.t.Helper()
	s.get("/api/prices/items/-?name="+url.QueryEscape(name), &times)
	return times
}
