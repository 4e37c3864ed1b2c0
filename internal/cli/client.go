package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"assay/internal/fault"
)

// These are limits of a call to the server.
const (
	callTimeout = 30 * time.Second
	syncTimeout = 2 * time.Minute
	maxResponse = 64 << 20
	maxPush     = 32 << 20 // largest inventory that the server accepts
	pageSize    = 1000
)

// credential is the secret of a role, with its origin.
type credential struct {
	header  string // name of the header
	value   string // value of the header; never printed
	origin  string // for example "MARKET_PRICE_SYNC_SECRET (environment)"
	missing error  // why there is no secret; nil if there is one
}

// client sends requests to a running server.
type client struct {
	base        string                // "http://127.0.0.1:8080"
	credentials map[string]credential // by role
	http        *http.Client
}

// newClient returns a client of the server at base. Because its requests carry secrets, it
// does not follow redirects or use a proxy.
func newClient(base string, credentials map[string]credential) *client {
	return &client{
		base: base, credentials: credentials,
		http: &http.Client{
			Transport:     &http.Transport{MaxIdleConnsPerHost: 8, IdleConnTimeout: time.Minute},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// request is one call to the server.
type request struct {
	method  string // "" means GET
	path    string // escaped
	query   url.Values
	as      string        // role for authentication, such as config.RoleAdmin; "": none
	body    any           // encoded as JSON; []byte is already JSON; nil: no body
	timeout time.Duration // 0: callTimeout
	accept  int           // a status outside of 2xx that also means success

	idempotencyKey string
}

// call sends r and returns the decoded response.
func call[T any](ctx context.Context, c *client, r request) (response T, err error) {
	err = c.do(ctx, r, &response)
	return response, err
}

// do sends r and decodes the response into into, which may be nil. It returns an
// unreachableError if there is no response, and a problem for an error response.
func (c *client) do(ctx context.Context, r request, into any) error {
	if missing := c.credentials[r.as].missing; missing != nil {
		return missing
	}
	timeout := r.timeout
	if timeout == 0 {
		timeout = callTimeout
	}
	calling, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := c.build(calling, r)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return c.unanswered(ctx, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse+1))
	switch {
	case err != nil:
		return c.unanswered(ctx, err)
	case len(body) > maxResponse:
		return fmt.Errorf("the server at %s sent a response larger than %d MiB", c.base, maxResponse>>20)
	case resp.StatusCode/100 != 2 && resp.StatusCode != r.accept:
		return c.problem(resp, body, c.credentials[r.as])
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(body, into); err != nil {
		return &problem{Problem: fault.Problem{Status: resp.StatusCode, Detail: "the server at " + c.base + " sent an unexpected response: check that it is `assay` of the same version"}}
	}
	return nil
}

func (c *client) build(ctx context.Context, r request) (*http.Request, error) {
	target := c.base + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	body, encoded := r.body.([]byte)
	if r.body != nil && !encoded {
		var err error
		// Keys need a fixed order: a retry with the same idempotency key must send the same
		// body.
		if body, err = json.Marshal(r.body, json.Deterministic(true)); err != nil {
			return nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("the server's address %s: %w", c.base, err)
	}
	if with := c.credentials[r.as]; with.header != "" {
		req.Header.Set(with.header, with.value)
	}
	if r.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.idempotencyKey != "" {
		req.Header.Set("Idempotency-Key", r.idempotencyKey)
	}
	return req, nil
}

// unanswered returns the error for a request without a response. It is ctx.Err() if ctx has
// ended, otherwise an unreachableError.
func (c *client) unanswered(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // drop the URL, which the message already contains
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = errors.New("no response in time")
	}
	return &unreachableError{base: c.base, err: err}
}

// unreachableError means that the server did not respond.
type unreachableError struct {
	base string
	err  error
}

func (e *unreachableError) Error() string {
	return fmt.Sprintf("cannot reach a server at %s: %v", e.base, e.err)
}

func (e *unreachableError) Unwrap() error { return e.err }

// Hint returns the most frequent fix.
func (e *unreachableError) Hint() string {
	return "start `assay serve`, or set its address with LISTEN_ADDR or --listen-addr"
}

// problem is an error response (RFC 9457).
type problem struct {
	fault.Problem
	hint string
}

func (p *problem) Error() string {
	text := p.Detail
	if text == "" {
		text = p.Title
	}
	if p.Code != "" {
		text += " (" + p.Code + ")"
	}
	if p.Status >= 500 && p.RequestID != "" {
		text += ", request " + p.RequestID
	}
	return text
}

// damaged reports whether the ledger's key is missing or its data fails verification.
func (p *problem) damaged() bool {
	return p.Code == "ledger_key_missing" || strings.HasSuffix(p.Code, "_tampered")
}

// Hint returns a fix, or "".
func (p *problem) Hint() string { return p.hint }

// problem decodes an error response.
func (c *client) problem(resp *http.Response, body []byte, with credential) *problem {
	p := &problem{}
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if media != "application/problem+json" || json.Unmarshal(body, &p.Problem) != nil {
		p.Problem = fault.Problem{Detail: fmt.Sprintf("the server at %s sent status %d without a reason: check that it is `assay`", c.base, resp.StatusCode)}
	}
	p.Status = resp.StatusCode
	if p.Detail == "" && p.Title == "" {
		p.Title = http.StatusText(p.Status)
	}
	p.Detail, p.Title = printable(p.Detail), printable(p.Title)
	switch {
	case p.damaged():
		p.hint = "run `assay verify --all` to find the damaged data"
	case p.Status == http.StatusUnauthorized, p.Status == http.StatusForbidden:
		p.hint = "the secret came from " + with.origin + ": use a secret of the server at " + c.base
	case p.Status == http.StatusTooManyRequests, p.Status == http.StatusServiceUnavailable:
		if after := resp.Header.Get("Retry-After"); after != "" {
			p.hint = "retry after " + printable(after) + " s"
		}
	}
	return p
}

// segment escapes s as one segment of a path. It escapes the dots of "." and ".." because
// proxies treat these as directories.
func segment(s string) string {
	if strings.Trim(s, ".") == "" {
		return strings.ReplaceAll(s, ".", "%2E")
	}
	return url.PathEscape(s)
}
