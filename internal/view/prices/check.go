package prices

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"assay/internal/catalog"
	"assay/internal/db"
)

// checkTimeout is how long the database may take to report the versions.
const checkTimeout = 10 * time.Second

// versionCheck reads the versions of all buckets. Callers are coalesced: one query
// serves all that wait for it. A caller that arrives during a query waits for the
// next one, because the running one may have missed a commit the caller knows of.
type versionCheck struct {
	store *db.DB
	sum   func(context.Context, *db.DB) (int64, error) // catalog.PriceVersion
	last  atomic.Pointer[known]

	mu      sync.Mutex
	running bool
	next    *round // not yet started; nil: no caller waits
}

// known is the result of the last round. It does not change.
type known struct {
	sum      int64 // of the versions
	versions [catalog.Buckets]int64
}

// round is a query and its result, which is set once done is closed.
type round struct {
	done     chan struct{}
	versions *[catalog.Buckets]int64
	err      error
}

// latest returns the version of each bucket at a moment after the call.
func (c *versionCheck) latest(ctx context.Context) (*[catalog.Buckets]int64, error) {
	if sum, ok := catalog.KnownPriceVersion(c.store); ok {
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

// join returns the next round, and starts run if it is not running.
func (c *versionCheck) join(ctx context.Context) *round {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next == nil {
		c.next = &round{done: make(chan struct{})}
	}
	if !c.running {
		c.running = true
		// The round serves all callers, so it must not end with the first one.
		go c.run(context.WithoutCancel(ctx))
	}
	return c.next
}

// run starts rounds as long as callers wait for one.
func (c *versionCheck) run(ctx context.Context) {
	for {
		runtime.Gosched() // lets callers that are about to arrive join this round
		r := c.begin()
		if r == nil {
			return
		}
		r.versions, r.err = c.query(ctx)
		close(r.done)
	}
}

// begin closes the next round to new callers. It returns nil, and run ends, if no
// caller waits.
func (c *versionCheck) begin() *round {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.next
	c.next, c.running = nil, r != nil
	return r
}

// query reads the sum of all versions, which only grows. It reads the versions
// themselves only if the sum has changed.
func (c *versionCheck) query(ctx context.Context) (*[catalog.Buckets]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	sum, err := c.sum(ctx, c.store)
	if err != nil {
		return nil, err
	}
	if last := c.last.Load(); last != nil && last.sum == sum {
		return &last.versions, nil
	}
	next := &known{}
	if next.versions, err = catalog.PriceVersions(ctx, c.store); err != nil {
		return nil, err
	}
	for _, v := range next.versions {
		next.sum += v
	}
	c.last.Store(next)
	return &next.versions, nil
}
