package admission

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Limits of a Priority.
const (
	// restShare is the ratio of a rest to the work before it, for each process that
	// does such work.
	restShare = 3
	// longestRest bounds one rest, briefRest one of work that mostly waits, and totalRest
	// all rests of a piece together.
	longestRest = time.Second
	briefRest   = 50 * time.Millisecond
	totalRest   = 10 * time.Second
	// stretch is the least work between two rests.
	stretch = 4 * time.Millisecond
	// recent is how long after a request more are expected.
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

// others is the last report about other processes.
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

// Seen stores how many processes share the work, this one included, and whether requests
// began in another one since the last report.
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
	return o != nil && time.Since(o.busy) < 2*recent // reported about every second
}

// Beside does a piece of work, which reports whether there is more. If there is, and
// requests ran beside it or recently, it rests before it returns, unless ctx ends. A
// piece that takes long calls Rest with its context.
func (p *Priority) Beside(ctx context.Context, piece func(context.Context) (more bool, err error)) (more bool, err error) {
	if p.Busy() {
		select {
		case p.one <- struct{}{}:
			defer func() { <-p.one }()
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	w := &paced{priority: p, longest: longestRest, since: time.Now()}
	if more, err = piece(context.WithValue(ctx, pacedKey{}, w)); more && err == nil {
		w.rest(ctx, 0)
	}
	return more, err
}

// Paced returns a context for work that runs beside other pieces, since it mostly waits.
// Rest then rests briefly.
func (p *Priority) Paced(ctx context.Context) context.Context {
	return context.WithValue(ctx, pacedKey{}, &paced{priority: p, longest: briefRest, since: time.Now()})
}

// Rest lets requests go first during a piece of work; call it often. It returns at once if
// no requests run, if the last rest is recent, or if ctx belongs to no piece.
func Rest(ctx context.Context) {
	if w, ok := ctx.Value(pacedKey{}).(*paced); ok {
		w.rest(ctx, stretch)
	}
}

type pacedKey struct{}

// paced is a running piece of work.
type paced struct {
	priority *Priority
	longest  time.Duration // of one rest

	mu     sync.Mutex // held during a rest: the whole piece rests
	since  time.Time  // when the last rest ended
	rested time.Duration
}

// rest rests in proportion to the time since the last rest if that is at least atLeast.
func (w *paced) rest(ctx context.Context, atLeast time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	worked := time.Since(w.since)
	if worked < atLeast || !w.priority.Busy() || w.rested >= totalRest {
		return
	}
	share := restShare
	if o := w.priority.elsewhere.Load(); o != nil {
		share *= max(1, o.processes)
	}
	began := time.Now()
	rest := time.NewTimer(min(time.Duration(share)*worked, w.longest))
	defer rest.Stop()
	select {
	case <-rest.C:
	case <-ctx.Done():
	}
	w.since = time.Now()
	w.rested += w.since.Sub(began)
}
