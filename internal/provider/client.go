package provider

import (
	"context"
	"math/rand/v2"
	"net/http"
	"time"
)

// maxHeader bounds the header of an answer, in bytes.
const maxHeader = 64 << 10

// Client carries every request of one source: it keeps the source's limit and
// its orders to wait, those that all processes share included, stops asking a source that fails, keeps requests out of
// the operator's own network, tries again, and remembers what was sent. Its
// methods may be used concurrently; all of that is shared by all calls.
type Client struct {
	o         Options
	start     time.Time // of the monotonic clock
	transport http.RoundTripper
	masker    *masker
	limit     *window
	told      told
	hold      hold
	breaker   breaker
	standing  standing
	record    record
	jitter    func(limit time.Duration) time.Duration // random, within 0 and limit
}

// NewClient returns a Client for one source. Close it when done.
func NewClient(o Options) *Client {
	o = o.withDefaults()
	return &Client{
		o:         o,
		start:     time.Now(),
		transport: newTransport(newDialer(o.AllowHosts)),
		masker:    newMasker(o.Secrets),
		limit:     newWindow(o.Limit),
		breaker:   breaker{base: o.Pause},
		record:    record{answers: make(map[int]int64)},
		jitter:    func(limit time.Duration) time.Duration { return rand.N(limit + 1) },
	}
}

// newTransport returns a transport that sends exactly what it is told to: one
// connection for each request, since net/http repeats a request on its own when
// a connection that it used before breaks, where neither limit nor meter would
// see it. Bodies come as they are, so that their bytes can be counted and what
// they inflate to can be bounded. No proxy is taken from the environment: it
// would resolve names behind the guard's back.
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

// Close lets go of what the Client holds. Calls in flight go on.
func (c *Client) Close() {
	if t, ok := c.transport.(*http.Transport); ok {
		t.CloseIdleConnections()
	}
}

// Do sends req and calls decode for each answer of status 200, until one is
// decoded and complete; attempts that fail in a way that may pass are made
// again, after a wait, as Options say. It returns soon after ctx ends.
//
// Failures are *Error, but for an error of decode that is none: it is returned
// as it is. An *Error of decode counts as if the transport had made it: of
// KindServer it is tried again, of KindRateLimited it is an order to wait. When
// the body could not be read to its end, that counts and not what decode made
// of it.
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
			if !returned { // decode panicked: the probe is over all the same
				c.breaker.report(c.clock(), probe, neutral)
			}
		}()
		err := c.attempt(ctx, deadline, first, attempt, decode)
		returned = true
		c.report(ctx, probe, err)
		return err
	})
}

// BlockedUntil tells until when the source has asked to be left alone, as far as
// this Client knows; zero: it has not.
func (c *Client) BlockedUntil() time.Time {
	remaining := c.hold.remaining(c.clock())
	if remaining == 0 {
		return time.Time{}
	}
	return c.o.Now().Add(remaining)
}

// clock reads the monotonic clock. All waiting is measured by it, so that
// nothing is lost or stuck when the wall clock jumps.
func (c *Client) clock() time.Duration { return time.Since(c.start) }
