package api

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"assay/internal/admission"
)

// inBubble runs test in a synctest bubble, with a server that does not listen. Delays
// therefore take no real time. The parameter change may be nil.
func inBubble(t *testing.T, change func(*Deps), test func(t *testing.T, h *harness)) {
	t.Helper()
	sampleData(t) // created outside the bubble, with the real clock
	synctest.Test(t, func(t *testing.T) { test(t, newHarness(t, change)) })
}

// pipeListener is a listener with in-memory connections. Their deadlines use the fake clock
// of a synctest bubble.
type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
}

// dial returns the client's end of a new connection.
func (p *pipeListener) dial(t *testing.T) net.Conn {
	ours, theirs := net.Pipe()
	p.conns <- theirs
	t.Cleanup(func() { _ = ours.Close() })
	return ours
}

// Accept implements net.Listener.
func (p *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *pipeListener) Close() error { close(p.done); return nil }

// Addr implements net.Listener.
func (p *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// serveOnPipes runs test in a synctest bubble. The function dial connects to a server.
func serveOnPipes(t *testing.T, test func(t *testing.T, h *harness, dial func() net.Conn)) {
	t.Helper()
	inBubble(t, nil, func(t *testing.T, h *harness) {
		listener := newPipeListener()
		server := NewServer(h.api, h.api.Logger)
		served := make(chan error, 1)
		go func() { served <- server.Serve(listener) }()
		defer func() {
			_ = server.Close()
			<-served
		}()
		test(t, h, func() net.Conn { return listener.dial(t) })
	})
}

// addRoute adds a GET route for tests, with access for the role Market.
func (h *harness) addRoute(path string, serve handler) {
	h.api.routes = newRouteTable(append(h.api.operations(), operation{method: http.MethodGet, path: path, access: []string{Market}, serve: serve}))
}

const waitingPath = "/api/market-prices/wait"

// addWaitingRoute adds a route whose requests last until their context ends. It returns a
// channel that receives a value for each request.
func (h *harness) addWaitingRoute() (began chan struct{}) {
	began = make(chan struct{})
	h.addRoute(waitingPath, func(c *call) (any, error) {
		began <- struct{}{}
		<-c.Context().Done()
		return nil, c.Context().Err()
	})
	return began
}

func isFree(t *testing.T, g *admission.Gate) bool {
	t.Helper()
	leave, err := g.Enter(t.Context(), admission.Search)
	if err != nil {
		return false
	}
	leave()
	return true
}

// hookedRecorder calls its function before when the response begins.
type hookedRecorder struct {
	*httptest.ResponseRecorder
	before func()
}

// WriteHeader implements http.ResponseWriter.
func (s hookedRecorder) WriteHeader(status int) {
	s.before()
	s.ResponseRecorder.WriteHeader(status)
}
