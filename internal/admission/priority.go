package admission

import (
	"context"
	"sync/atomic"
	"time"
)

// Limits of a Priority.
const (
	// restShare is how many times as long as a piece of work its rest is.
	restShare = 3
	// longestRest is how long work rests at most.
	longestRest = time.Second
)

// Priority lets background work, done in pieces, give way to requests: after each
// piece beside which a request ran, the work rests three times as long as the piece
// took. However many slots work, the requests then find processors and rows free most
// of the time. Without requests the work is not slowed down. The zero Priority is
// ready; its methods may be called concurrently.
type Priority struct {
	running atomic.Int64 // requests
	begun   atomic.Int64 // requests, ever
}

// Begin notes that a request runs. The caller calls end, once, when it has ended.
func (p *Priority) Begin() (end func()) {
	p.running.Add(1)
	p.begun.Add(1)
	return func() { p.running.Add(-1) }
}

// Beside does a piece of work, which reports whether there is more. If there is, it
// rests before it returns, unless ctx ends.
func (p *Priority) Beside(ctx context.Context, piece func(context.Context) (more bool, err error)) (more bool, err error) {
	began, before, ran := time.Now(), p.begun.Load(), p.running.Load() > 0
	more, err = piece(ctx)
	if !more || err != nil || !ran && p.begun.Load() == before {
		return more, err
	}
	rest := time.NewTimer(min(restShare*time.Since(began), longestRest))
	defer rest.Stop()
	select {
	case <-rest.C:
	case <-ctx.Done():
	}
	return more, err
}
