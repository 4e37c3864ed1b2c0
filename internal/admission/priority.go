package admission

import (
	"context"
	"sync"
	"time"
)

// Limits of a Priority.
const (
	// restRatio is the ratio of a rest to the time in which the work before it ran beside
	// requests. It is multiplied by the number of processes that share the work.
	restRatio = 1
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
// A piece also rests: as long as it ran beside requests, multiplied by the number of
// processes that share the work. So frequent requests find free processors and database
// rows for half of the time, and rare requests hardly delay the work. Requests in other processes
// count as well. Without requests, work runs at full speed. The methods of a Priority are
// safe for concurrent use.
type Priority struct {
	slot chan struct{} // full while a piece runs during requests

	mu        sync.Mutex
	running   int           // requests that run now
	since     time.Time     // start of the first of them
	busy      time.Duration // time with running requests, except that since then
	ended     time.Time     // end of the last request
	elsewhere others
}

// others is the last report about other processes.
type others struct {
	processes int       // number of processes, including this process; 0 before the first report
	share     float64   // share of the time in which requests ran elsewhere, 0 to 1
	busy      time.Time // last report of requests elsewhere
}

// NewPriority returns a Priority without running requests.
func NewPriority() *Priority { return &Priority{slot: make(chan struct{}, 1)} }

// Begin registers a running request. The caller must call end once when the request ends.
func (p *Priority) Begin() (end func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running == 0 {
		p.since = time.Now()
	}
	p.running++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.ended = time.Now()
		if p.running--; p.running == 0 {
			p.busy += p.ended.Sub(p.since)
		}
	}
}

// BusyTime returns the time in which requests have run since the start of the process.
func (p *Priority) BusyTime() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running == 0 {
		return p.busy
	}
	return p.busy + time.Since(p.since)
}

// ReportPeers stores the number of processes that share the work, including this process.
// share is the share of the time since the last report in which requests ran in the other
// processes, as their sum.
func (p *Priority) ReportPeers(processes int, share float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.elsewhere.processes = processes
	if share > 0 { // a report without requests can mean that a heartbeat is late
		p.elsewhere.share, p.elsewhere.busy = min(share, 1), time.Now()
	}
}

// Busy reports whether background work must run slowly because of requests.
func (p *Priority) Busy() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running > 0 || time.Since(p.ended) < recent ||
		time.Since(p.elsewhere.busy) < 2*recent // reports arrive about every second
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
	w := p.begin(maxPieceRest)
	if more, err = piece(context.WithValue(ctx, pacedKey{}, w)); more && err == nil {
		w.rest(ctx, 0)
	}
	return more, err
}

// Paced returns a context for work that runs outside of Run because it mostly waits for
// I/O. With this context, Yield rests for at most 50 ms.
func (p *Priority) Paced(ctx context.Context) context.Context {
	return context.WithValue(ctx, pacedKey{}, p.begin(maxPacedRest))
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

	mu     sync.Mutex    // held during a rest, so that all goroutines of the piece rest
	since  time.Time     // end of the last rest
	busy   time.Duration // BusyTime at that time
	rested time.Duration
}

// begin returns a piece of work that begins now.
func (p *Priority) begin(longest time.Duration) *paced {
	return &paced{priority: p, longest: longest, since: time.Now(), busy: p.BusyTime()}
}

// rest rests in proportion to the requests since the last rest. It does nothing if the time
// since then is shorter than atLeast.
func (w *paced) rest(ctx context.Context, atLeast time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	began := time.Now()
	worked := began.Sub(w.since)
	if worked < atLeast || w.rested >= maxTotalRest {
		return
	}
	if length := min(w.priority.restFor(worked, w.priority.BusyTime()-w.busy), w.longest); length > 0 {
		rest := time.NewTimer(length)
		defer rest.Stop()
		select {
		case <-rest.C:
		case <-ctx.Done():
		}
	}
	w.since, w.busy = time.Now(), w.priority.BusyTime()
	w.rested += w.since.Sub(began)
}

// restFor returns how long to rest after work during which requests ran here for the given time.
func (p *Priority) restFor(worked, beside time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := p.elsewhere
	if time.Since(o.busy) < 2*recent {
		beside = min(worked, beside+time.Duration(o.share*float64(worked)))
	}
	return restRatio * time.Duration(max(1, o.processes)) * beside
}
