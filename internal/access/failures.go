package access

import (
	"container/list"
	"net/netip"
	"sync"
	"time"
)

// Limits of wrong secrets.
const (
	MaxFailures = 20 // of one address within FailureWindow are answered as such
	// FailureWindow is counted from an address's first wrong secret.
	FailureWindow = time.Minute
	// maxAddresses bounds the table; the address whose window began first
	// leaves it for a new one.
	maxAddresses = 10_000
)

// Failures counts wrong secrets by address. It never refuses anybody: a right
// secret is not asked about. It is safe for concurrent use.
type Failures struct {
	now func() time.Time

	mu     sync.Mutex
	byAddr map[netip.Addr]*list.Element
	order  *list.List // of *failureWindow, the one that began first in front
}

// failureWindow counts the wrong secrets of an address since start.
type failureWindow struct {
	addr  netip.Addr
	start time.Time
	count int
}

// NewFailures returns an empty table.
func NewFailures(now func() time.Time) *Failures {
	return &Failures{now: now, byAddr: make(map[netip.Addr]*list.Element), order: list.New()}
}

// Fail counts a wrong secret. Where the address had more than MaxFailures
// within the window, over is true and wait is how long the window still lasts.
// Addresses of IPv6 count by their /64, of which one subscriber has them all.
func (f *Failures) Fail(addr netip.Addr) (wait time.Duration, over bool) {
	addr = network(addr)
	now := f.now()
	f.mu.Lock()
	defer f.mu.Unlock()
	w := f.window(addr, now)
	w.count++
	if w.count <= MaxFailures {
		return 0, false
	}
	w.count = MaxFailures + 1 // more are no different
	return w.start.Add(FailureWindow).Sub(now), true
}

// window returns the address's window that now lies in.
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
