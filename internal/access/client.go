// Package access tells who sent a request and counts the wrong secrets that an
// address presents. The API and the page share both, so that a guesser has one
// allowance and not two.
package access

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// maxHops bounds how much of X-Forwarded-For is looked at.
const maxHops = 32

// Client returns the address that a request came from: the nearest one that is
// none of the trusted proxies. Only they are believed about whom they speak
// for; of X-Forwarded-For the entries count from the right, since whatever
// stands further left anybody can write. It is the zero Addr where the server
// was not reached by TCP.
func Client(r *http.Request, trusted []netip.Prefix) netip.Addr {
	client, _ := walk(r, trusted)
	return client
}

// walk returns the client, and whether a trusted proxy told it, in full. It did
// not where the header is missing or ends in rubbish.
func walk(r *http.Request, trusted []netip.Prefix) (client netip.Addr, forwarded bool) {
	client = peer(r)
	if !contains(trusted, client) {
		return client, false
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= max(0, len(hops)-maxHops); i-- {
		hop, ok := parseHop(strings.TrimSpace(hops[i]))
		if !ok {
			return client, false
		}
		client = hop
		if !contains(trusted, client) {
			break
		}
	}
	return client, true
}

// Local reports whether a request was made on this machine, by nobody's proxy
// or by one that is trusted and says so. A proxy here that is not trusted, or
// that tells of its client in another header than X-Forwarded-For, must not
// make strangers local.
func Local(r *http.Request, trusted []netip.Prefix) bool {
	client, forwarded := walk(r, trusted)
	if !client.IsLoopback() {
		return false
	}
	if forwarded {
		return true
	}
	for _, name := range []string{"X-Forwarded-For", "Forwarded", "X-Real-Ip", "Via"} {
		if len(r.Header.Values(name)) > 0 {
			return false
		}
	}
	return true
}

// LocalHost reports whether a Host header names loopback, or own. A stranger's name can
// lead here, too: a browser would then ask on behalf of the stranger's page.
func LocalHost(host, own string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if addr, err := netip.ParseAddr(host); err == nil && addr.IsLoopback() {
		return true
	}
	return strings.EqualFold(host, "localhost") || own != "" && strings.EqualFold(host, own)
}

// parseHop reads an address with or without a port.
func parseHop(text string) (netip.Addr, bool) {
	if addr, err := netip.ParseAddr(text); err == nil {
		return addr.Unmap().WithZone(""), true
	}
	if addr, err := netip.ParseAddrPort(text); err == nil {
		return addr.Addr().Unmap().WithZone(""), true
	}
	return netip.Addr{}, false
}

func peer(r *http.Request) netip.Addr {
	addr, _ := parseHop(r.RemoteAddr)
	return addr
}

func contains(prefixes []netip.Prefix, addr netip.Addr) bool {
	for _, p := range prefixes {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}
