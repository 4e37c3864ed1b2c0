package e2e

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"assay/internal/provider/sim"
	"assay/internal/randtest"
)

// job contains the required fields of a job.
type job struct {
	ID, State, Stage                                                                  string
	TotalItems, PendingItems, UpdatedItems, NoQuoteItems, FailedItems, CancelledItems int64
	ChangedItems                                                                      int64
	SkippedItems                                                                      struct{ TTL, NoSales, Budget, Paused, Backoff int64 }
	Usage                                                                             struct{ RequestCount int64 }
	LastError                                                                         *string
}

func (j *job) sum() int64 {
	return j.PendingItems + j.UpdatedItems + j.NoQuoteItems + j.FailedItems + j.CancelledItems +
		j.SkippedItems.TTL + j.SkippedItems.NoSales + j.SkippedItems.Budget + j.SkippedItems.Paused + j.SkippedItems.Backoff
}

// item contains the required fields of an item in a list.
type item struct {
	AppID                 int32
	MarketHashName, Phase string
	State, Status         string
	CurrentPrice          json.Number
	PriceUpdatedAt        time.Time
	RetryAt               time.Time
}

// row contains the required fields of an inventory row.
type row struct {
	AssetID, MarketHashName, Phase string
	EstimatedValue                 *json.Number
}

// TestRule8_RefreshSurvivesKills kills one refresh of 30,000 names on 10 markets two hundred
// times. In short mode it uses 4,000 names and 25 kills, or 8 on PostgreSQL, where each start
// waits for a lease. It kills the server 10 to 90 ms after its start or first response, or
// after some estimated batches. Finally it lets the refresh end. With full counts the test
// does not run in parallel, because it measures the time until work continues.
func TestRule8_RefreshSurvivesKills(t *testing.T) {
	if !randtest.Long() {
		t.Parallel()
	}
	onBoth(t, testKills)
}

func testKills(t *testing.T, on engine) {
	if !randtest.Long() {
		t.Parallel()
	}
	names, kills := 4_000, 25
	if on == onPostgres {
		kills = 8
	}
	if randtest.Long() {
		names, kills = 30_000, 200
	}
	r := randtest.New(t)
	markets, url := simulator(t, sim.Options{Names: names, Frozen: true, Latency: 100 * time.Millisecond})
	s := on.newServer(t, "MARKET_PRICE_PROVIDERS=sim", "SIM_BASE_URL="+url, "MARKET_PRICE_WORKERS=1")
	s.start()
	pushNames(s, markets.Names(), 3)
	s.awaitPriced()

	markets.Advance(2_000) // changes nearly all prices
	before := served(markets)
	id := s.refresh()
	killed, slowest, wasSettled := 0, time.Duration(0), int64(0)
	for ; killed < kills; killed++ {
		if killed > 0 {
			s.spawn()
		}
		// Keep the progress behind the number of kills. Otherwise the run would end before the
		// last kill.
		ahead := wasSettled*int64(kills) >= int64(names)*int64(killed)
		if !ahead {
			began := time.Now()
			s.awaitHealth()
			if r.IntN(2) == 0 {
				wasSettled = awaitProgress(s, id, wasSettled)
				slowest = max(slowest, time.Since(began))
				s.kill()
				continue
			}
		}
		time.Sleep(time.Duration(10+r.IntN(80)) * time.Millisecond)
		s.kill()
	}
	s.start()
	end := s.awaitEnd()
	t.Logf("%d kills, %d items, %d requests; the slowest start made no progress for %v", killed, end.TotalItems, end.Usage.RequestCount, slowest)
	if end.Status.JobID != id || end.Status.State != "finished" {
		t.Errorf("last job: got %s in state %s, want %s finished", end.Status.JobID, end.Status.State, id)
	}
	most := 30 * time.Second // 5 s on an idle machine
	if randtest.Long() {
		most = 5 * time.Second
	}
	if slowest > most {
		t.Errorf("the work continued %v after a start, want at most %v", slowest, most)
	}
	sent := served(markets) - before
	if most := (1 + killed) * sim.DefaultMarkets; sent > most {
		t.Errorf("got %d requests, want at most %d", sent, most)
	}
	// A request is counted before it is sent. A kill in between leaves one extra count for
	// each of the two fetch slots.
	if got := int(end.Usage.RequestCount); got < sent || got > sent+2*killed {
		t.Errorf("got %d counted requests, want the %d that the provider received and at most %d more", got, sent, 2*killed)
	}
	checkJob(t, s, id, int64(names))
	checkRows(t, s, 3)
	checkInvariants(t, s.open())
}

// pushNames gives each user one asset of each name.
func pushNames(s *server, names []string, users int) {
	s.t.Helper()
	for u := range users {
		items := make([]asset, len(names))
		for i, n := range names {
			items[i] = asset{AssetID: fmt.Sprintf("%d-%d", u, i), MarketHashName: n}
		}
		s.push(fmt.Sprintf("user%d", u), 730, items)
	}
}

// served returns the number of requests that a simulator has handled.
func served(h *sim.Handler) int {
	n := 0
	for _, c := range h.Requests() {
		n += c
	}
	return n
}

// awaitProgress waits until a job has estimated more items than before, or has no pending
// items. It returns the number of estimated items.
func awaitProgress(s *server, id string, before int64) int64 {
	s.t.Helper()
	var j job
	s.await("progress after a start", func() bool {
		s.get("/api/market-prices/jobs/"+id, &j)
		return j.TotalItems-j.PendingItems > before || j.Stage == "apply" || j.Stage == "done"
	})
	if got := j.sum(); got != j.TotalItems {
		s.t.Errorf("the counts add up to %d, want %d items", got, j.TotalItems)
	}
	return j.TotalItems - j.PendingItems
}

// checkJob compares a job's counts with its items. Each item must occur once.
func checkJob(t *testing.T, s *server, id string, want int64) {
	t.Helper()
	var j job
	s.get("/api/market-prices/jobs/"+id, &j)
	if j.TotalItems != want || j.sum() != want || j.PendingItems != 0 {
		t.Errorf("job: got %+v, want %d items and none pending", j, want)
	}
	states := map[string]int64{}
	seen := map[string]bool{}
	for _, i := range all[item](s, "/api/market-prices/jobs/"+id+"/items") {
		key := i.MarketHashName + "\x00" + i.Phase
		if seen[key] {
			t.Errorf("the job contains the item %q twice", i.MarketHashName)
		}
		seen[key] = true
		states[i.State]++
	}
	if int64(len(seen)) != want || states["updated"] != j.UpdatedItems || states["noQuote"] != j.NoQuoteItems || states["failed"] != j.FailedItems {
		t.Errorf("got %d items in states %v, want the counts of the job %+v", len(seen), states, j)
	}
}

// checkRows compares the value of every inventory row with the current price of its item.
func checkRows(t *testing.T, s *server, users int) {
	t.Helper()
	prices := map[string]json.Number{}
	for _, i := range all[item](s, "/api/prices/items?appId=730") {
		prices[i.MarketHashName+"\x00"+i.Phase] = i.CurrentPrice
	}
	wrong := 0
	for u := range users {
		for _, r := range all[row](s, fmt.Sprintf("/api/inventory/user%d", u)) {
			price := prices[r.MarketHashName+"\x00"+r.Phase]
			if (r.EstimatedValue == nil) != (price == "0") || (r.EstimatedValue != nil && *r.EstimatedValue != price) {
				wrong++
			}
		}
	}
	if wrong > 0 {
		t.Errorf("got %d rows whose price differs from their item's price, want none", wrong)
	}
}
