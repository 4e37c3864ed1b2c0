package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"assay/internal/app"
)

// hostDebug contains the required fields of a host in provider-debug.
type hostDebug struct {
	Host         string
	Files        []string
	BlockedUntil *time.Time
	LastSuccess  *time.Time
}

// hostsOf returns the hosts of the price lists.
func hostsOf(s *server) map[string]hostDebug {
	s.t.Helper()
	var debug struct{ Providers []struct{ Hosts []hostDebug } }
	s.get("/api/market-prices/provider-debug", &debug)
	out := map[string]hostDebug{}
	for _, provider := range debug.Providers {
		for _, h := range provider.Hosts {
			out[h.Host] = h
		}
	}
	return out
}

// TestHosts_RetryAfterAppliesToOneHost uses three lists on a host that returns 429, one list
// on another host, and one in a file.
func TestHosts_RetryAfterAppliesToOneHost(t *testing.T) {
	onBoth(t, testHosts)
}

func testHosts(t *testing.T, on engine) {
	var requested atomic.Int64
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requested.Add(1)
		w.Header().Set("Retry-After", "60")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer busy.Close()
	list := csvList([]string{"A"}, 500)
	free := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(list) }))
	defer free.Close()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "list.csv"), string(list))
	var lists []string
	for i, location := range []string{busy.URL + "/1", busy.URL + "/2", busy.URL + "/3", free.URL + "/list", filepath.Join(dir, "list.csv")} {
		lists = append(lists, fmt.Sprintf(`{"key":"list%d","location":%q,"format":"csv","appId":730,"currency":"USD","name":"name",
			"markets":[{"key":"market%d","ask":"price"}]}`, i, location, i))
	}
	config := filepath.Join(dir, "lists.json")
	writeFile(t, config, `{"lists":[`+strings.Join(lists, ",")+`]}`)
	s := on.newServer(t, "MARKET_PRICE_PROVIDERS=pricelist", "PRICELIST_CONFIG="+config)
	hostOf := func(url string) string { return strings.TrimPrefix(url, "http://") }

	l := s.within(app.Options{})
	s.push("u", 730, []asset{{AssetID: "1", MarketHashName: "A"}})
	id := s.refresh()
	type market struct {
		Market        string
		LastFetchedAt *time.Time
	}
	var debug struct{ Providers []struct{ Markets []market } }
	var j job
	s.await("the other lists, the retry-after and the plan", func() bool {
		s.get("/api/market-prices/provider-debug", &debug)
		s.get("/api/market-prices/jobs/"+id, &j)
		m := debug.Providers[0].Markets
		return m[3].LastFetchedAt != nil && m[4].LastFetchedAt != nil && hostsOf(s)[hostOf(busy.URL)].BlockedUntil != nil && j.TotalItems == 1
	})
	var dry struct {
		Providers []struct {
			Provider string
			Requests int64
		}
	}
	_, body, err := s.call(http.MethodPost, "/api/market-prices/refresh?dryRun=1&force=1", nil)
	if err != nil || json.Unmarshal(body, &dry) != nil {
		t.Fatalf("dry run: got %s, error %v, want a forecast", body, err)
	}
	if len(dry.Providers) != 1 || dry.Providers[0].Requests != 4 {
		t.Errorf("dry run of 4 lists on hosts and one file: got %+v, want 4 requests", dry.Providers)
	}
	for range 2 { // before and after a restart
		hosts := hostsOf(s)
		if h := hosts[hostOf(busy.URL)]; h.BlockedUntil == nil || len(h.Files) != 3 {
			t.Errorf("busy host: got %+v, want three lists and a retry-after", h)
		}
		if h := hosts[hostOf(free.URL)]; h.BlockedUntil != nil || len(h.Files) != 1 {
			t.Errorf("free host: got %+v, want one list and no retry-after", h)
		}
		if _, err := l.end(); err != nil {
			t.Fatal(err)
		}
		l = s.within(app.Options{})
	}
	if n := requested.Load(); n > 2 {
		t.Errorf("busy host: got %d requests within a minute, want at most 2, one per slot", n)
	}
	s.get("/api/market-prices/jobs/"+id, &j)
	if j.PendingItems != 1 || j.LastError != nil {
		t.Errorf("got job %+v, want a waiting job without an error", j)
	}
	if _, err := l.end(); err != nil {
		t.Error(err)
	}
}
