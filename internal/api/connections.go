package api

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"sync"
)

// LimitConnections bounds how many clients a server is connected with at once, and
// returns the listener to serve on. When all places are taken, a new client takes the
// place of the connection that has waited longest without a complete request. A
// connection with a request in progress is never closed. If all have one, the new
// connection is closed.
func LimitConnections(server *http.Server, l net.Listener, most int) net.Listener {
	limit := &connections{Listener: l, most: most, waiting: list.New()}
	handler := server.Handler
	server.ConnContext = func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) }
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connKey{}).(*connection); ok {
			limit.busy(c)
			defer limit.idle(c)
		}
		handler.ServeHTTP(w, r)
	})
	return limit
}

// connKey is the key of a request's connection in its context.
type connKey struct{}

// connections is a listener with so many connections at most.
type connections struct {
	net.Listener
	most int

	mu      sync.Mutex
	open    int
	waiting *list.List // of *connection: those without a request, the longest first
}

// connection is one of a limited number.
type connection struct {
	net.Conn
	limit  *connections
	closed bool
	place  *list.Element // in waiting; nil: a request is in progress
}

// Accept implements net.Listener.
func (l *connections) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c, oldest := l.admit(conn)
		switch {
		case c == nil:
			_ = conn.Close()
			continue
		case oldest != nil:
			_ = oldest.Close()
		}
		return c, nil
	}
}

// admit adds a connection, nil if there is no place for it. The oldest is to be closed
// for it.
func (l *connections) admit(conn net.Conn) (c, oldest *connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open >= l.most {
		front := l.waiting.Front()
		if front == nil {
			return nil, nil
		}
		oldest = front.Value.(*connection)
		l.remove(oldest)
	}
	c = &connection{Conn: conn, limit: l}
	c.place = l.waiting.PushBack(c)
	l.open++
	return c, oldest
}

// remove needs the lock.
func (l *connections) remove(c *connection) {
	if c.closed {
		return
	}
	c.closed = true
	l.open--
	if c.place != nil {
		l.waiting.Remove(c.place)
		c.place = nil
	}
}

func (l *connections) busy(c *connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.place != nil {
		l.waiting.Remove(c.place)
		c.place = nil
	}
}

func (l *connections) idle(c *connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !c.closed {
		c.place = l.waiting.PushBack(c)
	}
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.limit.mu.Lock()
	c.limit.remove(c)
	c.limit.mu.Unlock()
	return c.Conn.Close()
}
