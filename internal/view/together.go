package view

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"

	"assay/internal/db"
)

// partsAtOnce is how many parts of a page are read at the same time.
const partsAtOnce = 3

// Together calls the parts of a page concurrently. While a refresh uses all processors, each
// statement waits for its turn, so parts that wait one after another make a page slow. Together
// returns the first error and then cancels the other parts. A panic of a part becomes a panic of
// the caller, because a panic in a goroutine of its own would end the process.
func Together(ctx context.Context, parts ...func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		group    sync.WaitGroup
		once     sync.Once
		failed   error
		panicked any
	)
	slots := make(chan struct{}, partsAtOnce)
	for _, part := range parts {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			defer func() {
				if p := recover(); p != nil {
					once.Do(func() { panicked = fmt.Sprintf("%v\n%s", p, debug.Stack()) })
					cancel()
				}
			}()
			if err := part(ctx); err != nil {
				once.Do(func() { failed = err })
				cancel()
			}
		})
	}
	group.Wait()
	if panicked != nil {
		panic(panicked)
	}
	return failed
}

// into returns a part that stores the result of read.
func into[T any](out *T, read func(context.Context) (T, error)) func(context.Context) error {
	return func(ctx context.Context) (err error) {
		*out, err = read(ctx)
		return err
	}
}

// from makes a query of a database a part for into.
func from[T any](s *db.DB, read func(context.Context, *db.DB) (T, error)) func(context.Context) (T, error) {
	return func(ctx context.Context) (T, error) { return read(ctx, s) }
}
