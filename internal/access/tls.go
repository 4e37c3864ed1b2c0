package access

import (
	"net/http"
	"net/netip"
	"strings"
)

// OverTLS reports whether the client's connection is encrypted, here or, according to a
// trusted proxy, at that proxy.
func OverTLS(r *http.Request, trusted []netip.Prefix) bool {
	if r.TLS != nil {
		return true
	}
	return contains(trusted, peer(r)) && strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
}
