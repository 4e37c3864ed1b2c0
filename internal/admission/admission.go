// Package admission controls the load of expensive work. A Gate limits how many expensive
// reads run at the same time. A Coalescer lets identical reads share one result. A
// Priority slows background work down while requests run.
//
// Health checks, postings, listings and syncs therefore get processor time and database
// connections even during a flood of reads or a refresh.
package admission

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"

	"assay/internal/fault"
)

// Class is a kind of expensive read. Each class has its own queue, and the gate serves
// the classes round-robin. A flood of one class does not starve the others.
type Class int

// The classes.
const (
	Search       Class = iota // lists of items, with or without a search
	Inventory                 // pages of an inventory, with the total
	Explanation               // an item with the quotes of all markets
	DryRun                    // the plan of a refresh that is not run
	List                      // cheap reads: pages of a list by key, and the debug reports
	Verification              // a check of all entries of a wallet
	classes      = int(Verification) + 1
)

// Limits of a Gate.
const (
	// QueueSize is the maximum number of waiting reads per class.
	QueueSize = 64
	// MaxWait is the longest wait for a slot. A rejected read also waits that long. Otherwise
	// clients that retry immediately would take more processor time than the reads.
	MaxWait = time.Second
	// minRest and maxRest limit the pause of a slot between two reads; see Gate.
	minRest = time.Millisecond
	maxRest = 250 * time.Millisecond
	// burst is the time that reads may work without a rest. It covers a person who opens a few pages
	// at once. A flood uses it up in the first moment.
	burst = 200 * time.Millisecond
	// maxSlots keeps concurrent reads within their share of database connections.
	maxSlots = 4
)

// Slots returns how many reads may run at the same time on this machine: half the number
// of processors, at least 1 and at most 4.
func Slots() int { return min(max(runtime.GOMAXPROCS(0)/2, 1), maxSlots) }

// ListSlots returns how many reads of class List may run at the same time, in addition to Slots: 1,
// or 0 if Slots takes all processors. All slots together never exceed the number of processors, so
// that floods of both kinds still use at most half of the processor time.
func ListSlots() int { return min(runtime.GOMAXPROCS(0)-Slots(), 1) }

// Gate limits how many reads run at the same time. While other reads wait, a slot rests
// after each read for the duration of that read. A flood of reads then uses at most half
// of the processor time. The rest is at least minRest, because after a short read the
// server still spends time on parsing, encoding and logging. Reads do not rest until they
// have worked for burst more than they have left the slots free. The methods of a Gate are
// safe for concurrent use.
type Gate struct {
	lists  *Gate // admits reads of class List; nil: they share the slots of the other classes
	mu     sync.Mutex
	free   int                      // free slots
	queues [classes][]chan struct{} // one channel per waiting read, closed on admission
	last   Class                    // class that got the last slot
	worked time.Duration            // work since the slots were free for as long; at most burst
	seen   time.Time                // when free changed last
}

// New returns a Gate whose classes share the given number of slots.
func New(slots int) *Gate { return &Gate{free: slots} }

// NewWithLists returns a Gate with separate slots for the class List. Cheap reads then do not wait
// for expensive ones. If lists is 0, all classes share the slots.
func NewWithLists(slots, lists int) *Gate {
	g := New(slots)
	if lists > 0 {
		g.lists = New(lists)
	}
	return g
}

// Enter waits for a slot. The caller must call leave once when the read has ended. With a
// context from Hold, the request keeps the slot after leave. Enter returns a fault.Busy if
// the queue is full or the wait exceeds MaxWait. It returns ctx.Err() if ctx ends.
func (g *Gate) Enter(ctx context.Context, c Class) (leave func(), err error) {
	cheap := c == List && g.lists != nil
	request := holderOf(ctx)
	if request != nil {
		select {
		case request.entering <- struct{}{}:
			defer func() { <-request.entering }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if request.holds(cheap) {
		return func() {}, ctx.Err()
	}
	slots := g
	if cheap {
		slots = g.lists
	}
	if leave, err = slots.wait(ctx, c); err != nil {
		return nil, err
	}
	return request.keep(leave, cheap), nil
}

// wait waits for a slot; leave frees it.
func (g *Gate) wait(ctx context.Context, c Class) (leave func(), err error) {
	g.mu.Lock()
	switch {
	case ctx.Err() != nil:
		g.mu.Unlock()
		return nil, ctx.Err()
	case g.free > 0:
		g.rested()
		g.free--
		g.mu.Unlock()
		return g.leaver(), nil
	}
	var admitted chan struct{} // nil if the queue is full; the select below then times out
	if len(g.queues[c]) < QueueSize {
		admitted = make(chan struct{})
		g.queues[c] = append(g.queues[c], admitted)
	}
	g.mu.Unlock()

	timeout := time.NewTimer(MaxWait)
	defer timeout.Stop()
	select {
	case <-admitted:
		return g.leaver(), nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-timeout.C:
		err = busy()
	}
	if admitted == nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.queues[c], admitted); i >= 0 {
		g.queues[c] = slices.Delete(g.queues[c], i, i+1)
		return nil, err
	}
	return g.leaver(), nil // the read got its slot just before the wait ended
}

// leaver returns the leave function of a read that starts now.
func (g *Gate) leaver() func() {
	began := time.Now()
	return func() {
		took := time.Since(began)
		if g.mustRest(took) {
			time.AfterFunc(restAfter(took, 1), g.release)
			return
		}
		g.release()
	}
}

// rested subtracts the time that slots were free from the work. The caller must hold g.mu.
func (g *Gate) rested() {
	now := time.Now()
	g.worked = max(0, g.worked-time.Duration(g.free)*min(now.Sub(g.seen), burst))
	g.seen = now
}

// restAfter returns how long to rest after a read. calls is the number of calls that
// shared the read.
func restAfter(took time.Duration, calls int) time.Duration {
	return min(max(took, time.Duration(calls)*minRest), maxRest)
}

// mustRest counts a read and reports whether its slot must rest: other reads wait, and the burst is
// used up.
func (g *Gate) mustRest(took time.Duration) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.rested()
	g.worked = min(g.worked+max(took, minRest), burst)
	return g.worked == burst && slices.ContainsFunc(g.queues[:], func(queue []chan struct{}) bool { return len(queue) > 0 })
}

// release passes the slot to the next class with a waiting read, or frees it.
func (g *Gate) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for range classes {
		g.last = (g.last + 1) % Class(classes)
		if queue := g.queues[g.last]; len(queue) > 0 {
			close(queue[0])
			g.queues[g.last] = slices.Delete(queue, 0, 1)
			return
		}
	}
	g.rested()
	g.free++
}

func busy() error {
	f := fault.New(fault.Busy, "busy", "Too many reads of this kind are running. Retry later.")
	f.RetryAfter = MaxWait
	return f
}
