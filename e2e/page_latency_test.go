package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"assay/internal/provider/sim"
	"assay/internal/randtest"
)

const (
	pageItems = 35_000
	pageUsers = 350 // with 300 assets each
)

// TestPages_AnswerQuicklyDuringRuns requests each page of the navigation in turn, signed in, 5
// times per second. The database has 35,000 items on 10 markets, and a forced run is always in
// progress. Latency is measured from the scheduled time of each request. The limit is wide because
// the machine is shared, so the test detects only stalls. With ASSAY_LONG, the test sends 20 requests
// per second, and the limit is 100 ms at p95 for each page. With -v the test prints the figures.
func TestPages_AnswerQuicklyDuringRuns(t *testing.T) {
	onBoth(t, testPageLatency)
}

func testPageLatency(t *testing.T, on engine) {
	bound, pace := 2*time.Second, 200*time.Millisecond
	if randtest.Long() {
		bound, pace = 100*time.Millisecond, 50*time.Millisecond
	}
	markets, simURL := simulator(t, sim.Options{Names: pageItems, Markets: 10, Frozen: true})
	s := on.newServer(t, "MARKET_PRICE_PROVIDERS=sim", "SIM_BASE_URL="+simURL, "LOG_LEVEL=warn")
	s.start()
	names := markets.Names()
	trade := fillPages(s, names)
	run := s.refresh()
	s.awaitEnd()

	runs := keepRunning(s, markets)
	pages := visitedPages(names[0], run, trade)
	browser := s.browser(s.secret("ADMIN_API_TOKEN"))
	browser.Transport = &http.Transport{MaxIdleConnsPerHost: 16}
	t.Cleanup(browser.CloseIdleConnections)
	for name, path := range pages { // the first requests load prices into memory
		if err := openPage(t.Context(), browser, "http://"+s.addr+path); err != nil {
			t.Errorf("first request for page %s: got %v, want status 200", name, err)
		}
	}
	began := time.Now()
	took := measurePages(s, browser, pages, pace, randtest.Count(2, 40))
	lasted := time.Since(began)
	ended := runs()
	t.Logf("%d pages in %v, during %d runs", len(took), lasted.Round(time.Millisecond), ended)
	t.Logf("%-28s %9s %9s %9s", "page", "p50", "p95", "slowest")
	for _, page := range slices.Sorted(maps.Keys(took)) {
		p50, p95, slowest := took[page].quantile(50), took[page].quantile(95), took[page].quantile(100)
		t.Logf("%-28s %9v %9v %9v", page, p50, p95, slowest)
		if p95 > bound {
			t.Errorf("page %s, p95: got %v, want at most %v", page, p95, bound)
		}
	}
}

// fillPages pushes inventories with all names and adds rows to the other pages. It returns the ID
// of a trade.
func fillPages(s *server, names []string) (trade string) {
	s.t.Helper()
	for u := range pageUsers {
		items := make([]asset, 3*len(names)/pageUsers)
		for i := range items {
			items[i] = asset{AssetID: strconv.Itoa(i), MarketHashName: names[(u*len(items)+i)%len(names)]}
		}
		s.push(fmt.Sprintf("user%d", u), 730, items)
	}
	s.awaitPriced()
	s.push("collector", 730, []asset{{AssetID: "1", MarketHashName: "Item without a market"}})
	const listings, bought = 100, 50
	s.deposit("buyer", 1_000_000)
	for i, id := range s.list("seller", listings, 100) {
		if i >= bought {
			break
		}
		trade = s.bought(id, "buyer").ID
		if i%2 == 0 {
			s.moveTrade(trade, "complete", http.StatusOK)
		}
	}
	for path, body := range map[string]string{
		"/api/webhooks":  `{"url":"https://hooks.example.com/assay","events":["job.failed"]}`,
		"/api/keys":      `{"name":"shop","scopes":["prices:read"]}`,
		"/api/operators": `{"name":"anna","role":"read","password":"a-password-of-anna"}`,
	} {
		if status, response, err := s.call(http.MethodPost, path, strings.NewReader(body)); err != nil || status != http.StatusCreated {
			s.t.Fatalf("POST %s: got %d %s, %v, want 201", path, status, response, err)
		}
	}
	return trade
}

