package api

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"assay/internal/fault"
)

// retryAfter is the default Retry-After of responses with status 503.
const retryAfter = 5 * time.Second

// refusal is an error that sets the HTTP status of the response.
type refusal struct {
	status int
	code   string
	detail string
	header http.Header // additional response headers; may be nil
}

func (e *refusal) Error() string { return e.detail }

// explain converts an error to a problem and its headers. The result ours is true for an
// error of the server, which must be logged.
func explain(err error) (p fault.Problem, header http.Header, ours bool) {
	var refused *refusal
	var tooBig *http.MaxBytesError
	later := http.Header{"Retry-After": {seconds(retryAfter)}}
	switch f := fault.Of(err); {
	case errors.As(err, &refused):
		return fault.Problem{Status: refused.status, Code: refused.code, Detail: refused.detail}, refused.header, false
	case errors.As(err, &tooBig):
		return fault.Problem{Status: http.StatusRequestEntityTooLarge, Code: "body_too_large", Detail: tooLarge(tooBig.Limit)}, nil, false
	case f != nil && (f.Kind == fault.Unavailable || f.Kind == fault.Busy):
		if f.RetryAfter > 0 {
			later.Set("Retry-After", seconds(f.RetryAfter))
		}
		return fault.Problem{Status: f.Kind.Status(), Code: f.Code, Detail: f.Detail}, later, f.Kind == fault.Unavailable
	case f != nil && f.Kind == fault.Damaged:
		return fault.Problem{Status: f.Kind.Status(), Code: f.Code, Detail: f.Detail}, nil, true
	case f != nil && f.Kind != fault.Internal:
		return fault.Problem{Status: f.Kind.Status(), Code: f.Code, Detail: f.Detail, Errors: f.Fields, Change: f.Change}, nil, false
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fault.Problem{Status: http.StatusRequestTimeout, Code: "request_timeout", Detail: "The body did not arrive in time. Send it faster, or send a smaller body."}, nil, false
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return fault.Problem{Status: http.StatusServiceUnavailable, Code: "timeout", Detail: "The request took too long. Retry it."}, later, false
	default:
		return internalError(), nil, true
	}
}

func internalError() fault.Problem {
	return fault.Problem{
		Status: http.StatusInternalServerError, Code: "internal_error",
		Detail: "An internal error occurred. The server's log has the details under this request id.",
	}
}

// fail responds to an error. It is the only place that logs errors of the server.
func (s *server) fail(w http.ResponseWriter, c *call, err error) {
	p, header, ours := explain(err)
	if ours {
		s.Logger.ErrorContext(c.Context(), "request failed", "method", knownMethod(c.Method), "route", c.route, "request_id", c.id, "error", err)
	}
	s.refuse(w, c, p, header)
}

// refuse sends a problem as the response.
func (s *server) refuse(w http.ResponseWriter, c *call, p fault.Problem, header http.Header) {
	h := w.Header()
	h.Del("Location")
	h.Set("Cache-Control", "no-store")
	maps.Copy(h, header)
	send(w, p.Status, problemType, c.problem(p))
}

const problemType = "application/problem+json"

// problem completes a problem and encodes it as JSON.
func (c *call) problem(p fault.Problem) []byte {
	p.Type, p.Title, p.RequestID = "about:blank", http.StatusText(p.Status), c.id
	body, err := json.Marshal(p, encoding())
	if err != nil {
		panic("encode a problem: " + err.Error()) // all its texts are valid UTF-8
	}
	return body
}

// seconds formats a duration for a header as whole seconds, rounded up, at least 1.
func seconds(d time.Duration) string {
	return strconv.FormatInt(int64(max(d+time.Second-1, time.Second)/time.Second), 10)
}
