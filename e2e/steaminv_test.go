package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"assay/internal/catalog"
	"assay/internal/inventory/steaminv/steaminvtest"
)

// TestSteam_KilledPullKeepsOldRows pulls an inventory from a fake Steam. It kills the process
// between the pages of the next pull, then pulls again.
func TestSteam_KilledPullKeepsOldRows(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, on engine) {
		t.Parallel()
		const steamID = "76561198000000001"
		own := func(from, to int) map[string]*steaminvtest.Inventory {
			var items []steaminvtest.Item
			for i := from; i < to; i++ {
				items = append(items, steaminvtest.Item{AssetID: strconv.Itoa(40_000_000_000 + i), ClassID: strconv.Itoa(i), Name: fmt.Sprint("Item ", i)})
			}
			return map[string]*steaminvtest.Inventory{steamID + "/730/2": steaminvtest.New(catalog.CS2, "2", items...)}
		}
		fake := &steaminvtest.Server{Inventories: own(0, 25), PageSize: 10}
		steam := httptest.NewServer(fake)
		t.Cleanup(func() {
			steam.CloseClientConnections()
			steam.Close()
		})
		s := on.newServer(t, "STEAM_BASE_URL="+steam.URL, "STEAM_LIMIT=1000/1m", "STEAM_INVENTORY_PACE=20ms")
		s.start()
		const sync = "/api/inventory/u1/sync?source=steam"
		pull := func(want int, holds string) {
			t.Helper()
			status, body, err := s.call(http.MethodPost, sync, nil)
			if err != nil || status != want || !strings.Contains(string(body), holds) {
				t.Fatalf("sync: got %d %s, %v, want %d with %s", status, body, err, want, holds)
			}
		}
		rows := func() (assets []string) {
			t.Helper()
			var page struct{ Items []row }
			s.get("/api/inventory/u1?limit=1000", &page)
			for _, r := range page.Items {
				assets = append(assets, r.AssetID+" "+r.MarketHashName)
			}
			return assets
		}
		pull(http.StatusNotFound, "user_not_found")
		put := func(body string) {
			t.Helper()
			if status, response, err := s.call(http.MethodPut, "/api/users/u1", strings.NewReader(body)); err != nil || status != http.StatusOK {
				t.Fatalf("put user: got %d %s, %v, want 200", status, response, err)
			}
		}
		put(`{}`)
		pull(http.StatusUnprocessableEntity, "steam_id_missing")
		put(`{"steamId":"` + steamID + `"}`)
		pull(http.StatusOK, `"added":25,`)
		before := rows()
		var debug struct {
			Inventories struct {
				Host              string
				ResponsesByStatus map[string]int64
				Requests          []struct{ Path string }
			}
		}
		s.get("/api/market-prices/provider-debug", &debug)
		if d := &debug.Inventories; d.Host != "steamcommunity.com" || d.ResponsesByStatus["200"] != 3 || len(d.Requests) != 3 || !strings.HasPrefix(d.Requests[0].Path, "/inventory/") {
			t.Errorf("got the request statistics %+v, want three successful requests to steamcommunity.com", debug.Inventories)
		}

		amid, killed := make(chan struct{}), make(chan struct{})
		third := len(fake.Paths()) + 3
		fake.Set(func(f *steaminvtest.Server) {
			f.Inventories = own(10, 40)
			f.Arrived = func(n int, _ *http.Request) {
				if n == third {
					close(amid)
					<-killed
				}
			}
		})
		requested := make(chan struct{})
		go func() {
			defer close(requested)
			_, _, _ = s.call(http.MethodPost, sync, nil) // no server responds
		}()
		<-amid
		s.kill()
		close(killed)
		<-requested
		s.start()
		if now := rows(); strings.Join(now, ",") != strings.Join(before, ",") {
			t.Errorf("rows after the kill: got %v, want %v as before", now, before)
		}
		pull(http.StatusOK, `"added":15,"removed":10,"changed":0,"unchanged":15,`)
		if n := len(rows()); n != 30 {
			t.Errorf("got %d rows, want 30", n)
		}
		refused := len(fake.Paths()) + 2
		fake.Set(func(f *steaminvtest.Server) {
			f.Arrived, f.Script = nil, map[int]steaminvtest.Reply{refused: {Status: http.StatusTooManyRequests, Body: steaminvtest.Null}}
		})
		for range 3 {
			pull(http.StatusServiceUnavailable, "steam_throttled")
		}
		s.kill()
		s.start() // the retry-after survives a restart
		pull(http.StatusServiceUnavailable, "steam_throttled")
		if n := len(fake.Paths()); n != refused {
			t.Errorf("got %d requests, want none after number %d, which was refused", n, refused)
		}
		if n := len(rows()); n != 30 {
			t.Errorf("after the throttling: got %d rows, want 30", n)
		}
	})
}
