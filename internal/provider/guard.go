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

// dialTimeout limits one TCP connection attempt, without TLS.
const dialTimeout = 10 * time.Second

// publicAddresses refuses the special-purpose addresses of the IANA registries. It also
// refuses all IPv6 addresses outside global unicast, including IPv4-mapped addresses and
// NAT64.
//
//nolint:gochecknoglobals // built once and never written
var publicAddresses = ssrf.New(
	ssrf.WithAnyNetwork(), ssrf.WithAnyPort(),
	ssrf.WithDeniedV4Prefixes(netip.MustParsePrefix("168.63.129.16/32")), // Azure host services, reachable from each virtual network
)

// Guarded reports whether addr may be in the operator's own network instead of the internet.
// It also returns true for an invalid address.
func Guarded(addr netip.Addr) bool {
	return !addr.IsValid() || publicAddresses.SafeAddr(addr.WithZone("")) != nil
}

// ErrGuarded means that the guard refused a connection.
var ErrGuarded = errors.New("address is not public")

// Dialer opens connections. It checks each address after name resolution, so a redirect or a
// changed DNS record cannot bypass the guard.
type Dialer struct {
	allow   map[string]bool // host:port, in lower case
	open    net.Dialer      // for hosts that the operator allows
	guarded net.Dialer
}

// NewDialer returns a Dialer that allows any address for allowHosts; see Options.AllowHosts.
func NewDialer(allowHosts []string) *Dialer {
	d := &Dialer{
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

// Dial connects to addr, a host:port from the URL. It returns ErrGuarded if the address is not
// public.
func (d *Dialer) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if d.Allows(addr) {
		return d.open.DialContext(ctx, network, addr)
	}
	return d.guarded.DialContext(ctx, network, addr)
}

// Allows reports whether addr, a host:port, is exempt from the guard.
func (d *Dialer) Allows(addr string) bool { return d.allow[hostKey(addr)] }

// HostPort returns the host and port of a URL, for Options.AllowHosts. If the URL has no port,
// it uses the default port of the scheme.
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
		return fmt.Errorf("%w: %q", ErrGuarded, address)
	}
	if Guarded(ap.Addr()) {
		return fmt.Errorf("%w: %s", ErrGuarded, ap.Addr())
	}
	return nil
}
