package steamtest_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"assay/internal/provider/steam/steamtest"
)

func get(s *steamtest.Server, path string) (status int, body string) {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Code, w.Body.String()
}

func TestServer_RequestsDuringABlockProlongIt(t *testing.T) {
	now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	s := &steamtest.Server{Calls: 2, Now: func() time.Time { return now }}
	const path = "/market/priceoverview/?appid=730&currency=1&market_hash_name=A"
	for range 2 {
		if status, body := get(s, path); status != 200 || body != `{"success":true}` {
			t.Errorf("got %d %s, want 200 {\"success\":true}", status, body)
		}
	}
	for _, minutes := range []int{10, 20, 40, 60, 60} {
		if status, body := get(s, path); status != 429 || body != "null" {
			t.Errorf("got %d %s, want 429 null", status, body)
		}
		if got := s.Blocked(now); got != time.Duration(minutes)*time.Minute {
			t.Errorf("got block of %v, want %d minutes", got, minutes)
		}
		now = now.Add(time.Second)
	}
	now = now.Add(time.Hour)
	if status, _ := get(s, path); status != 200 {
		t.Errorf("after the block: got status %d, want 200", status)
	}
}

func TestServer_SearchReturnsTenRowsPerPage(t *testing.T) {
	s := &steamtest.Server{}
	for i := range 23 {
		s.Items = append(s.Items, steamtest.Item{AppID: 570, Name: "Item " + strconv.Itoa(i), Lowest: 3})
	}
	for start, want := range map[string]int{"0": 10, "10": 10, "20": 3, "30": 0} {
		_, body := get(s, "/market/search/render/?norender=1&appid=570&count=100&start="+start)
		if got := strings.Count(body, `"hash_name"`); got != want || !strings.Contains(body, `"total_count":23`) {
			t.Errorf("start %s: got %d rows, want %d of 23", start, got, want)
		}
	}
	s.Empty = true
	if status, body := get(s, "/market/search/render/?norender=1&appid=570&start=10"); status != 200 || !strings.Contains(body, `"total_count":0`) {
		t.Errorf("throttled: got %d %s, want 200 without results", status, body)
	}
}

func TestServer_RejectsUnsupportedRequests(t *testing.T) {
	for path, want := range map[string]string{
		"/market/itemordershistogram?item_nameid=1":                 `{"success":104}`,
		"/market/pricehistory/?appid=730&market_hash_name=A":        `[]`,
		"/market/listings/730/A/render":                             steamtest.Page,
		"/market/priceoverview/?appid=1&market_hash_name=A":         `null`,
		"/market/orderbook?q=Load&qp=%5B730%2C%22A%22%5D":           steamtest.Page, // the request header is missing
		"/market/priceoverview/?appid=730&market_hash_name=A&c=1":   `{"success":true}`,
		"/market/search/render/?appid=730&start=0&norender=0":       steamtest.Page,
		"/market/priceoverview/?appid=730&market_hash_name=&curr=1": `null`,
	} {
		if _, body := get(&steamtest.Server{}, path); body != want {
			t.Errorf("%s: got body %s, want %s", path, body, want)
		}
	}
}
