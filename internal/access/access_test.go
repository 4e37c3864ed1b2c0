package access

import (
	"context"
	"encoding/binary"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestClient_UsesTheHeaderOfTrustedProxiesOnly(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	for name, c := range map[string]struct {
		peer    string
		forward []string
		want    string
	}{
		"direct":                         {"203.0.113.9:1000", nil, "203.0.113.9"},
		"untrusted peer with the header": {"203.0.113.9:1000", []string{"198.51.100.1"}, "203.0.113.9"},
		"through one proxy":              {"10.0.0.1:1000", []string{"198.51.100.1"}, "198.51.100.1"},
		"through two proxies":            {"10.0.0.1:1000", []string{"198.51.100.1, 10.0.0.2"}, "198.51.100.1"},
		"rightmost untrusted":            {"10.0.0.1:1000", []string{"1.2.3.4, 198.51.100.1, 10.0.0.2"}, "198.51.100.1"},
		"in several header lines":        {"10.0.0.1:1000", []string{"1.2.3.4", "198.51.100.1", "10.0.0.2"}, "198.51.100.1"},
		"stops at a malformed entry":     {"10.0.0.1:1000", []string{"1.2.3.4, unknown, 10.0.0.2"}, "10.0.0.2"},
		"proxy without the header":       {"10.0.0.1:1000", nil, "10.0.0.1"},
		"only proxies":                   {"10.0.0.1:1000", []string{"10.0.0.3,10.0.0.2"}, "10.0.0.3"},
		"with port":                      {"10.0.0.1:1000", []string{"198.51.100.1:4711"}, "198.51.100.1"},
		"IPv6 with port, mapped IPv4":    {"[::1]:1000", []string{"[2001:db8::1]:4711"}, "2001:db8::1"},
		"mapped IPv4 is IPv4":            {"[::ffff:10.0.0.1]:1000", []string{"::ffff:198.51.100.1"}, "198.51.100.1"},
		"reads a limited number of hops": {"10.0.0.1:1000", []string{"1.2.3.4" + strings.Repeat(",10.0.0.2", 1000)}, "10.0.0.2"},
		"removes an IPv6 zone":           {"[fe80::1%eth0]:1000", nil, "fe80::1"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &http.Request{RemoteAddr: c.peer, Header: http.Header{"X-Forwarded-For": c.forward}}
			if got := Client(r, trusted); got.String() != c.want {
				t.Errorf("Client = %v, want %s", got, c.want)
			}
		})
	}
}

func TestLocal_RejectsRemoteClientsBehindAProxy(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}
	for name, c := range map[string]struct {
		peer, header, value string
		want                bool
	}{
		"direct":                          {"127.0.0.1:1000", "", "", true},
		"direct by IPv6":                  {"[::1]:1000", "", "", true},
		"remote":                          {"203.0.113.9:1000", "", "", false},
		"remote with a forged header":     {"203.0.113.9:1000", "X-Forwarded-For", "127.0.0.1", false},
		"through an untrusted proxy":      {"127.0.0.1:1000", "X-Forwarded-For", "203.0.113.9", false},
		"untrusted proxy, Forwarded":      {"127.0.0.1:1000", "Forwarded", "for=127.0.0.1", false},
		"through a trusted proxy":         {"127.0.0.2:1000", "X-Forwarded-For", "203.0.113.9", false},
		"local through a trusted proxy":   {"127.0.0.2:1000", "X-Forwarded-For", "127.0.0.1", true},
		"trusted proxy, another header":   {"127.0.0.2:1000", "Forwarded", "for=203.0.113.5", false},
		"trusted proxy, its own header":   {"127.0.0.2:1000", "X-Real-Ip", "203.0.113.5", false},
		"trusted proxy, malformed header": {"127.0.0.2:1000", "X-Forwarded-For", "unknown", false},
		"trusted proxy, empty header":     {"127.0.0.2:1000", "X-Forwarded-For", "", false},
		"direct from a trusted address":   {"127.0.0.2:1000", "", "", true},
		"not by TCP":                      {"@", "", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := &http.Request{RemoteAddr: c.peer, Header: http.Header{}}
			if c.header != "" {
				r.Header.Set(c.header, c.value)
			}
			if got := Local(r, trusted); got != c.want {
				t.Errorf("Local = %v, want %v", got, c.want)
			}
		})
	}
}

// clock is a clock that a test sets.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func newTable() (*Failures, *clock) {
	c := &clock{at: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	return NewFailures(c.now), c
}

