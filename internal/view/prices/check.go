package prices

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"assay/internal/catalog"
)

// checkTimeout is how long the database may take to tell the versions.
const checkTimeout = 10 * time.Second

// check learns the versions of all buckets. One query serves all who wait for
// it. Who comes while one is under way waits for the next: the running one may
// have been answered before the commit that he knows of.
type check struct {
	store Store
	last  atomic.Pointer[known]

	mu      sync.Mutex
	running bool
	next    *round // has not begun; nil: nobody waits for it
}

// known is what the last round found; it is not changed afterwards.
type known struct {
	sum      int64 // of the versions
	versions [catalog.Buckets]int64
}

// round is a query and its answer, which is there once done is closed.
type round struct {
	done     chan struct{}
	versions *[catalog.Buckets]int64
	err      error
}

// latest returns the version of each bucket at a moment after the call.
func (c *check) latest(ctx context.Context) (*[catalog.Buckets]int64, error) {
	if sum, ok := c.store.KnownPriceVersion(); ok {
		if last := c.last.Load(); last != nil && last.sum == sum {
			return &last.versions, nil
		}
	}
	r := c.join(ctx)
	select {
	case <-r.done:
		return r.versions, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// join returns the next round to begin, and sees to it that it does.
func (c *check) join(ctx context.Context) *round {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next == nil {
		c.next = &round{done: make(chan struct{})}
	}
	if !c.running {
		c.running = true
		// It works for all who join, so it does not end with the one who came first.
		go c.run(context.WithoutCancel(ctx))
	}
	return c.next
}

// run goes on as long as somebody waits for another round.
func (c *check) run(ctx context.Context) {
	for {
		runtime.Gosched() // whoever is about to ask joins this round
		r := c.begin()
		if r == nil {
			return
		}
		r.versions, r.err = c.query(ctx)
		close(r.done)
	}
}

// begin closes the next round to others, or ends the running where nobody waits.
func (c *check) begin() *round {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.next
	c.next, c.running = nil, r != nil
	return r
}

// query asks for the sum of all versions, which only grows, and for each of them
// where it did.
func (c *check) query(ctx context.Context) (*[catalog.Buckets]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	sum, err := c.store.PriceVersion(ctx)
	if err != nil {
		return nil, err
	}
	if last := c.last.Load(); last != nil && last.sum == sum {
		return &last.versions, nil
	}
	next := &known{}
	if next.versions, err = c.store.PriceVersions(ctx); err != nil {
		return nil, err
	}
	for _, v := range next.versions {
		next.sum += v
	}
	c.last.Store(next)
	return &next.versions, nil
}
