package provider

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"time"
)

// maxHeader bounds the header of a response, in bytes.
const maxHeader = 64 << 10

// Client sends all requests to one host of a provider and records them. It enforces the limit
// and the retry-after that all processes share. It retries failed requests and opens a circuit
// breaker when the host keeps failing. It blocks addresses in the operator's own network. Its
// methods may be called concurrently.
type Client struct {
	hostBudget
	transport http.RoundTripper
	breaker   breaker
	health    storedHealth
	record    record
	jitter    func(limit time.Duration) time.Duration // returns a random duration from 0 to limit
}

// NewClient returns a Client for one host of a provider. The caller must close it.
func NewClient(o Options) *Client {
	o = o.withDefaults()
	return &Client{
		hostBudget: hostBudget{classifier: classifier{o, newMasker(o.Secrets)}, start: time.Now(), limit: newWindow(o.Limit)},
		transport:  newTransport(NewDialer(o.AllowHosts)),
		breaker:    breaker{base: o.Pause},
		record:     record{statuses: make(map[int]int64), samples: samples{}},
		jitter:     func(limit time.Duration) time.Duration { return rand.N(limit + 1) },
	}
}

// newTransport returns a transport that sends each request exactly once. Each request uses a
// new connection, because net/http silently resends a request when a reused connection breaks.
// The rate limit and the meter would not count that second request.
//
// The transport does not decompress, because the client counts the compressed bytes and limits
// the decompressed size. The transport ignores proxies in the environment, because a proxy
// resolves names and would bypass the address guard.
func newTransport(d *Dialer) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{
		DialContext:            d.Dial,
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

// Do sends req and calls decode for each response of status 200, until a response is complete
// and decoded. It retries temporary failures with backoff, within the bounds of Options. It
// returns soon after ctx ends.
//
// Transport failures are *Error. An *Error from decode is handled the same way: KindServer is
// retried, and KindRateLimited demands a wait. Other errors from decode are returned
// unchanged. If the body is incomplete, Do reports that failure instead of the error from
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

// Read sends a request and decodes the body of the response, as Do does. After an error it
// returns the zero value.
func Read[T any](ctx context.Context, c *Client, req Request, decode func(context.Context, io.Reader) (T, error)) (T, error) {
	var decoded, none T
	err := c.Do(ctx, req, func(resp *Response) (err error) {
		decoded, err = decode(ctx, resp.Body)
		return err
	})
	if err != nil {
		return none, err
	}
	return decoded, nil
}

// BlockedUntil returns the end of the retry-after in this process. It is zero if there is
// none.
func (c *Client) BlockedUntil() time.Time {
	remaining := c.retryWait.remaining(c.clock())
	if remaining == 0 {
		return time.Time{}
	}
	return c.o.Now().Add(remaining)
}
