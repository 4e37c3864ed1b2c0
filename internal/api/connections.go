package api

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"sync"
)

// LimitConnections limits the number of open connections of a server. It changes the
// server and returns the listener to serve on. At the limit, a new connection replaces the
// connection that has been idle longest. A connection is idle while no request of it is
// being handled. If no connection is idle, the new connection is closed.
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

// connKey is the context key of a request's connection.
type connKey struct{}

// connections is a listener that limits the number of open connections.
type connections struct {
	net.Listener
	most int

	mu      sync.Mutex
	open    int
	waiting *list.List // idle connections (*connection), the longest idle first
}

// connection is a connection that counts towards the limit.
type connection struct {
	net.Conn
	limit  *connections
	closed bool
	place  *list.Element // element of waiting; nil while a request is being handled
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

// admit adds a connection and returns it, or nil if the limit is reached and no connection
// is idle. The caller must close oldest unless it is nil.
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

// remove removes a connection from the limit. The caller must hold mu.
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
