package api

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"assay/internal/access"
	"assay/internal/admission"
	"assay/internal/auditlog"
	"assay/internal/fault"
)

// maxRequestID is the maximum length in bytes of a request id from a client.
const maxRequestID = 128

// ServeHTTP implements http.Handler. It logs and counts the request and handles panics.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := s.Now()
	ctx, release := admission.Hold(r.Context())
	defer release()
	out := &recorder{ResponseWriter: w, begins: release}
	c := &call{Request: r, w: out, ctx: ctx, slow: r.Context(), id: requestID(r), route: "unknown"}
	secure(out.Header())
	if access.OverTLS(r, s.TrustedProxies) {
		out.Header().Set("Strict-Transport-Security", "max-age=31536000") // a year
	}
	out.Header().Set("X-Request-Id", c.id)
	abort := false
	defer func() {
		if failure := recover(); failure != nil {
			abort = s.rescue(out, c, failure)
		}
		took := s.Now().Sub(start)
		s.meter.observe(knownMethod(r.Method), c.route, out.final(), took)
		level := slog.LevelInfo
		if c.quiet {
			level = slog.LevelDebug
		}
		if s.Logger.Enabled(r.Context(), level) { // building the attributes takes time
			s.Logger.Log(r.Context(), level, "request", "method", knownMethod(r.Method), "route", c.route, "status", out.final(),
				"duration_ms", float64(took)/float64(time.Millisecond), "request_id", c.id, "actor", c.role)
		}
		if abort {
			panic(http.ErrAbortHandler) // net/http closes the connection without logging
		}
	}()
	var err error
	if s.routes.owns(r.URL.EscapedPath()) {
		err = s.dispatch(out, c)
	} else {
		c.route = "page"
		s.Page.ServeHTTP(out, r.WithContext(ctx))
	}
	switch {
	case out.status == 0 && left(r, err):
		out.status, abort = statusClientLeft, true
	case err != nil:
		s.fail(out, c, err)
	}
}

// statusClientLeft is the logged and counted status of a request whose client disconnected
// before the response. It is never sent.
const statusClientLeft = 499

// left reports whether the client disconnected, so that the error needs no response. It
// returns false for an error with a status below 500, because net/http also cancels the
// context when a body cannot be read.
func left(r *http.Request, err error) bool {
	if err != nil && !errors.Is(err, errClientLeft) {
		if p, _, _ := explain(err); p.Status < http.StatusInternalServerError {
			return false
		}
	}
	return errors.Is(r.Context().Err(), context.Canceled) || errors.Is(err, errClientLeft)
}

// dispatch finds the operation of a request, runs the checks that all operations share,
// and calls the handler.
func (s *server) dispatch(w http.ResponseWriter, c *call) error {
	op, path, allow := s.routes.find(c.Method, c.URL.EscapedPath())
	switch {
	case op == nil && allow == nil:
		return s.noRoute(c)
	case op == nil:
		return notAllowed(allow)
	}
	c.route = op.path
	if op.shared() {
		share(w.Header())
	}
	var err error
	if c.role, err = s.authorise(op, c); err != nil {
		return err
	}
	if op.writes() {
		s.audit(c)
	}
	var done func()
	c.hasBody, done, err = s.admitBody(w, c.Request, op.body)
	defer done()
	if err != nil {
		return err
	}
	if c.values, err = bind(op.params, path, c.URL.RawQuery); err != nil {
		return err
	}
	if err := c.takeKey(op); err != nil {
		return err
	}
	returned, err := op.serve(c)
	if err != nil {
		return err
	}
	return respond(w, returned)
}

// notAllowed returns the error for a path that exists with other methods only.
func notAllowed(allow []string) error {
	methods := strings.Join(allow, ", ")
	return &refusal{
		status: http.StatusMethodNotAllowed, code: "method_not_allowed", detail: "This path supports only " + methods + ".",
		header: http.Header{"Allow": {methods}},
	}
}

// audit adds the request to the audit log, in the first transaction that commits with its context.
func (d *Deps) audit(c *call) {
	entry := auditlog.Entry{
		Actor: c.role, Address: access.Client(c.Request, d.TrustedProxies).String(),
		Action: c.Method + " " + c.route, Target: c.URL.RequestURI(), RequestID: c.id,
	}
	c.ctx, c.slow = auditlog.With(c.ctx, entry), auditlog.With(c.slow, entry)
}

// rescue logs a panic and responds with 500. It reports whether the connection must be
// closed because part of the response was already sent.
func (s *server) rescue(w *recorder, c *call, failure any) (abort bool) {
	if err, ok := failure.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		return true
	}
	p := fault.Recovered(failure)
	s.Logger.ErrorContext(c.Context(), "handler panicked", "method", knownMethod(c.Method), "route", c.route,
		"request_id", c.id, "cause", p.Cause, "stack", p.Stack)
	if w.status != 0 {
		return true
	}
	s.refuse(w, c, internalError(), nil)
	return false
}

// secure sets the security headers of every response. The page overrides its
// Content-Security-Policy.
func secure(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
}

// shared reports whether web pages of other sites may read the responses of an operation.
// Such responses are public and contain nothing about the operator. Health is excluded:
// otherwise a web page could scan the network of a visitor for servers.
func (op *operation) shared() bool {
	return op.path == "/api/community/top-traders" || op.path == "/openapi.json"
}

// share allows web pages of any site to read a response (CORS). Preflight requests are
// refused, so this works only for a plain GET without credentials.
func share(h http.Header) {
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Expose-Headers", "Age, ETag, Retry-After, X-Request-Id")
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
}

// requestID returns the client's request id if it is short and printable, or else a new one.
func requestID(r *http.Request) string {
	id := r.Header.Get("X-Request-Id")
	unprintable := func(c rune) bool { return c < ' ' || c > '~' }
	if id == "" || len(id) > maxRequestID || strings.ContainsFunc(id, unprintable) {
		return rand.Text()
	}
	return id
}

// knownMethod returns the method if it is a standard one, or else "other". It limits the
// values in the log and in metrics.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace:
		return method
	}
	return "other"
}

// recorder records the status of a response.
type recorder struct {
	http.ResponseWriter
	begins func() // called before the response is sent; releases the admission slot
	status int    // 0: nothing was sent
}

// WriteHeader records the first final status.
func (w *recorder) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status = status
		w.begins()
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *recorder) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
		w.begins()
	}
	return w.ResponseWriter.Write(b)
}

// final returns the status of the response.
func (w *recorder) final() int {
	if w.status == 0 {
		return http.StatusOK // net/http sends 200 for a handler that wrote nothing
	}
	return w.status
}

// Unwrap gives http.ResponseController access to the connection.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }
