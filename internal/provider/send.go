package provider

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// maxRedirects is the number of redirects that one attempt follows.
	maxRedirects = 3
	// userAgent is the default User-Agent.
	userAgent = "assay"
	// maxExcerpt is the number of bytes kept from an error response.
	maxExcerpt = 200
	// excerptTime is the timeout for reading the excerpt.
	excerptTime = time.Second
)

// hop is one HTTP request: the first one of an attempt, or one after a redirect.
type hop struct {
	method string
	url    *url.URL
	header http.Header
	body   []byte
	meter  *Meter

	otherHost bool // redirected to another host, which has another budget
}

// newHop validates a request. Its errors do not quote the URL, which may contain a secret.
func (c *Client) newHop(req Request) (*hop, error) {
	u, err := url.Parse(req.URL)
	if err != nil {
		return nil, Protocol(c.o.Provider, "the request's URL cannot be parsed")
	}
	if err := c.checkURL(u); err != nil {
		return nil, err
	}
	h := &hop{method: req.Method, url: u, header: req.Header.Clone(), body: req.Body, meter: req.Meter}
	if h.method == "" {
		h.method = http.MethodGet
	}
	if h.header == nil {
		h.header = make(http.Header)
	}
	setDefault(h.header, "User-Agent", userAgent)
	setDefault(h.header, "Accept-Encoding", "gzip")
	if u.User != nil && h.header.Get("Authorization") == "" {
		password, _ := u.User.Password()
		r := http.Request{Header: h.header}
		r.SetBasicAuth(u.User.Username(), password)
	}
	return h, nil
}

func setDefault(h http.Header, key, value string) {
	if h.Get(key) == "" {
		h.Set(key, value)
	}
}

func (c *classifier) checkURL(u *url.URL) error {
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return &Error{Provider: c.o.Provider, Kind: KindBlocked, Detail: "the URL must be absolute, with scheme http or https"}
	}
	return nil
}

// attempt sends a request and follows its redirects.
func (c *Client) attempt(caller context.Context, deadline time.Duration, h *hop, n int, decode func(*Response) error) error {
	ctx, cancel := context.WithTimeout(caller, min(c.o.Timeout, deadline-c.clock()))
	defer cancel()
	for redirects := 0; ; redirects++ {
		location, err := c.exchange(ctx, caller, h, n, decode)
		if err != nil || location == "" {
			return err
		}
		if redirects == maxRedirects {
			return Protocol(c.o.Provider, "more than %d redirects", maxRedirects)
		}
		if h, err = c.follow(h, location); err != nil {
			return err
		}
		if err := c.admitHop(ctx, deadline); err != nil {
			return err
		}
	}
}

// preferCallerError returns the caller's cancellation or deadline if the caller's context has
// ended and err may be its result. Otherwise it returns err. A connection that the caller
// aborted is not a failure of the provider.
func (c *classifier) preferCallerError(caller context.Context, err error) error {
	if caller.Err() == nil || err == nil {
		return err
	}
	switch KindOf(err) {
	case KindConnect, KindTimeout, KindCut:
		return c.ended(caller.Err())
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return c.ended(caller.Err())
	}
	return err
}

// exchange sends one HTTP request and reads its response. For a redirect it returns the
// location. ctx is the context of the attempt, derived from caller.
func (c *Client) exchange(ctx, caller context.Context, h *hop, n int, decode func(*Response) error) (location string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := &wire{meter: h.meter}
	sent := Sent{
		Time: c.o.Now(), Method: h.method, Attempt: n,
		Host: c.masker.mask(h.url.Host), Path: c.masker.path(h.url), TLS: h.url.Scheme == "https",
	}
	if ctx.Err() != nil {
		return "", c.preferCallerError(caller, c.sendError(ctx.Err())) // not sent, so not counted or recorded
	}
	if err := h.meter.Request(ctx); err != nil {
		return "", &Error{Provider: c.o.Provider, Kind: KindCancelled, Detail: "not sent: the request could not be stored", Err: err}
	}
	begun := c.clock()
	defer func() {
		err = c.preferCallerError(caller, err)
		sent.Duration, sent.Bytes = c.clock()-begun, w.bytes
		c.note(ctx, sent, err)
	}()

	resp, err := c.transport.RoundTrip(h.request(ctx))
	if err != nil {
		return "", c.sendError(err)
	}
	defer func() { _ = resp.Body.Close() }() // a Close error does not matter after the body is read
	sent.Status = resp.StatusCode
	sent.Date, _ = http.ParseTime(resp.Header.Get("Date")) // zero if missing
	w.src = resp.Body
	waitStored := c.storeRetryAfter(ctx, h, resp)
	var rate Rate
	if !h.otherHost {
		rate, _ = c.storeRateHeaders(ctx, resp.Header)
	}
	switch resp.StatusCode {
	case http.StatusOK:
		return "", c.read(resp, w, decode)
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return c.location(resp)
	default:
		// Limit the time to read the body of an error response.
		defer time.AfterFunc(excerptTime, cancel).Stop()
		e := c.statusError(ctx, resp, w, rate)
		e.waitStored = waitStored
		return "", e
	}
}

