// Package admission bounds how many expensive reads run at once (Gate), lets equal ones
// share a read (Coalescer), and lets background work give way to requests (Priority). A
// flood of reads or a refresh then leaves processor time and database connections to
// health checks, postings, listings and syncs.
package admission

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"

	"assay/internal/fault"
)

// Class is a kind of expensive read. Each class has its own queue, and free slots
// go round the classes: a flood of one class does not starve the others.
type Class int

// The classes.
const (
	Search       Class = iota // lists of items, with or without a search
	Inventory                 // pages of an inventory, with the total
	Explanation               // an item with every market's quote
	DryRun                    // what a refresh would do
	List                      // any other list, and the debug reports
	Verification              // a wallet, from its first entry on
	classes      = int(Verification) + 1
)

// Limits of a Gate.
const (
	// Queue is how many reads of one class wait at most.
	Queue = 64
	// Patience is how long a read waits at most. A refused read also waits that long, since
	// a client that repeats it at once would take more processor time than a read.
	Patience = time.Second
	// leastRest and mostRest bound how long a slot rests between two reads; see Gate.
	leastRest = time.Millisecond
	mostRest  = 250 * time.Millisecond
	// mostSlots keeps the reads within the database connections that they share.
	mostSlots = 4
)

// Slots returns how many reads may run at once on this machine: half of its
// processors, at least 1 and at most 4.
func Slots() int { return min(max(runtime.GOMAXPROCS(0)/2, 1), mostSlots) }

// Gate admits reads. While reads wait, a slot rests after each one for as long as that
// one took, so that a flood leaves half of its processor to everything else. After a
// short read it rests for leastRest, since parsing, encoding and logging its request cost
// more than the read. Its methods may be called concurrently.
type Gate struct {
	mu     sync.Mutex
	free   int
	queues [classes][]chan struct{} // a channel is closed when its read is admitted
	last   Class                    // that got the last free slot
}

// New returns a Gate that lets so many reads run at once.
func New(slots int) *Gate { return &Gate{free: slots} }

// Enter waits for a slot. The caller calls leave, once, when the read has ended; see Hold
// for requests that hold the slot beyond that. The error is a fault.Busy if the queue is
// full or the wait too long, or that of ctx.
func (g *Gate) Enter(ctx context.Context, c Class) (leave func(), err error) {
	request := holderOf(ctx)
	if request.holds() {
		return func() {}, ctx.Err()
	}
	if leave, err = g.wait(ctx, c); err != nil {
		return nil, err
	}
	return request.keep(leave), nil
}

// wait waits for a slot; leave gives it back.
func (g *Gate) wait(ctx context.Context, c Class) (leave func(), err error) {
	g.mu.Lock()
	switch {
	case ctx.Err() != nil:
		g.mu.Unlock()
		return nil, ctx.Err()
	case g.free > 0:
		g.free--
		g.mu.Unlock()
		return g.leaver(), nil
	}
	var admitted chan struct{} // nil if the queue is full: blocks until the patience ends
	if len(g.queues[c]) < Queue {
		admitted = make(chan struct{})
		g.queues[c] = append(g.queues[c], admitted)
	}
	g.mu.Unlock()

	patience := time.NewTimer(Patience)
	defer patience.Stop()
	select {
	case <-admitted:
		return g.leaver(), nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-patience.C:
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
	return g.leaver(), nil // admitted in the same moment
}

// leaver returns the function that ends a read that begins now.
func (g *Gate) leaver() func() {
	began := time.Now()
	return func() {
		if g.anyWaits() {
			time.AfterFunc(restAfter(time.Since(began), 1), g.release)
			return
		}
		g.release()
	}
}

// restAfter returns the rest after a read of that duration and so many requests.
func restAfter(took time.Duration, answered int) time.Duration {
	return min(max(took, time.Duration(answered)*leastRest), mostRest)
}

func (g *Gate) anyWaits() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.ContainsFunc(g.queues[:], func(queue []chan struct{}) bool { return len(queue) > 0 })
}

// release hands the slot to the next class in turn that waits.
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
	g.free++
}

func busy() error {
	f := fault.New(fault.Busy, "busy", "Too many reads of this kind are running. Retry later.")
	f.RetryAfter = Patience
	return f
}
