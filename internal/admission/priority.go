package admission

import (
	"context"
	"sync/atomic"
	"time"
)

// Limits of a Priority.
const (
	// restShare is how many times as long as a piece of work its rest is, for each
	// process that does such work.
	restShare = 3
	// longestRest is how long work rests at most.
	longestRest = time.Second
	// recent is how long after a request its like is expected.
	recent = time.Second
)

// Priority lets background work, done in pieces, give way to requests. While requests
// run, here or in other processes that share the work, and for a second after, one piece
// at a time is done here, and each is followed by a rest of three times its duration
// for each process: requests then find processors and rows free most of the time.
// Without requests the work is not slowed down. Its methods may be called concurrently.
type Priority struct {
	running   atomic.Int64 // requests
	begun     atomic.Int64 // requests, ever
	ended     atomic.Pointer[time.Time]
	elsewhere atomic.Pointer[others]
	one       chan struct{} // holds the piece that is done beside requests
}

// others is what was last seen of other processes.
type others struct {
	processes int // this one included
	busy      time.Time
}

// NewPriority returns a Priority without requests.
func NewPriority() *Priority { return &Priority{one: make(chan struct{}, 1)} }

// Begin notes that a request runs. The caller calls end, once, when it has ended.
func (p *Priority) Begin() (end func()) {
	p.running.Add(1)
	p.begun.Add(1)
	return func() {
		now := time.Now()
		p.ended.Store(&now)
		p.running.Add(-1)
	}
}

// Begun returns how many requests have begun, ever.
func (p *Priority) Begun() int64 { return p.begun.Load() }

// Seen notes how many processes share the work, this one included, and whether requests
// began in another one since the last look.
func (p *Priority) Seen(processes int, requests bool) {
	now := others{processes: processes}
	if before := p.elsewhere.Load(); before != nil {
		now.busy = before.busy
	}
	if requests {
		now.busy = time.Now()
	}
	p.elsewhere.Store(&now)
}

// Busy reports whether work gives way to requests now.
func (p *Priority) Busy() bool {
	if p.running.Load() > 0 {
		return true
	}
	if ended := p.ended.Load(); ended != nil && time.Since(*ended) < recent {
		return true
	}
	o := p.elsewhere.Load()
	return o != nil && time.Since(o.busy) < 2*recent // they are looked at every second or so
}

// Beside does a piece of work, which reports whether there is more. If there is, and
// requests ran beside it or recently, it rests before it returns, unless ctx ends.
func (p *Priority) Beside(ctx context.Context, piece func(context.Context) (more bool, err error)) (more bool, err error) {
	if p.Busy() {
		select {
		case p.one <- struct{}{}:
			defer func() { <-p.one }()
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	began := time.Now()
	if more, err = piece(ctx); !more || err != nil || !p.Busy() {
		return more, err
	}
	share := restShare
	if o := p.elsewhere.Load(); o != nil {
		share *= max(1, o.processes)
	}
	rest := time.NewTimer(min(time.Duration(share)*time.Since(began), longestRest))
	defer rest.Stop()
	select {
	case <-rest.C:
	case <-ctx.Done():
	}
	return more, nil
}