func (h *hop) request(ctx context.Context) *http.Request {
	r := &http.Request{Method: h.method, URL: h.url, Host: h.url.Host, Header: h.header.Clone()}
	if len(h.body) > 0 {
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(h.body)), int64(len(h.body))
	}
	return r.WithContext(ctx)
}

// read passes a response to decode and then reads the rest of it. Only a complete response
// counts as a success.
func (c *Client) read(resp *http.Response, w *wire, decode func(*Response) error) error {
	b, err := newBody(w, contentEncoding(resp), c.o.MaxBody)
	if err != nil {
		return &Error{
			Provider: c.o.Provider, Kind: KindProtocol, Status: resp.StatusCode,
			Detail: c.detail("content encoding " + contentEncoding(resp) + ": " + err.Error()),
		}
	}
	defer b.Close()
	err = decode(&Response{Status: resp.StatusCode, Header: resp.Header, Body: b})
	if err == nil {
		_, _ = io.Copy(io.Discard, b) // b keeps its error
	}
	if b.err != nil {
		return c.bodyError(b.err, w.err)
	}
	return c.decodeError(resp.StatusCode, err)
}

func contentEncoding(resp *http.Response) string {
	return strings.Join(resp.Header.Values("Content-Encoding"), ", ")
}

// decodeError completes an *Error from decode. It returns other errors unchanged.
func (c *classifier) decodeError(status int, err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	final := *e
	final.Provider, final.Detail = c.o.Provider, c.detail(e.Detail)
	if final.Status == 0 {
		final.Status = status
	}
	if final.Kind == KindRateLimited && final.RetryAfter <= 0 {
		final.RetryAfter, final.defaultWait = c.o.Wait, true
	}
	final.RetryAfter = min(final.RetryAfter, MaxWait)
	return &final
}

// statusError returns the error for a response that is neither a success nor a redirect. A 429
// without Retry-After may report the wait in its rate-limit headers.
func (c *Client) statusError(ctx context.Context, resp *http.Response, w *wire, rate Rate) *Error {
	e := &Error{Provider: c.o.Provider, Kind: KindStatus, Status: resp.StatusCode}
	wait, found := parseRetryAfter(resp.Header, c.o.Now())
	switch {
	case resp.StatusCode == http.StatusNotModified:
		e.ETag = resp.Header.Get("ETag")
	case resp.StatusCode == http.StatusTooManyRequests:
		e.Kind = KindRateLimited
		if !found && rate.Reset > 0 && rate.Left == 0 {
			wait, found = min(rate.Reset, MaxWait), true
		}
	case resp.StatusCode == http.StatusUnauthorized, resp.StatusCode == http.StatusForbidden:
		e.Kind = KindAuth
	case resp.StatusCode >= http.StatusInternalServerError:
		e.Kind = KindServer
	}
	if b, err := newBody(w, contentEncoding(resp), maxExcerpt); err == nil {
		defer b.Close()
		text, _ := io.ReadAll(b) // an incomplete excerpt is enough
		e.Detail = printable(c.masker.mask(string(text)), maxExcerpt)
		e.Page = bytes.HasPrefix(bytes.TrimSpace(text), []byte("<"))
	}
	if c.o.Classify != nil {
		c.o.Classify(e)
	}
	switch {
	case e.Kind == KindRateLimited && !found:
		e.RetryAfter, e.defaultWait = c.o.Wait, true
	case e.Kind == KindRateLimited, e.Kind == KindServer:
		e.RetryAfter = wait
	case e.Kind == KindBudget:
		e.RetryAfter = c.quotaUsedUp(ctx, rate, wait)
	}
	return e
}
