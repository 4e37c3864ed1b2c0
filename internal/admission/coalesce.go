package admission

import (
	"context"
	"sync"
	"time"
)

// Coalescer lets concurrent callers share one read, and runs one read at a time. It never
// returns a result read before the call. Its methods may be called concurrently.
type Coalescer[T any] struct {
	rests   bool
	reading chan struct{} // holds one while a read runs or rests
	mu      sync.Mutex
	next    *shared[T] // has not begun; nil: none
}

// shared is a read and its result, which is set once done is closed.
type shared[T any] struct {
	calls int // that share it; final once it has begun
	done  chan struct{}
	ok    bool // value was read
	value T
}

// NewCoalescer returns a Coalescer. If rests is set it rests between two reads as a slot
// of a Gate does, for at least leastRest for each call that shared the read.
func NewCoalescer[T any](rests bool) *Coalescer[T] {
	return &Coalescer[T]{rests: rests, reading: make(chan struct{}, 1)}
}

// Do returns what read returns, for this call or one that it shares a read with. Do not
// change the value. If the shared read fails, for instance because its client left, each
// other caller reads for itself.
func (c *Coalescer[T]) Do(ctx context.Context, read func(context.Context) (T, error)) (T, error) {
	c.mu.Lock()
	first := c.next == nil
	if first {
		c.next = &shared[T]{done: make(chan struct{})}
	}
	next := c.next
	next.calls++
	c.mu.Unlock()
	if first {
		return c.read(ctx, next, read)
	}
	select {
	case <-next.done:
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
	if next.ok {
		return next.value, nil
	}
	return read(ctx)
}

// read reads once the read before has ended.
func (c *Coalescer[T]) read(ctx context.Context, mine *shared[T], read func(context.Context) (T, error)) (value T, err error) {
	defer close(mine.done)
	select {
	case c.reading <- struct{}{}:
		began := time.Now()
		defer func() { c.release(began, mine.calls) }()
	case <-ctx.Done():
		err = ctx.Err()
	}
	c.mu.Lock()
	c.next = nil // a call from now on waits for a later read
	c.mu.Unlock()
	if err != nil {
		return value, err
	}
	if value, err = read(ctx); err == nil {
		mine.value, mine.ok = value, true
	}
	return value, err
}

// release lets the next read begin. It rests first if other calls wait or shared this
// read, since they may call again at once.
func (c *Coalescer[T]) release(began time.Time, answered int) {
	c.mu.Lock()
	rests := c.rests && (c.next != nil || answered > 1)
	c.mu.Unlock()
	if !rests {
		<-c.reading
		return
	}
	time.AfterFunc(restAfter(time.Since(began), answered), func() { <-c.reading })
}
