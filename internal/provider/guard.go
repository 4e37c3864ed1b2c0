package provider

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
)

// dialTimeout bounds one TCP connection attempt, without TLS.
const dialTimeout = 10 * time.Second

// publicAddresses refuses the special-purpose addresses of IANA's registries, and all
// of IPv6 outside of global unicast: IPv4-mapped addresses and NAT64 too.
//
//nolint:gochecknoglobals // built once and never written
var publicAddresses = ssrf.New(
	ssrf.WithAnyNetwork(), ssrf.WithAnyPort(),
	ssrf.WithDeniedV4Prefixes(netip.MustParsePrefix("168.63.129.16/32")), // Azure's host services, in each virtual network
)

// Guarded reports whether a request to addr could reach the operator's own network instead
// of the internet. An invalid address is guarded too.
func Guarded(addr netip.Addr) bool {
	return !addr.IsValid() || publicAddresses.SafeAddr(addr.WithZone("")) != nil
}

// errGuarded is the cause of a connection that the guard refused.
var errGuarded = errors.New("address is not public")

// dialer opens connections. It checks each address when it is dialled, after name
// resolution, so that neither a redirect nor a changed DNS record bypasses the guard.
type dialer struct {
	allow   map[string]bool // host:port, in lower case
	open    net.Dialer      // for hosts that the operator allows
	guarded net.Dialer
}

func newDialer(allowHosts []string) *dialer {
	d := &dialer{
		allow:   make(map[string]bool, len(allowHosts)),
		open:    net.Dialer{Timeout: dialTimeout},
		guarded: net.Dialer{Timeout: dialTimeout, Control: refuseGuarded},
	}
	for _, host := range allowHosts {
		key := hostKey(host)
		if _, _, err := net.SplitHostPort(key); err == nil {
			d.allow[key] = true
			continue
		}
		for _, port := range []string{"80", "443"} {
			d.allow[net.JoinHostPort(key, port)] = true
		}
	}
	return d
}

// dial connects to addr, a host:port as in the URL.
func (d *dialer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if d.allows(addr) {
		return d.open.DialContext(ctx, network, addr)
	}
	return d.guarded.DialContext(ctx, network, addr)
}

func (d *dialer) allows(addr string) bool { return d.allow[hostKey(addr)] }

// HostPort returns the host and port of a URL, for Options.AllowHosts. Without a port it is
// that of the scheme.
func HostPort(u *url.URL) string {
	port := u.Port()
	switch {
	case port != "":
	case u.Scheme == "http":
		port = "80"
	default:
		port = "443"
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// hostKey returns the canonical form of a host, with or without port.
func hostKey(host string) string {
	host = strings.ToLower(host)
	if h, port, err := net.SplitHostPort(host); err == nil {
		return net.JoinHostPort(strings.TrimSuffix(h, "."), port)
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.TrimSuffix(host, ".")
}

func refuseGuarded(_, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %q", errGuarded, address)
	}
	if Guarded(ap.Addr()) {
		return fmt.Errorf("%w: %s", errGuarded, ap.Addr())
	}
	return nil
}
