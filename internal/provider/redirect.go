package provider

import (
	"net/http"
	"net/url"
)

// carried lists the request headers that are sent to another host after a redirect. Other
// headers may contain secrets for the provider.
var carried = [...]string{"Accept", "Accept-Encoding", "Accept-Language", "User-Agent"}

// location returns the target of a redirect.
func (c *classifier) location(resp *http.Response) (string, error) {
	if l := resp.Header.Get("Location"); l != "" {
		return l, nil
	}
	e := Protocol(c.o.Provider, "redirect without a Location header")
	e.Status = resp.StatusCode
	return "", e
}

// follow returns the request for a redirect. All requests only read data, so a request with a
// body is repeated unchanged, but only to the same host. Another host gets only the headers in
// carried.
func (c *Client) follow(h *hop, location string) (*hop, error) {
	u, err := h.url.Parse(location)
	if err != nil {
		return nil, Protocol(c.o.Provider, "redirect to an invalid URL")
	}
	u.User = nil
	if err := c.checkURL(u); err != nil {
		return nil, err
	}
	if h.url.Scheme == "https" && u.Scheme != "https" {
		return nil, &Error{Provider: c.o.Provider, Kind: KindBlocked, Detail: "redirect from https to http refused"}
	}
	next := &hop{method: h.method, url: u, header: h.header, body: h.body, meter: h.meter, otherHost: h.otherHost}
	if sameHost(h.url, u) {
		return next, nil
	}
	next.otherHost = true
	if len(h.body) > 0 {
		return nil, &Error{Provider: c.o.Provider, Kind: KindBlocked, Detail: "redirect of a request with a body to another host refused"}
	}
	next.header = make(http.Header, len(carried))
	for _, key := range carried {
		if values := h.header.Values(key); len(values) > 0 {
			next.header[key] = values
		}
	}
	return next, nil
}

// sameHost reports whether two URLs have the same host and port. The standard ports of http
// and https count as equal.
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
