package admission

import (
	"context"
	"sync"
	"time"
)

// Coalescer lets concurrent callers share one read. It runs one read at a time. It never
// returns the result of a read that started before the call. Its methods are safe for
// concurrent use.
type Coalescer[T any] struct {
	rests   bool
	reading chan struct{} // full while a read or the rest after it runs
	mu      sync.Mutex
	next    *shared[T] // next read to start; nil: none
}

// shared is a read and its result. The result is set before done is closed.
type shared[T any] struct {
	calls int // number of calls that share the read; final when the read starts
	done  chan struct{}
	ok    bool // value and err are valid, because the context of the reading call had not ended
	value T
	err   error
}

// NewCoalescer returns a Coalescer. If rests is true, the Coalescer rests between two
// reads like a Gate. The rest is at least minRest per call that shared the read.
func NewCoalescer[T any](rests bool) *Coalescer[T] {
	return &Coalescer[T]{rests: rests, reading: make(chan struct{}, 1)}
}

// Do returns the result of read. Concurrent callers may share the result, so they must
// not modify it. They also share an error of the read, unless the context of the caller
// that reads has ended. In that case another caller reads.
func (c *Coalescer[T]) Do(ctx context.Context, read func(context.Context) (T, error)) (T, error) {
	for {
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
			return next.value, next.err
		}
	}
}

// read waits for the end of the previous read, then runs read and stores its result in
// mine.
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
	c.next = nil // later calls share a later read
	c.mu.Unlock()
	if err != nil {
		return value, err
	}
	value, err = read(ctx)
	mine.value, mine.err, mine.ok = value, err, err == nil || ctx.Err() == nil
	return value, err
}

// release lets the next read start. It rests first if other calls wait or shared this
// read, because their callers may call Do again immediately.
func (c *Coalescer[T]) release(began time.Time, calls int) {
	c.mu.Lock()
	rests := c.rests && (c.next != nil || calls > 1)
	c.mu.Unlock()
	if !rests {
		<-c.reading
		return
	}
	time.AfterFunc(restAfter(time.Since(began), calls), func() { <-c.reading })
}
