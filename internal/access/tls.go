package access

import (
	"net/http"
	"net/netip"
	"strings"
)

// OverTLS reports whether the client uses TLS. The connection either ends at this server
// or at a trusted proxy that sets X-Forwarded-Proto.
func OverTLS(r *http.Request, trusted []netip.Prefix) bool {
	if r.TLS != nil {
		return true
	}
	return contains(trusted, peer(r)) && strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
}
