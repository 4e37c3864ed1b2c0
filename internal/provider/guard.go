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
)

// dialTimeout bounds the making of one connection, TLS aside.
const dialTimeout = 10 * time.Second

// guarded lists what no public service can have as its address, from IANA's
// special-purpose registries (RFC 6890 and its updates). netip.Addr.IsPrivate
// and its sisters miss about half of it.
var guarded = [...]netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),        // this network; unspecified (RFC 791)
	netip.MustParsePrefix("10.0.0.0/8"),       // private (RFC 1918)
	netip.MustParsePrefix("100.64.0.0/10"),    // carrier-grade NAT (RFC 6598)
	netip.MustParsePrefix("127.0.0.0/8"),      // loopback (RFC 1122)
	netip.MustParsePrefix("168.63.129.16/32"), // Azure's host services, in each virtual network
	netip.MustParsePrefix("169.254.0.0/16"),   // link-local, metadata of clouds (RFC 3927)
	netip.MustParsePrefix("172.16.0.0/12"),    // private (RFC 1918)
	netip.MustParsePrefix("192.0.0.0/24"),     // IETF protocol assignments (RFC 6890)
	netip.MustParsePrefix("192.0.2.0/24"),     // documentation (RFC 5737)
	netip.MustParsePrefix("192.88.99.0/24"),   // 6to4 relays, deprecated (RFC 7526)
	netip.MustParsePrefix("192.168.0.0/16"),   // private (RFC 1918)
	netip.MustParsePrefix("198.18.0.0/15"),    // benchmarks (RFC 2544)
	netip.MustParsePrefix("198.51.100.0/24"),  // documentation (RFC 5737)
	netip.MustParsePrefix("203.0.113.0/24"),   // documentation (RFC 5737)
	netip.MustParsePrefix("224.0.0.0/4"),      // multicast (RFC 5771)
	netip.MustParsePrefix("240.0.0.0/4"),      // reserved, and broadcast (RFC 1112, 919)

	netip.MustParsePrefix("2001::/23"),     // IETF assignments: Teredo, benchmarks, ORCHID (RFC 2928)
	netip.MustParsePrefix("2001:db8::/32"), // documentation (RFC 3849)
	netip.MustParsePrefix("2002::/16"),     // 6to4: any IPv4 address within (RFC 3056)
	netip.MustParsePrefix("3fff::/20"),     // documentation (RFC 9637)
}

// globalUnicast is the only part of IPv6 that is given out for public use (RFC
// 4291, IANA). Outside of it lie unspecified, loopback, IPv4-mapped and
// -compatible, NAT64 (64:ff9b::/96, 64:ff9b:1::/48), discard, unique local,
// link-local, site-local and multicast addresses.
var globalUnicast = netip.MustParsePrefix("2000::/3")

// Guarded reports whether addr is one that a price source on the internet
// cannot have, so that a request to it would reach into the operator's own
// network. What is not an address is guarded too.
func Guarded(addr netip.Addr) bool {
	addr = addr.WithZone("") // a prefix never contains an address with a zone
	if addr.Is6() && !globalUnicast.Contains(addr) {
		return true
	}
	for _, p := range guarded {
		if p.Contains(addr) {
			return true
		}
	}
	return !addr.IsValid()
}

// errGuarded is the cause of a dial that the guard refused.
var errGuarded = errors.New("address is not public")

// dialer makes connections. Every address is checked when it is dialled, after
// the name was resolved: so neither a redirect nor a name that changes its
// address gets past.
type dialer struct {
	allow   map[string]bool // host:port, in lower case
	open    net.Dialer      // for hosts that the operator named
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

// dial connects to addr, host:port as the URL has them.
func (d *dialer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if d.allows(addr) {
		return d.open.DialContext(ctx, network, addr)
	}
	return d.guarded.DialContext(ctx, network, addr)
}

func (d *dialer) allows(addr string) bool { return d.allow[hostKey(addr)] }

// HostPort returns host and port of an address, for Options.AllowHosts: its own port,
// or that of its scheme.
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

// hostKey spells a host, or a host with its port, in one way.
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
