package provider

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"testing"
)

func TestGuarded_BlocksNonPublicAddresses(t *testing.T) {
	for _, s := range []string{
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.0", "100.127.255.255", "127.0.0.1", "127.255.255.254", "168.63.129.16",
		"169.254.0.1", "169.254.169.254", "172.16.0.0", "172.31.255.255", "192.0.0.1", "192.0.0.170", "192.0.2.1", "192.88.99.1",
		"192.168.0.1", "192.168.255.255", "198.18.0.0", "198.19.255.255", "198.51.100.7", "203.0.113.7",
		"224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
		"::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:8.8.8.8", "64:ff9b::7f00:1", "64:ff9b::808:808",
		"64:ff9b:1::1", "100::1", "2001::1", "2001:0:5ef5:79fb::1", "2001:2::1", "2001:10::1", "2001:20::1", "2001:db8::1",
		"2002:7f00:1::", "2002:a00:1::1", "3fff::1", "5f00::1", "fc00::1", "fd12:3456::1", "fe80::1", "fe80::1%eth0", "febf::1",
		"fec0::1", "ff02::1", "ff0e::1", "4000::1",
	} {
		if !Guarded(netip.MustParseAddr(s)) {
			t.Errorf("Guarded(%s) = false, want true", s)
		}
	}
	if !Guarded(netip.Addr{}) {
		t.Error("Guarded(invalid address) = false, want true")
	}
}

func TestGuarded_AllowsPublicAddresses(t *testing.T) {
	for _, s := range []string{
		"1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.1",
		"169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.1", "192.167.255.255", "192.169.0.0",
		"198.17.255.255", "198.20.0.0", "203.0.112.255", "223.255.255.255",
		"2000::1", "2001:200::1", "2001:4860:4860::8888", "2003::1", "2606:4700:4700::1111", "2a00:1450:4001::1", "3ffe::1",
	} {
		if Guarded(netip.MustParseAddr(s)) {
			t.Errorf("Guarded(%s) = true, want false", s)
		}
	}
}

func TestDialer_AllowsOnlyListedHosts(t *testing.T) {
	d := NewDialer([]string{"Sim.Test", "127.0.0.1:8081", "::1", "named.test.:9"})
	for addr, want := range map[string]bool{
		"sim.test:80": true, "SIM.TEST:443": true, "sim.test.:80": true, "sim.test:8080": false, "[::1]:8080": false, "sim.test.evil:80": false, "xsim.test:80": false,
		"127.0.0.1:8081": true, "127.0.0.1:8082": false, "[::1]:80": true, "named.test:9": true, "named.test:10": false, "": false, "sim.test": false,
	} {
		if got := d.Allows(addr); got != want {
			t.Errorf("allows(%q) = %v, want %v", addr, got, want)
		}
	}
}

// The dialer resolves names itself, so it checks every resolved address.
func TestDialer_ChecksResolvedAddress(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	for _, host := range []string{"localhost", "127.0.0.1", "::1"} {
		conn, err := NewDialer(nil).Dial(t.Context(), "tcp", net.JoinHostPort(host, port))
		if !errors.Is(err, ErrGuarded) {
			t.Errorf("dial %s: got error %v, want %v", host, err, ErrGuarded)
		}
		if conn != nil {
			_ = conn.Close()
		}
	}
}

func TestHostPort_DefaultsToPortOfScheme(t *testing.T) {
	for address, want := range map[string]string{
		"https://a.test": "a.test:443", "http://a.test/x": "a.test:80", "https://a.test:8443": "a.test:8443", "http://[::1]": "[::1]:80",
	} {
		u, err := url.Parse(address)
		if err != nil || HostPort(u) != want {
			t.Errorf("HostPort(%s) = %s, want %s", address, HostPort(u), want)
		}
	}
}
