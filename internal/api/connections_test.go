package api

import (
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
)

// TestConnections_ReplaceTheLongestIdleOne opens many connections with incomplete
// requests. A connection with a request in progress stays open, and new clients are served.
func TestConnections_ReplaceTheLongestIdleOne(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, h *harness) {
		began := h.addWaitingRoute()
		listener := newPipeListener()
		server := NewServer(h.api, h.api.Logger)
		limit := LimitConnections(server, listener, 5).(*connections)
		served := make(chan error, 1)
		go func() { served <- server.Serve(limit) }()
		defer func() { _ = server.Close(); <-served }()
		dial := func() net.Conn { return listener.dial(t) }
		const status = "GET " + waitingPath + " HTTP/1.1\r\nHost: x\r\nX-Market-Sync-Secret: " + marketSecret + "\r\n\r\n"
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
				t.Errorf("complete request: got status %d, want 200", got)
			}
		}
		synctest.Wait()
		if limit.open > 5 {
			t.Errorf("got %d open connections, want at most 5", limit.open)
		}
		if _, err := half[0].Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("first incomplete request: got %v, want EOF", err)
		}
		for range 4 { // now all five connections have a request in progress
			c := dial()
			go func() { _, _ = io.WriteString(c, status) }()
			<-began
		}
		refused := dial()
		if _, err := refused.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("connection above the limit: got %v, want EOF", err)
		}
	})
}

func TestServe_SendsHSTSOverTLS(t *testing.T) {
	h := startServer(t, trustLoopback)
	for proto, want := range map[string]string{"https": "max-age=31536000", "http": "", "": ""} {
		for _, path := range []string{"/api/health", "/"} {
			if got := h.request("GET", path, "", header("X-Forwarded-Proto: "+proto)).Header.Get("Strict-Transport-Security"); got != want {
				t.Errorf("%s over %q: got %q, want %q", path, proto, got, want)
			}
		}
	}
	if got := startServer(t, nil).request("GET", "/", "", "X-Forwarded-Proto: https").Header.Get("Strict-Transport-Security"); got != "" {
		t.Errorf("through an untrusted proxy: got %q, want no header", got)
	}
}

// TestMetrics_RequireALocalHostName covers DNS rebinding. A foreign host name can resolve
// to this machine, and a local browser would then send the metrics to a foreign web page.
func TestMetrics_RequireALocalHostName(t *testing.T) {
	h := startServer(t, func(d *Deps) { d.Host = "assay.internal" })
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
			t.Errorf("host %s: got status %d, want %d", host, got.StatusCode, want)
		}
		r.Header.Set("Authorization", "Bearer "+adminToken)
		if got := h.send(r); got.StatusCode != http.StatusOK {
			t.Errorf("%s with the admin token: got %d, want 200", host, got.StatusCode)
		}
	}
}
