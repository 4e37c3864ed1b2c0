package assay

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"assay/client/go/api"
)

// Error is a response with a status of 400 or more.
type Error struct {
	Status    int             `json:"status"`
	Code      api.ProblemCode `json:"code"` // stable; empty if a proxy sent the response
	Title     string          `json:"title"`
	Detail    string          `json:"detail"`
	RequestID string          `json:"requestId"` // also in the server's log

	// RetryAfter is the wait that the server demands; 0 if it names none.
	RetryAfter time.Duration `json:"-"`
}

// Error implements error.
func (e *Error) Error() string {
	if e.Code == "" {
		return fmt.Sprintf("status %d %s", e.Status, http.StatusText(e.Status))
	}
	return fmt.Sprintf("%s (%d): %s", e.Code, e.Status, e.Detail)
}

// Temporary reports whether the same request may succeed later: after a lost connection, 429 or 5xx.
func Temporary(err error) bool {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Status == http.StatusTooManyRequests || e.Status >= http.StatusInternalServerError
	}
	return err != nil && !errors.Is(err, context.Canceled)
}

const (
	idempotencyKey = "Idempotency-Key"
	maxBody        = 512 << 20 // bytes of a JSON response
	maxProblem     = 64 << 10
)

// retrier sends requests for the generated client.
type retrier struct {
	Options
	wait func(context.Context, time.Duration) error
}

// Do sends a request until it succeeds, the server refuses it, or all attempts have failed. Every
// attempt has the same Idempotency-Key.
func (r *retrier) Do(req *http.Request) (*http.Response, error) {
	if r.Token != "" {
		req.Header.Set("Authorization", "Bearer "+r.Token)
	}
	if r.SyncSecret != "" {
		req.Header.Set("X-Market-Sync-Secret", r.SyncSecret)
	}
	if takesKey(req) && req.Header.Get(idempotencyKey) == "" {
		req.Header.Set(idempotencyKey, rand.Text())
	}
	for attempt := 1; ; attempt++ {
		resp, err := r.send(req)
		if err == nil || attempt >= r.Attempts || !mayRepeat(req, err) || req.Context().Err() != nil {
			return resp, err
		}
		pause := backoff(attempt, r.MaxWait)
		if e, ok := errors.AsType[*Error](err); ok && e.RetryAfter > 0 {
			pause = e.RetryAfter
		}
		if pause > r.MaxWait {
			return nil, err
		}
		if r.wait(req.Context(), pause) != nil {
			return nil, err
		}
		if req, err = again(req); err != nil {
			return nil, err
		}
	}
}

// again returns a copy of a request whose body has been sent.
func again(req *http.Request) (*http.Request, error) {
	next := req.Clone(req.Context())
	if req.GetBody != nil {
		body, err := req.GetBody()
		if err != nil {
			return nil, err
		}
		next.Body = body
	}
	return next, nil
}

// send makes one attempt. It reads JSON completely, so that a connection that is lost within
// the response is a failed attempt too. The caller reads streams.
func (r *retrier) send(req *http.Request) (*http.Response, error) {
	resp, err := r.HTTP.Do(req) //nolint:gosec // The caller chooses the address.
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= http.StatusBadRequest {
		return nil, refusal(resp)
	}
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
		return resp, nil
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	_ = resp.Body.Close()
	if err != nil {
		return nil, fmt.Errorf("read the response: %w", err)
	}
	if len(body) > maxBody {
		return nil, &Error{Status: resp.StatusCode, Code: "response_too_large", Detail: "The response is too large: request fewer items."}
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// refusal returns the error of a response, and closes it.
func refusal(resp *http.Response) error {
	defer resp.Body.Close()
	e := &Error{}
	if text, err := io.ReadAll(io.LimitReader(resp.Body, maxProblem)); err != nil || json.Unmarshal(text, e) != nil {
		*e = Error{} // not a problem document
	}
	e.Status = resp.StatusCode
	after := resp.Header.Get("Retry-After")
	if seconds, err := strconv.Atoi(after); err == nil {
		e.RetryAfter = time.Duration(min(max(seconds, 0), 1<<31)) * time.Second
	} else if at, err := http.ParseTime(after); err == nil {
		e.RetryAfter = max(0, time.Until(at))
	}
	return e
}

// backoff returns a random wait after an attempt: from half to all of 0.5 s, 1 s, 2 s and so on.
func backoff(attempt int, most time.Duration) time.Duration {
	full := min(most, (500*time.Millisecond)<<min(attempt-1, 10))
	return full/2 + mathrand.N(full/2+1)
}

// takesKey reports whether the route of a request takes an Idempotency-Key.
func takesKey(req *http.Request) bool {
	path := req.URL.Path
	return req.Method == http.MethodPost && (strings.HasSuffix(path, "/api/listings") || strings.HasSuffix(path, "/api/listings/batch") ||
		strings.HasSuffix(path, "/purchase") || strings.HasSuffix(path, "/entries"))
}

// mayRepeat reports whether the client may send a failed request again. The server may have executed
// it. So a POST must have a key, only read, or change nothing when it is repeated.
func mayRepeat(req *http.Request, err error) bool {
	if !Temporary(err) || req.Body != nil && req.Body != http.NoBody && req.GetBody == nil {
		return false
	}
	if e, ok := errors.AsType[*Error](err); ok && e.Status == http.StatusTooManyRequests {
		return true // not executed
	}
	if req.Method != http.MethodPost || req.Header.Get(idempotencyKey) != "" {
		return true
	}
	for _, end := range []string{"/lookup", "/quotes", "/quote", "/sync", "/market-prices/refresh", "/listings/cancel"} {
		if strings.HasSuffix(req.URL.Path, end) {
			return true
		}
	}
	return false
}
