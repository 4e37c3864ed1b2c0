package view

import (
	"context"
	"sync"
)

// turns lets those who ask at the same time share one reading, and one reading go on
// at a time: however many ask, the database is read no more often than it answers.
// Nobody is told what was read before he asked.
type turns[T any] struct {
	reading chan struct{} // holds one while somebody reads
	mu      sync.Mutex
	next    *turn[T] // which has not begun; nil: there is none
}

type turn[T any] struct {
	done  chan struct{}
	ok    bool // value was read
	value T
}

func newTurns[T any]() *turns[T] { return &turns[T]{reading: make(chan struct{}, 1)} }

// get returns what read returns. Who waits for another's reading that fails, for
// instance because that one went away, reads for himself.
func (t *turns[T]) get(ctx context.Context, read func(context.Context) (T, error)) (T, error) {
	t.mu.Lock()
	mine := t.next == nil
	if mine {
		t.next = &turn[T]{done: make(chan struct{})}
	}
	next := t.next
	t.mu.Unlock()
	if mine {
		return t.take(ctx, next, read)
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

// take reads when the one before is done.
func (t *turns[T]) take(ctx context.Context, mine *turn[T], read func(context.Context) (T, error)) (value T, err error) {
	defer close(mine.done)
	select {
	case t.reading <- struct{}{}:
		defer func() { <-t.reading }()
	case <-ctx.Done():
		err = ctx.Err()
	}
	t.mu.Lock()
	t.next = nil // who asks from now on is told of a later reading
	t.mu.Unlock()
	if err != nil {
		return value, err
	}
	if value, err = read(ctx); err == nil {
		mine.value, mine.ok = value, true
	}
	return value, err
}