func TestFailures_ExceedTheLimitAfterTwentyInAMinute(t *testing.T) {
	f, clock := newTable()
	a, b := netip.MustParseAddr("203.0.113.9"), netip.MustParseAddr("203.0.113.10")
	for range MaxFailures {
		if f.Fail(a).Over() {
			t.Fatal("Over = true within the limit, want false")
		}
		clock.at = clock.at.Add(time.Second)
	}
	for range 1000 {
		if got := f.Fail(a); got.RetryAfter != 40*time.Second {
			t.Fatalf("Fail = %+v, want RetryAfter 40s", got)
		}
	}
	if f.Fail(b).Over() {
		t.Error("Over = true for another address, want false")
	}
	clock.at = clock.at.Add(40 * time.Second)
	if f.Fail(a).Over() {
		t.Error("Over = true in a new window, want false")
	}
}

func TestFailures_LimitRetryAfterWhenTheClockJumps(t *testing.T) {
	a := netip.MustParseAddr("203.0.113.9")
	for _, jump := range []time.Duration{-time.Hour, time.Hour, -400 * 24 * time.Hour, 400 * 24 * time.Hour} {
		f, clock := newTable()
		for range 2 * MaxFailures {
			f.Fail(a)
		}
		clock.at = clock.at.Add(jump)
		for range 2 * MaxFailures {
			if wait := f.Fail(a).RetryAfter; wait < 0 || wait > FailureWindow {
				t.Fatalf("after a jump of %v: got RetryAfter %v, want 0 to %v", jump, wait, FailureWindow)
			}
		}
	}
}

func TestFailures_CountIPv6ByNetwork(t *testing.T) {
	f, _ := newTable()
	var over bool
	for i := range MaxFailures + 1 {
		host := netip.MustParseAddr("2001:db8::").As16()
		host[15] = byte(i)
		over = f.Fail(netip.AddrFrom16(host)).Over()
	}
	if !over {
		t.Errorf("Over = false after %d failures of one /64, want true", MaxFailures+1)
	}
	if f.Fail(netip.MustParseAddr("2001:db8:0:1::1")).Over() {
		t.Error("Over = true for another /64, want false")
	}
}

func TestFailures_AreBoundedInMemory(t *testing.T) {
	f, _ := newTable()
	for i := range uint32(3 * maxAddresses) {
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], i)
		f.Fail(netip.AddrFrom4(b))
	}
	if len(f.byAddr) != maxAddresses || f.order.Len() != maxAddresses {
		t.Errorf("got %d addresses and %d windows, want %d", len(f.byAddr), f.order.Len(), maxAddresses)
	}
}

func TestFailures_IncreaseTheDelayUpToTheMaximum(t *testing.T) {
	f, clock := newTable()
	a, b := netip.MustParseAddr("203.0.113.9"), netip.MustParseAddr("203.0.113.10")
	last := time.Duration(-1)
	for range 100 {
		delay := f.Fail(a).Delay
		if delay < last || delay > 5*time.Second || delay == last && delay != 5*time.Second {
			t.Fatalf("got a delay of %v after %v, want more, up to 5s", delay, last)
		}
		last = delay
	}
	if last != 5*time.Second {
		t.Errorf("last delay: got %v, want 5s", last)
	}
	if got := f.Fail(b); got.Delay != 0 {
		t.Errorf("first failure of another address: got a delay of %v, want 0", got.Delay)
	}
	clock.at = clock.at.Add(FailureWindow)
	if got := f.Fail(a); got.Delay != 0 {
		t.Errorf("first failure in a new window: got a delay of %v, want 0", got.Delay)
	}
}

func TestFailures_LimitLogging(t *testing.T) {
	f, clock := newTable()
	count := func() (logged, unlogged int) {
		for i := range 5000 {
			if got := f.Fail(netip.AddrFrom4([4]byte{203, 0, 113, byte(i % 100)})); got.Log {
				logged++
				unlogged += got.Unlogged
			}
		}
		return logged, unlogged
	}
	if logged, _ := count(); logged != maxLogged {
		t.Errorf("first window: got %d logged failures, want %d", logged, maxLogged)
	}
	clock.at = clock.at.Add(FailureWindow)
	if logged, unlogged := count(); logged != maxLogged || unlogged < 5000-maxLogged {
		t.Errorf("second window: got %d logged and %d unlogged failures, want %d and at least %d", logged, unlogged, maxLogged, 5000-maxLogged)
	}
}

func TestFailures_LimitTheNumberOfDelayedResponses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewFailures(time.Now)
		var wg sync.WaitGroup
		began := time.Now()
		for range maxDelayed {
			wg.Go(func() { f.Wait(t.Context(), time.Second) })
		}
		synctest.Wait()
		f.Wait(t.Context(), time.Hour)
		if took := time.Since(began); took != 0 {
			t.Errorf("response above the limit: delayed for %v, want 0", took)
		}
		wg.Wait()
		if took := time.Since(began); took != time.Second {
			t.Errorf("delayed responses: took %v, want 1s", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		f.Wait(ctx, time.Hour)
	})
}
