// Package providertest holds the tests common to all providers: a local server that simulates
// faults, and a suite of rules for every provider.
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

// Server is a local provider server. It serves each request with the next queued fault. If the
// queue is empty, it serves the default fault, if one is set, or the good response. It records
// all requests and their times. Its methods may be called concurrently.
type Server struct {
	http *httptest.Server
	good http.Handler

	mu           sync.Mutex
	queue        []Fault
	defaultFault *Fault
	hits         []Hit
	arrived      chan struct{} // closed and replaced at each request
}

// Hit is one request that the server received.
type Hit struct {
	Time   time.Time // includes a monotonic clock reading
	Method string
	Path   string // path and query as received
	Header http.Header
	Fault  string // name of the fault; empty: the good response
}

// NewServer starts a server that responds with good. The server stops at the end of the test.
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

// Host returns the server's host:port, for provider.Options.AllowHosts.
func (s *Server) Host() string { return strings.TrimPrefix(s.http.URL, "http://") }

// Next queues faults. Each fault is used for one request.
func (s *Server) Next(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, faults...)
}

// Always sets the fault for requests when the queue is empty.
func (s *Server) Always(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.defaultFault = &f
}

// Reset clears the queue, the default fault and the recorded requests.
func (s *Server) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue, s.defaultFault, s.hits = nil, nil, nil
}

// Hits returns the requests since the last Reset, oldest first.
func (s *Server) Hits() []Hit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.hits)
}

// Wait returns after n requests have arrived since the last Reset. It returns the context's
// error if the context ends first.
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

// note records a request and returns the fault for it, or nil.
func (s *Server) note(r *http.Request) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	hit := Hit{Time: time.Now(), Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone()}
	f := s.defaultFault
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

// Refused returns a base URL whose port has no listener.
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
