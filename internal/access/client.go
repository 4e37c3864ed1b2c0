// Package access determines the client address of a request and counts wrong secrets per
// address. The API and the page share these counts. An attacker therefore gets no additional
// attempts by using both.
package access

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// maxHops limits the number of X-Forwarded-For entries that are read.
const maxHops = 32

// Client returns the address of the client: the nearest hop that is not a trusted proxy.
// It reads X-Forwarded-For from the right, because a client can forge the entries on the
// left. It returns the zero Addr if the connection is not TCP.
func Client(r *http.Request, trusted []netip.Prefix) netip.Addr {
	client, _ := findClient(r, trusted)
	return client
}

// findClient returns the address of the client. forwarded reports whether the address
// comes from a trusted proxy. It is false if the header is missing or malformed.
func findClient(r *http.Request, trusted []netip.Prefix) (client netip.Addr, forwarded bool) {
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

// Local reports whether the client runs on this machine. The request may be direct or
// pass through a trusted proxy that sets X-Forwarded-For. Local returns false for other
// local proxies, because their clients may be remote.
func Local(r *http.Request, trusted []netip.Prefix) bool {
	client, forwarded := findClient(r, trusted)
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

// LocalHost reports whether a Host header is "localhost", a loopback address or own. Any
// other value may be a DNS rebinding attack, in which a foreign web page sends requests
// to this server.
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

// parseHop parses an address with an optional port. It removes the zone and unmaps
// IPv4-mapped addresses.
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
