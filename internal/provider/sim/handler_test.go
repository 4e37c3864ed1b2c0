package sim

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay/internal/provider"
)

func TestHandler_RejectsBadRequests(t *testing.T) {
	h, err := NewHandler(Options{Names: 10})
	if err != nil {
		t.Fatal(err)
	}
	tooMany := `{"names":["a"` + strings.Repeat(`,"a"`, BatchSize) + `]}`
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{"GET", "/v1/markets/nope/prices.json", "", 404},
		{"GET", "/nope", "", 404},
		{"POST", "/v1/prices", "", 405},
		{"GET", "/v1/prices", "", 400},
		{"GET", "/v1/prices?name=a&name=b", "", 400},
		{"POST", "/v1/prices/batch", "", 400},
		{"POST", "/v1/prices/batch", `{"names":[]}`, 400},
		{"POST", "/v1/prices/batch", `{"names":[1]}`, 400},
		{"POST", "/v1/prices/batch", `{"names":"a"}`, 400},
		{"POST", "/v1/prices/batch", `{"names":["a"]}{}`, 400},
		{"POST", "/v1/prices/batch", tooMany, 400},
		{"POST", "/v1/prices/batch", `{"names":["` + strings.Repeat("a", maxBatchBody) + `"]}`, 400},
		{"POST", "/v1/prices/batch", `{"names":["a"]}`, 200},
	} {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest(c.method, c.path, strings.NewReader(c.body)))
		if rec.Code != c.status {
			t.Errorf("%s %s %.40s: got status %d, want %d", c.method, c.path, c.body, rec.Code, c.status)
		}
	}
}

// get sends a request with the header fields and returns the body and header of the response.
func get(h http.Handler, path string, fields ...string) (string, http.Header) {
	req := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i+1 < len(fields); i += 2 {
		req.Header.Set(fields[i], fields[i+1])
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, req)
	return rec.Body.String(), rec.Header()
}

func TestHandler_FrozenPricesChangeOnlyWithAdvance(t *testing.T) {
	now := time.Unix(1_790_000_000, 0)
	h, err := NewHandler(Options{Names: 500, Frozen: true, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	const path = "/v1/markets/sim-fjord/prices.json"
	first, _ := get(h, path)
	now = now.Add(48 * time.Hour)
	if second, _ := get(h, path); second != first {
		t.Error("frozen prices after two days: got other prices, want the same")
	}
	h.Advance(TicksPerWeek)
	if third, _ := get(h, path); third == first {
		t.Error("prices after a week: got the same prices, want others")
	}
	h.Advance(-TicksPerWeek)
	if fourth, _ := get(h, path); fourth != first {
		t.Error("prices after the return to the first tick: got other prices, want the first ones")
	}
}

func TestHandler_PricesChangeOnlyBetweenTicks(t *testing.T) {
	now := time.Unix(1_790_000_100, 0).Truncate(Interval)
	h, err := NewHandler(Options{Names: 3_000, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	const path = "/v1/markets/sim-fjord/prices.json"
	first, _ := get(h, path)
	now = now.Add(Interval - time.Second)
	if second, _ := get(h, path); second != first {
		t.Error("prices within a tick: got other prices, want the same")
	}
	now = now.Add(time.Second)
	if third, _ := get(h, path); third == first {
		t.Error("prices in the next tick: got the same prices, want others")
	}
}

func TestHandler_CompressesOnlyOnRequest(t *testing.T) {
	h, err := NewHandler(Options{Names: 2_000, Frozen: true})
	if err != nil {
		t.Fatal(err)
	}
	const path = "/v1/markets/sim-amber/prices.json"
	plain, header := get(h, path)
	if header.Get("Content-Encoding") != "" {
		t.Errorf("got Content-Encoding %q, want none", header.Get("Content-Encoding"))
	}
	for range 2 { // the second request reuses the compressor of the first
		compressed, header := get(h, path, "Accept-Encoding", "br, gzip;q=0.5")
		if header.Get("Content-Encoding") != "gzip" || len(compressed) >= len(plain)/2 {
			t.Errorf("got Content-Encoding %q with %d bytes, want gzip with at most half of %d", header.Get("Content-Encoding"), len(compressed), len(plain))
		}
		if got := gunzip(t, compressed); got != plain {
			t.Errorf("decompressed response: got %d bytes, want the %d bytes of the plain one", len(got), len(plain))
		}
	}
}

func TestHandler_LimitsAndLogsRequests(t *testing.T) {
	now := time.Unix(1_790_000_000, 0)
	h, err := NewHandler(Options{Names: 10, Limit: provider.Limit{Requests: 2, Per: time.Minute}, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"", "", "60", "60"} {
		if _, header := get(h, "/v1/prices?name=a"); header.Get("Retry-After") != want {
			t.Errorf("request %d: got Retry-After %q, want %q", i, header.Get("Retry-After"), want)
		}
	}
	now = now.Add(time.Minute)
	if _, header := get(h, "/v1/markets/sim-amber/prices.json"); header.Get("Retry-After") != "" {
		t.Errorf("request after the period of the limit: got Retry-After %q, want none", header.Get("Retry-After"))
	}
	want := map[string]int{"GET /v1/prices": 4, "GET /v1/markets/sim-amber/prices.json": 1}
	if diff := cmp.Diff(want, h.Requests()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	hits := h.Recent()
	if len(hits) != 5 || !hits[3].Refused || hits[4].Refused || hits[0].Path != "/v1/prices?name=a" {
		t.Errorf("got the log %+v, want 5 requests, the fourth refused", hits)
	}
}

func TestHandler_AddsNamesBeyondTheCatalog(t *testing.T) {
	names := NewCatalog().Len() + 300
	h, p := serve(t, Options{Names: names, Markets: 12, Frozen: true})
	all := h.Names()
	if len(all) != names {
		t.Fatalf("got %d names, want %d", len(all), names)
	}
	sink, _ := fetch(t, p(provider.Batch), provider.Call{Names: all[names-300:]})
	got := map[string]bool{}
	for _, q := range sink.Quotes {
		got[q.Name] = true
		if !slices.Contains(all[names-300:], q.Name) {
			t.Fatalf("got a quote of %q, want only quotes of requested names", q.Name)
		}
	}
	if len(got) != 300 {
		t.Errorf("got quotes of %d names, want 300", len(got))
	}
}

func TestServer_StopsAfterClose(t *testing.T) {
	h, err := NewHandler(Options{Names: 10})
	if err != nil {
		t.Fatal(err)
	}
	s, err := Start(t.Context(), "127.0.0.1:0", h)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), strings.TrimPrefix(s.URL(), "http://"), h); err == nil {
		t.Error("second server on the same address: got no error, want one")
	}
	if err := s.Close(); err != nil {
		t.Errorf("got error %v, want none", err)
	}
	if _, err := http.Get(s.URL() + "/v1/prices?name=a"); err == nil {
		t.Error("request after Close: got no error, want one")
	}
}

func gunzip(t testing.TB, compressed string) string {
	t.Helper()
	z, err := gzip.NewReader(strings.NewReader(compressed))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(plain)
}
