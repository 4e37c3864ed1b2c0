package web

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"assay/internal/provider"
)

// sampleClients are the clients of the sample providers. They send requests to a local
// server.
type sampleClients struct {
	clock      *clock
	server     *httptest.Server
	byProvider map[string]provider.Clients
}

func newSampleClients(t *testing.T, c *clock) sampleClients {
	t.Helper()
	s := sampleClients{clock: c, byProvider: map[string]provider.Clients{}}
	s.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "fail") {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write(make([]byte, 48_211))
	}))
	t.Cleanup(s.server.Close)
	for _, name := range []string{"sim", "pricelist", "waxpeer", "cs2cap"} {
		client := provider.NewClient(provider.Options{
			Provider: name, AllowHosts: []string{s.server.Listener.Addr().String()}, Attempts: 1, Now: c.Now,
		})
		t.Cleanup(client.Close)
		s.byProvider[name] = provider.Clients{"": client}
	}
	return s
}

// request sends requests to all providers except cs2cap. The failures open the circuit breaker of
// waxpeer.
func (s *sampleClients) request(t *testing.T) {
	t.Helper()
	now := s.clock.Now()
	s.clock.add(-26 * time.Minute)
	for i := range 50 {
		path := fmt.Sprintf("/v1/markets/aurum/batch/%d?key=secret", i)
		if i == 46 {
			path = "/v1/fail"
		}
		s.send(t, "sim", path)
	}
	for _, path := range []string{"/skinport.csv", "/spare.csv", "/skinport.csv", "/prices-fail.csv"} {
		s.send(t, "pricelist", path)
	}
	for range 5 {
		s.send(t, "waxpeer", "/fail")
	}
	s.clock.set(now)
}

func (s *sampleClients) send(t *testing.T, name, path string) {
	t.Helper()
	err := s.byProvider[name][""].Do(t.Context(), provider.Request{URL: s.server.URL + path}, func(r *provider.Response) error {
		_, err := io.Copy(io.Discard, r.Body)
		return err
	})
	if (err != nil) != strings.Contains(path, "fail") {
		t.Fatalf("%s: got error %v, want one only for /fail", path, err)
	}
}
