package access

import (
	"container/list"
	"context"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// Limits on wrong secrets.
const (
	// MaxFailures is the number of failures that an address may have in a FailureWindow.
	MaxFailures = 20
	// FailureWindow is the length of a window. The window of an address starts with its
	// first failure.
	FailureWindow = time.Minute
	// maxAddresses is the maximum number of addresses in the table. A further address
	// replaces the address with the oldest window.
	maxAddresses = 10_000
	// Each failure in the window adds delayStep to the delay of the next response, up to maxDelay.
	delayStep, maxDelay = 250 * time.Millisecond, 5 * time.Second
	// maxDelayed is the maximum number of responses that are delayed at the same time.
	maxDelayed = 256
	// maxLogged is the maximum number of logged failures in a FailureWindow. Only the
	// first failure of an address and the failure that exceeds its limit are logged.
	maxLogged = 20
)

// Failure is the consequence of a wrong secret.
type Failure struct {
	// RetryAfter is the remaining time of the window if the address has more than
	// MaxFailures failures. Otherwise it is 0.
	RetryAfter time.Duration
	// Delay is the time to wait before the response; see Failures.Wait.
	Delay time.Duration
	// Log reports whether to log this failure. Unlogged is the number of failures since
	// the last logged failure.
	Log      bool
	Unlogged int
}

// Over reports whether the address is over its limit.
func (f Failure) Over() bool { return f.RetryAfter > 0 }

// Failures counts wrong secrets by address. Correct secrets are not counted, and callers
// accept them even above the limit. It is safe for concurrent use.
type Failures struct {
	now func() time.Time

	total atomic.Int64

	mu     sync.Mutex
	byAddr map[netip.Addr]*list.Element
	order  *list.List // of *failureWindow, oldest first

	logSince         time.Time
	logged, unlogged int

	delayed chan struct{} // one element per delayed response
}

// failureWindow is the number of failures of an address since start.
type failureWindow struct {
	addr  netip.Addr
	start time.Time
	count int
}

// NewFailures returns an empty table with the given clock.
func NewFailures(now func() time.Time) *Failures {
	return &Failures{now: now, byAddr: make(map[netip.Addr]*list.Element), order: list.New(), delayed: make(chan struct{}, maxDelayed)}
}

// Fail counts a wrong secret. IPv6 addresses of the same /64 share a count, because a /64
// usually belongs to one subscriber.
func (f *Failures) Fail(addr netip.Addr) Failure {
	f.total.Add(1)
	addr = network(addr)
	now := f.now()
	f.mu.Lock()
	defer f.mu.Unlock()
	w := f.window(addr, now)
	before := w.count
	w.count = min(before+1, MaxFailures+1) // higher counts would have no further effect
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

// Total returns the number of wrong secrets since the start.
func (f *Failures) Total() int64 { return f.total.Load() }

// mayLog reports whether the log limit allows another failure. The caller must hold f.mu.
func (f *Failures) mayLog(now time.Time) bool {
	if age := now.Sub(f.logSince); age < 0 || age >= FailureWindow {
		f.logSince, f.logged = now, 0
	}
	f.logged++
	return f.logged <= maxLogged
}

// Wait waits for delay or until ctx ends. It returns immediately if maxDelayed responses
// wait already.
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

// window returns the current window of an address. It starts a new window if necessary.
// The caller must hold f.mu.
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

// network returns the first address of the /64 of an IPv6 address. It returns an IPv4
// address unchanged.
func network(addr netip.Addr) netip.Addr {
	addr = addr.Unmap()
	if !addr.Is6() {
		return addr
	}
	prefix, _ := addr.Prefix(64) // cannot fail for IPv6
	return prefix.Addr()
}
