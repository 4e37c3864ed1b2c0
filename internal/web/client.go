package web

import (
	"net/http"
	"net/netip"
	"strings"
)

// clientAddr tells who sent a request: the nearest address that is none of the
// trusted proxies. It is invalid where the server was not reached by TCP.
func (s *site) clientAddr(r *http.Request) netip.Addr {
	peer := peerAddr(r)
	if !s.trusted(peer) {
		return peer
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	client := peer
	for i := len(hops) - 1; i >= 0; i-- {
		hop, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break // what stands further left is anybody's word
		}
		client = hop.Unmap()
		if !s.trusted(client) {
			break
		}
	}
	return client
}

// overTLS reports whether the browser's own connection is encrypted.
func (s *site) overTLS(r *http.Request) bool {
	if r.TLS != nil {
		return true
	}
	return s.trusted(peerAddr(r)) && strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
}

func (s *site) trusted(addr netip.Addr) bool {
	for _, proxy := range s.TrustedProxies {
		if proxy.Contains(addr) {
			return true
		}
	}
	return false
}

func peerAddr(r *http.Request) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return peer.Addr().Unmap()
}