// visitedPages returns the pages of the navigation, lists with filters and searches, and one page
// of each kind of row, by name.
func visitedPages(item, run, trade string) map[string]string {
	pages := map[string]string{
		"overview": "/", "part live": "/live", "part health": "/health", "api": "/docs", "search": "/search?q=redline",
		"items by market and price": "/items?market=sim-fjord&minPrice=1&sort=-price", "items by words": "/items?q=ak+redline", "items stale": "/items?status=stale",
		"items by move": "/items?sort=-dayChange", "item": "/item?app=730&name=" + url.QueryEscape(item), "item, all time": "/item?app=730&range=all&name=" + url.QueryEscape(item),
		"run": "/runs/" + run, "run, failed": "/runs/" + run + "?state=failed", "run, words": "/runs/" + run + "?q=redline", "provider": "/providers/sim", "provider, 7 days": "/providers/sim?period=7d", "user": "/users/user0", "trade": "/trades/" + trade,
		"ledger, holds": "/ledger?of=holds", "ledger of a user": "/ledger?user=buyer", "fees with a quote": "/fees?kind=sale&amount=12.50&currency=USD",
		"webhook": "/webhooks/1", "password": "/password", "dry run": "/dry-run", "dry run, forced": "/dry-run?force=1",
	}
	for _, name := range []string{
		"items", "held", "missing", "runs", "providers", "users", "listings", "trades", "sellers", "ledger", "fees", "events", "webhooks", "keys", "operators",
		"audit", "settings",
	} {
		pages[name] = "/" + name
	}
	return pages
}

// keepRunning starts a forced run with new prices as soon as the last one has ended. The returned
// function stops this, and returns the number of started runs.
func keepRunning(s *server, markets *sim.Handler) (stop func() int) {
	ctx, cancel := context.WithCancel(s.t.Context())
	started := 0
	var group sync.WaitGroup
	group.Go(func() {
		for ctx.Err() == nil {
			markets.Advance(100)
			if _, err := s.tryRefresh(); err != nil {
				s.t.Errorf("start run %d: got error %v, want none", started+1, err)
				return
			}
			started++
			var st status
			for err := error(nil); err == nil && (st.Status.Running || st.Status.JobID == "") && ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
				err = s.tryGet("/api/market-prices/status", &st)
			}
		}
	})
	s.t.Cleanup(func() { cancel(); group.Wait() })
	return func() int {
		cancel()
		group.Wait()
		return started
	}
}

// measurePages requests each page the given number of times. The requests follow a fixed
// schedule, which a slow response does not delay.
func measurePages(s *server, browser *http.Client, pages map[string]string, pace time.Duration, times int) map[string]latencies {
	s.t.Helper()
	took := map[string]latencies{}
	var mu sync.Mutex
	var group sync.WaitGroup
	start, n := time.Now(), 0
	for range times {
		for _, name := range slices.Sorted(maps.Keys(pages)) {
			due := start.Add(time.Duration(n) * pace)
			n++
			<-time.After(time.Until(due))
			group.Go(func() {
				err := openPage(s.t.Context(), browser, "http://"+s.addr+pages[name])
				mu.Lock()
				defer mu.Unlock()
				took[name] = append(took[name], time.Since(due))
				if err != nil {
					s.t.Errorf("page %s: got %v, want status 200", name, err)
				}
			})
		}
	}
	group.Wait()
	return took
}

// openPage requests a page and reads the response. It returns an error unless the status is 200.
func openPage(ctx context.Context, browser *http.Client, address string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	resp, err := browser.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	return nil
}
