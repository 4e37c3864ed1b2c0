package provider

import (
	"net/http"
	"net/url"
)

// carried lists the request headers that go along to another host. All others
// may reveal what is meant for the provider alone.
var carried = [...]string{"Accept", "Accept-Encoding", "Accept-Language", "User-Agent"}

// location reads where a redirect leads.
func (c *classifier) location(resp *http.Response) (string, error) {
	if l := resp.Header.Get("Location"); l != "" {
		return l, nil
	}
	e := Protocol(c.o.Provider, "a redirect without a location")
	e.Status = resp.StatusCode
	return "", e
}

// follow makes the request that a redirect of h to location requests. All of
// them are reads, so one with a body is sent again as it is, but to its own
// host only; headers go to another host only if they are harmless.
func (c *Client) follow(h *hop, location string) (*hop, error) {
	u, err := h.url.Parse(location)
	if err != nil {
		return nil, Protocol(c.o.Provider, "a redirect to what is no URL")
	}
	u.User = nil
	if err := c.checkURL(u); err != nil {
		return nil, err
	}
	if h.url.Scheme == "https" && u.Scheme != "https" {
		return nil, &Error{Provider: c.o.Provider, Kind: KindBlocked, Detail: "a redirect from https to http"}
	}
	next := &hop{method: h.method, url: u, header: h.header, body: h.body, meter: h.meter, elsewhere: h.elsewhere}
	if sameHost(h.url, u) {
		return next, nil
	}
	next.elsewhere = true
	if len(h.body) > 0 {
		return nil, &Error{Provider: c.o.Provider, Kind: KindBlocked, Detail: "a redirect to another host of a request with a body"}
	}
	next.header = make(http.Header, len(carried))
	for _, key := range carried {
		if values := h.header.Values(key); len(values) > 0 {
			next.header[key] = values
		}
	}
	return next, nil
}

// sameHost reports whether two URLs lead to the same service: host and port,
// where the step from http to https on their own ports is none.
func sameHost(a, b *url.URL) bool {
	if hostKey(a.Hostname()) != hostKey(b.Hostname()) {
		return false
	}
	return a.Port() == b.Port() || standardPort(a) && standardPort(b)
}

func standardPort(u *url.URL) bool {
	switch u.Port() {
	case "":
		return true
	case "80":
		return u.Scheme == "http"
	case "443":
		return u.Scheme == "https"
	default:
		return false
	}
}
