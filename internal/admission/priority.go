package admission

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Limits of a Priority.
const (
	// restRatio is the ratio of a rest to the work before it. It is multiplied by the
	// number of processes that share the work.
	restRatio = 3
	// maxPieceRest limits one rest of a piece of work in Run.
	maxPieceRest = time.Second
	// maxPacedRest limits one rest of work with a context from Paced.
	maxPacedRest = 50 * time.Millisecond
	// maxTotalRest limits the sum of all rests of one piece.
	maxTotalRest = 10 * time.Second
	// minWork is the shortest work between two rests.
	minWork = 4 * time.Millisecond
	// recent is how long work stays slow after the last request.
	recent = time.Second
)

// Priority gives requests priority over background work. The work consists of pieces.
// While requests run, and for a second afterwards, each process runs one piece at a time.
// After each piece it rests. The rest is three times the duration of the piece,
// multiplied by the number of processes that share the work. Processors and database rows
// are therefore free most of the time. Requests in other processes count as well. Without
// requests, work runs at full speed. The methods of a Priority are safe for concurrent
// use.
type Priority struct {
	running   atomic.Int64              // requests that run now
	begun     atomic.Int64              // requests since the start of the process
	ended     atomic.Pointer[time.Time] // end of the last request
	elsewhere atomic.Pointer[others]
	slot      chan struct{} // full while a piece runs during requests
}

// others is the last report about other processes.
type others struct {
	processes int       // number of processes, including this process
	busy      time.Time // last report of new requests in another process
}

// NewPriority returns a Priority without running requests.
func NewPriority() *Priority { return &Priority{slot: make(chan struct{}, 1)} }

// Begin registers a running request. The caller must call end once when the request ends.
func (p *Priority) Begin() (end func()) {
	p.running.Add(1)
	p.begun.Add(1)
	return func() {
		now := time.Now()
		p.ended.Store(&now)
		p.running.Add(-1)
	}
}

// Begun returns the number of requests since the start of the process.
func (p *Priority) Begun() int64 { return p.begun.Load() }

// ReportPeers stores the number of processes that share the work, including this process.
// requests reports whether another process got requests since the last report.
func (p *Priority) ReportPeers(processes int, requests bool) {
	now := others{processes: processes}
	if before := p.elsewhere.Load(); before != nil {
		now.busy = before.busy
	}
	if requests {
		now.busy = time.Now()
	}
	p.elsewhere.Store(&now)
}

// Busy reports whether background work must run slowly because of requests.
func (p *Priority) Busy() bool {
	if p.running.Load() > 0 {
		return true
	}
	if ended := p.ended.Load(); ended != nil && time.Since(*ended) < recent {
		return true
	}
	o := p.elsewhere.Load()
	return o != nil && time.Since(o.busy) < 2*recent // reports arrive about every second
}

// Run runs a piece of work. piece reports whether there is more work. If there is more
// and requests ran meanwhile or recently, Run rests before it returns. The end of ctx
// ends the rest. A long piece should call Yield with the context that it gets.
func (p *Priority) Run(ctx context.Context, piece func(context.Context) (more bool, err error)) (more bool, err error) {
	if p.Busy() {
		select {
		case p.slot <- struct{}{}:
			defer func() { <-p.slot }()
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	w := &paced{priority: p, longest: maxPieceRest, since: time.Now()}
	if more, err = piece(context.WithValue(ctx, pacedKey{}, w)); more && err == nil {
		w.rest(ctx, 0)
	}
	return more, err
}

// Paced returns a context for work that runs outside of Run because it mostly waits for
// I/O. With this context, Yield rests for at most 50 ms.
func (p *Priority) Paced(ctx context.Context) context.Context {
	return context.WithValue(ctx, pacedKey{}, &paced{priority: p, longest: maxPacedRest, since: time.Now()})
}

// Yield pauses a piece of work in favour of requests. A piece should call it often. Yield
// returns immediately if no requests run, if the piece worked for less than 4 ms since
// its last rest, or if ctx is not from Run or Paced.
func Yield(ctx context.Context) {
	if w, ok := ctx.Value(pacedKey{}).(*paced); ok {
		w.rest(ctx, minWork)
	}
}

type pacedKey struct{}

// paced is a running piece of work.
type paced struct {
	priority *Priority
	longest  time.Duration // limit of one rest

	mu     sync.Mutex // held during a rest, so that all goroutines of the piece rest
	since  time.Time  // end of the last rest
	rested time.Duration
}

// rest rests in proportion to the time since the last rest. It does nothing if that time
// is shorter than atLeast.
func (w *paced) rest(ctx context.Context, atLeast time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	worked := time.Since(w.since)
	if worked < atLeast || !w.priority.Busy() || w.rested >= maxTotalRest {
		return
	}
	share := restRatio
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
