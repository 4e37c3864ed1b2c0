package sim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Server is a running HTTP server. Call Close to stop it.
type Server struct {
	http *http.Server
	url  string
	done chan error
}

// Start serves h at addr ("127.0.0.1:0" for any free port of loopback) until
// Close, or until ctx ends.
func Start(ctx context.Context, addr string, h http.Handler) (*Server, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("start the market simulator: %w", err)
	}
	s := &Server{
		http: &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10},
		url:  "http://" + l.Addr().String(),
		done: make(chan error, 1),
	}
	stop := context.AfterFunc(ctx, func() { _ = s.http.Close() }) // Serve returns the error
	go func() {
		defer stop()
		s.done <- s.http.Serve(l)
	}()
	return s, nil
}

// URL returns the server's base URL, without a trailing slash.
func (s *Server) URL() string { return s.url }

// Wait blocks until the server stops. It returns nil after Close or after the
// context of Start ends. Call either Wait or Close, and only once.
func (s *Server) Wait() error {
	err := <-s.done
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("market simulator: %w", err)
}

// Close stops the server and aborts the responses in progress.
func (s *Server) Close() error {
	_ = s.http.Close() // an error means that the listener is already closed
	return s.Wait()
}
