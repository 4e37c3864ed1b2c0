// Package access finds the client address of a request and counts the wrong secrets
// of each address. The API and the page share the counts, so an attacker has one
// allowance and not two.
package access

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// maxHops bounds how much of X-Forwarded-For is read.
const maxHops = 32

// Client returns the address of the client: the nearest hop that is not a trusted
// proxy. It reads X-Forwarded-For from the right, because a client can write any
// entries on the left. It is the zero Addr if the connection is not TCP.
func Client(r *http.Request, trusted []netip.Prefix) netip.Addr {
	client, _ := walk(r, trusted)
	return client
}

// walk returns the client, and whether trusted proxies forwarded its address. They
// did not if the header is missing or malformed.
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

// Local reports whether a request was made on this machine, directly or through a
// trusted proxy that forwards the client's address. An untrusted local proxy, or
// one with another header than X-Forwarded-For, must not make remote clients local.
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

// LocalHost reports whether a Host header names loopback, or own. Any other name
// may be DNS rebinding: a foreign page that sends requests to this server.
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
