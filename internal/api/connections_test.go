package api

import (
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
)

// TestConnections_TheOneThatWaitsLongestMakesRoom fills all places with half-sent
// requests: one that is being answered stays, and new clients are served.
func TestConnections_TheOneThatWaitsLongestMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := prepare(t, nil)
		began := make(chan struct{})
		h.api.Jobs = slow{h.api.Jobs, began}
		listener := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
		server := NewServer(h.api, h.api.Logger)
		limit := LimitConnections(server, listener, 5).(*connections)
		served := make(chan error, 1)
		go func() { served <- server.Serve(limit) }()
		defer func() { _ = server.Close(); <-served }()
		dial := func() net.Conn {
			ours, theirs := net.Pipe()
			listener.conns <- theirs
			t.Cleanup(func() { _ = ours.Close() })
			return ours
		}
		const status = "GET /api/market-prices/status HTTP/1.1\r\nHost: x\r\nX-Market-Sync-Secret: " + marketSecret + "\r\n\r\n"
		busy := dial()
		write(t, busy, status)
		<-began
		var half []net.Conn
		for range 50 {
			c := dial()
			write(t, c, "GET /api/health HTTP/1.1\r\nHost: x\r\nX-Pad")
			half = append(half, c)
		}
		for range 3 {
			c := dial()
			write(t, c, "GET /docs HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
			if got, _ := read(t, c); got != http.StatusOK {
				t.Errorf("a whole request: %d", got)
			}
		}
		synctest.Wait()
		if limit.open > 5 {
			t.Errorf("%d connections are open, want at most 5", limit.open)
		}
		if _, err := half[0].Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("the first half-sent request: %v, want it closed", err)
		}
		for range 4 { // with which all places are taken by requests
			c := dial()
			go func() { _, _ = io.WriteString(c, status) }()
			<-began
		}
		refused := dial()
		if _, err := refused.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("beyond the limit: %v, want it closed", err)
		}
	})
}

func TestServe_SaysThatTLSIsToStay(t *testing.T) {
	h := startCounting(t) // which trusts a proxy on loopback
	for proto, want := range map[string]string{"https": "max-age=31536000", "http": "", "": ""} {
		for _, path := range []string{"/api/health", "/"} {
			if got := h.ask("GET", path, "", header("X-Forwarded-Proto: "+proto)).Header.Get("Strict-Transport-Security"); got != want {
				t.Errorf("%s by %q: %q, want %q", path, proto, got, want)
			}
		}
	}
	if got := start(t, nil).ask("GET", "/", "", "X-Forwarded-Proto: https").Header.Get("Strict-Transport-Security"); got != "" {
		t.Errorf("by a proxy that is not trusted: %q", got)
	}
}

// TestMetrics_AreForLocalHostsOnly guards against names of strangers that lead here:
// a browser on this machine would read the figures for their page.
func TestMetrics_AreForLocalHostsOnly(t *testing.T) {
	h := start(t, func(d *Deps) { d.Host = "assay.internal" })
	for host, want := range map[string]int{
		"localhost": 200, "LOCALHOST:8080": 200, "127.0.0.1": 200, "127.1.2.3:99": 200, "[::1]:8080": 200, "[::1]": 200, "assay.internal:8080": 200,
		"evil.example": 401, "evil.example:8080": 401, "127.0.0.1.evil.example": 401, "localhost.evil.example": 401, "10.0.0.1": 401,
	} {
		r, err := http.NewRequest(http.MethodGet, h.url+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		if got := h.send(r); got.StatusCode != want {
			t.Errorf("%s: %d, want %d", host, got.StatusCode, want)
		}
		r.Header.Set("Authorization", "Bearer "+adminToken)
		if got := h.send(r); got.StatusCode != http.StatusOK {
			t.Errorf("%s with the admin token: %d", host, got.StatusCode)
		}
	}
}
