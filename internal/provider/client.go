package provider

import (
	"context"
	"math/rand/v2"
	"net/http"
	"time"
)

// maxHeader bounds the header of a response, in bytes.
const maxHeader = 64 << 10

// Client sends all requests to one host of a provider. It enforces the limit and the
// retry-after shared by all processes, opens a circuit breaker when the host keeps failing,
// blocks addresses in the operator's own network, retries, and records the requests. Its
// methods may be used concurrently.
type Client struct {
	classifier
	start     time.Time // origin of the monotonic clock
	transport http.RoundTripper
	limit     *window
	reported  reportedQuota
	hold      hold
	breaker   breaker
	health    health
	record    record
	jitter    func(limit time.Duration) time.Duration // returns a random duration from 0 to limit
}

// NewClient returns a Client for one host of a provider. Close it when done.
func NewClient(o Options) *Client {
	o = o.withDefaults()
	return &Client{
		classifier: classifier{o, newMasker(o.Secrets)},
		start:      time.Now(),
		transport:  newTransport(newDialer(o.AllowHosts)),
		limit:      newWindow(o.Limit),
		breaker:    breaker{base: o.Pause},
		record:     record{answers: make(map[int]int64)},
		jitter:     func(limit time.Duration) time.Duration { return rand.N(limit + 1) },
	}
}

// newTransport returns a transport that sends each request exactly once. It uses one
// connection per request, because net/http silently resends a request when a reused
// connection breaks, which neither limit nor meter would count. It does not decompress, so
// that the client can count the bytes and bound the inflated size. It ignores proxies in
// the environment: a proxy would resolve names past the address guard.
func newTransport(d *dialer) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{
		DialContext:            d.dial,
		Protocols:              protocols,
		DisableKeepAlives:      true,
		DisableCompression:     true,
		TLSHandshakeTimeout:    dialTimeout,
		MaxResponseHeaderBytes: maxHeader,
	}
}

// Close releases the Client's resources. Calls in flight continue.
func (c *Client) Close() {
	if t, ok := c.transport.(*http.Transport); ok {
		t.CloseIdleConnections()
	}
}

// Do sends req and calls decode for each response of status 200, until one is complete and
// decoded. It retries temporary failures with backoff, within the bounds of Options. It
// returns soon after ctx ends.
// Errors are *Error, except other errors of decode, which it returns unchanged. An *Error
// of decode is handled like one of the transport: KindServer is retried, and
// KindRateLimited demands a wait. If the body is incomplete, that error replaces the one of
// decode.
func (c *Client) Do(ctx context.Context, req Request, decode func(*Response) error) error {
	first, err := c.newHop(req)
	if err != nil {
		return err
	}
	deadline := c.clock() + c.o.Total
	if d, ok := ctx.Deadline(); ok {
		deadline = min(deadline, d.Sub(c.start))
	}
	return c.retry(ctx, deadline, func(attempt int, probe bool) error {
		returned := false
		defer func() {
			if !returned { // decode panicked: release the probe
				c.breaker.report(c.clock(), probe, neutral)
			}
		}()
		err := c.attempt(ctx, deadline, first, attempt, decode)
		returned = true
		c.report(ctx, probe, err)
		return err
	})
}

// BlockedUntil returns the end of the retry-after that this Client knows; zero if there is
// none.
func (c *Client) BlockedUntil() time.Time {
	remaining := c.hold.remaining(c.clock())
	if remaining == 0 {
		return time.Time{}
	}
	return c.o.Now().Add(remaining)
}

// clock reads the monotonic clock. All waits use it, so that jumps of the wall clock have
// no effect.
func (c *Client) clock() time.Duration { return time.Since(c.start) }
