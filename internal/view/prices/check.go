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

// checkTimeout is the timeout of a version query.
const checkTimeout = 10 * time.Second

// versionCheck reads the versions of all buckets. It coalesces callers: one query serves all
// waiting callers. A caller that arrives during a query waits for the next query, because the
// running query may miss a commit from before the call.
type versionCheck struct {
	store *db.DB
	sum   func(context.Context, *db.DB) (int64, error) // catalog.PriceVersion; tests replace it
	last  atomic.Pointer[known]

	mu      sync.Mutex
	running bool
	next    *round // not started yet; nil: no caller waits
}

// known is the result of the last round. It is immutable.
type known struct {
	sum      int64 // sum of all versions
	versions [catalog.Buckets]int64
}

// round is one query. Its result is set before done is closed.
type round struct {
	done     chan struct{}
	versions *[catalog.Buckets]int64
	err      error
}

// latest returns the version of each bucket, read after the call began.
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

// join returns the next round. It starts run if run is not active.
func (c *versionCheck) join(ctx context.Context) *round {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next == nil {
		c.next = &round{done: make(chan struct{})}
	}
	if !c.running {
		c.running = true
		// Cancelling the first caller must not end the round for the other callers.
		go c.run(context.WithoutCancel(ctx))
	}
	return c.next
}

// run executes rounds until no caller waits.
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

// begin removes the next round from the queue, so that later callers join a new one. If no
// caller waits, it returns nil and run ends.
func (c *versionCheck) begin() *round {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.next
	c.next, c.running = nil, r != nil
	return r
}

// query reads the sum of all versions, which never decreases. If the sum has changed, query also
// reads the version of each bucket.
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
