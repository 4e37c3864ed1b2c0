package access

import (
	"container/list"
	"context"
	"net/netip"
	"sync"
	"time"
)

// Limits of wrong secrets.
const (
	MaxFailures = 20 // of one address within FailureWindow, before it is over its limit
	// FailureWindow is counted from an address's first wrong secret.
	FailureWindow = time.Minute
	// maxAddresses bounds the table; the address whose window began first
	// leaves it for a new one.
	maxAddresses = 10_000
	// Each failure within the window delays the response to the next one.
	delayStep, maxDelay = 250 * time.Millisecond, 5 * time.Second
	// maxDelayed is how many responses are delayed at once.
	maxDelayed = 256
	// maxLogged is how many failures are logged in a FailureWindow: the first one of
	// an address, and the one with which it is over its limit.
	maxLogged = 20
)

// Failure is the consequence of a wrong secret.
type Failure struct {
	// RetryAfter is the rest of the address's window if it has more than MaxFailures
	// failures, otherwise 0.
	RetryAfter time.Duration
	// Delay is how long to wait before the answer; see Failures.Wait.
	Delay time.Duration
	// Log reports whether to log this one. Unlogged is how many were not logged since the
	// last one.
	Log      bool
	Unlogged int
}

// Over reports whether the address is over its limit.
func (f Failure) Over() bool { return f.RetryAfter > 0 }

// Failures counts wrong secrets by address. It never refuses or delays a right secret,
// which is not counted. It is safe for concurrent use.
type Failures struct {
	now func() time.Time

	mu     sync.Mutex
	byAddr map[netip.Addr]*list.Element
	order  *list.List // of *failureWindow, the one that began first in front

	logSince         time.Time
	logged, unlogged int

	delayed chan struct{} // one for each answer that is delayed
}

// failureWindow counts the wrong secrets of an address since start.
type failureWindow struct {
	addr  netip.Addr
	start time.Time
	count int
}

// NewFailures returns an empty table.
func NewFailures(now func() time.Time) *Failures {
	return &Failures{now: now, byAddr: make(map[netip.Addr]*list.Element), order: list.New(), delayed: make(chan struct{}, maxDelayed)}
}

// Fail counts a wrong secret. IPv6 addresses count by their /64, which belongs to one
// subscriber.
func (f *Failures) Fail(addr netip.Addr) Failure {
	addr = network(addr)
	now := f.now()
	f.mu.Lock()
	defer f.mu.Unlock()
	w := f.window(addr, now)
	before := w.count
	w.count = min(before+1, MaxFailures+1) // a higher count has no effect
	out := Failure{Delay: min(time.Duration(before)*delayStep, maxDelay)}
	if w.count > MaxFailures {
		out.RetryAfter = w.start.Add(FailureWindow).Sub(now)
	}
	if first := before == 0 || before == MaxFailures; first && f.mayLog(now) {
		out.Log, out.Unlogged, f.unlogged = true, f.unlogged, 0
	} else {
		f.unlogged++
	}
	return out
}

// mayLog needs the lock.
func (f *Failures) mayLog(now time.Time) bool {
	if age := now.Sub(f.logSince); age < 0 || age >= FailureWindow {
		f.logSince, f.logged = now, 0
	}
	f.logged++
	return f.logged <= maxLogged
}

// Wait delays the response to a wrong secret, unless too many are delayed already.
func (f *Failures) Wait(ctx context.Context, delay time.Duration) {
	select {
	case f.delayed <- struct{}{}:
		defer func() { <-f.delayed }()
	default:
		return
	}
	t := time.NewTimer(delay)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// window returns the current window of an address.
func (f *Failures) window(addr netip.Addr, now time.Time) *failureWindow {
	element := f.byAddr[addr]
	if element == nil {
		if f.order.Len() == maxAddresses {
			delete(f.byAddr, f.order.Remove(f.order.Front()).(*failureWindow).addr)
		}
		w := &failureWindow{addr: addr, start: now}
		f.byAddr[addr] = f.order.PushBack(w)
		return w
	}
	w := element.Value.(*failureWindow)
	if age := now.Sub(w.start); age < 0 || age >= FailureWindow {
		w.start, w.count = now, 0
		f.order.MoveToBack(element)
	}
	return w
}

func network(addr netip.Addr) netip.Addr {
	addr = addr.Unmap()
	if !addr.Is6() {
		return addr
	}
	prefix, _ := addr.Prefix(64) // 64 fits every IPv6 address
	return prefix.Addr()
}
