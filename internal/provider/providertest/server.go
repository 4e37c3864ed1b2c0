// Package providertest holds the tests common to all providers: a server on loopback that
// misbehaves on demand, and a suite of rules that each provider must keep.
package providertest

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Server is a provider on loopback. It serves each request with the next fault of its
// queue, else with its standing fault, else with the good response. It records what arrived
// and when, independently of the client. Its methods may be used concurrently.
type Server struct {
	http *httptest.Server
	good http.Handler

	mu       sync.Mutex
	queue    []Fault
	standing *Fault
	hits     []Hit
	arrived  chan struct{} // closed and replaced at each hit
}

// Hit is one request that arrived.
type Hit struct {
	Time   time.Time // with its monotonic reading
	Method string
	Path   string // path and query as sent
	Header http.Header
	Fault  string // name of its fault; empty: the good response
}

// NewServer starts a server that responds with good. It ends with the test.
func NewServer(t testing.TB, good http.Handler) *Server {
	t.Helper()
	s := &Server{good: good, arrived: make(chan struct{})}
	s.http = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.http.Config.ErrorLog = nil
	s.http.Start()
	t.Cleanup(s.Close)
	return s
}

// Close stops the server and the requests in progress. It is idempotent.
func (s *Server) Close() {
	s.http.CloseClientConnections()
	s.http.Close()
}

// URL returns the server's base URL, without a trailing slash.
func (s *Server) URL() string { return s.http.URL }

// Host returns the server's address, host:port; a client must allow it.
func (s *Server) Host() string { return strings.TrimPrefix(s.http.URL, "http://") }

// Next queues faults, one per request.
func (s *Server) Next(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, faults...)
}

// Always serves f from now on whenever the queue is empty.
func (s *Server) Always(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.standing = &f
}

// Reset clears the queue, the standing fault and the record.
func (s *Server) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue, s.standing, s.hits = nil, nil, nil
}

// Hits returns the requests since the last Reset, oldest first.
func (s *Server) Hits() []Hit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.hits)
}

// Wait returns when n requests have arrived since the last Reset, or with the context's
// error.
func (s *Server) Wait(ctx context.Context, n int) error {
	for {
		s.mu.Lock()
		arrived, enough := s.arrived, len(s.hits) >= n
		s.mu.Unlock()
		if enough {
			return nil
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if f := s.note(r); f != nil {
		f.serve(w, r, s.good)
		return
	}
	s.good.ServeHTTP(w, r)
}

// note records a request and returns its fault, if any.
func (s *Server) note(r *http.Request) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	hit := Hit{Time: time.Now(), Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone()}
	f := s.standing
	if len(s.queue) > 0 {
		f = &s.queue[0]
		s.queue = s.queue[1:]
	}
	if f != nil {
		hit.Fault = f.Name
	}
	s.hits = append(s.hits, hit)
	close(s.arrived)
	s.arrived = make(chan struct{})
	return f
}

// Refused returns the base URL of a port without a listener.
func Refused(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("find a free port: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatalf("free a port: %v", err)
	}
	return "http://" + l.Addr().String()
}
