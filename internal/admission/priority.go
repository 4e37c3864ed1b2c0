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
	// recent is how long work stays slow after the last write.
	recent = time.Second
	// maxRead is how long one read counts.
	maxRead = 250 * time.Millisecond
)

// Priority gives requests priority over background work. The work consists of pieces. A piece
// rests as long as it ran beside requests, multiplied by the number of processes that share the
// work. So frequent requests find free processors and database rows for half of the time, and
// rare requests hardly delay the work. Without requests, work runs at full speed.
//
// Requests that write the rows of the work do more. While they run, and for a second afterwards,
// one piece runs at a time, in all processes together. They also count in other processes.
//
// The methods of a Priority are safe for concurrent use.
type Priority struct {
	slot chan struct{} // full while a piece runs during writes
	turn func(context.Context) (end func())

	mu        sync.Mutex
	all       activity // all requests
	writes    activity
	elsewhere others
}

// activity is the time in which requests run.
type activity struct {
	running int           // requests that run now
	since   time.Time     // start of the first of them
	busy    time.Duration // time with running requests, except that since then
	ended   time.Time     // end of the last request
}

func (a *activity) begin(now time.Time) {
	if a.running == 0 {
		a.since = now
	}
	a.running++
}

func (a *activity) end(now time.Time) {
	a.ended = now
	if a.running--; a.running == 0 {
		a.busy += now.Sub(a.since)
	}
}

// time returns the time in which requests have run since the start of the process.
func (a *activity) time() time.Duration {
	if a.running == 0 {
		return a.busy
	}
	return a.busy + time.Since(a.since)
}

// others is the last report about other processes.
type others struct {
	processes int       // number of processes, including this process; 0 before the first report
	share     float64   // share of the time in which writes ran elsewhere, 0 to 1
	busy      time.Time // last report of writes elsewhere
}

// NewPriority returns a Priority without running requests.
func NewPriority() *Priority { return &Priority{slot: make(chan struct{}, 1)} }

// TakeTurns makes pieces of several processes run one after another during writes. turn waits
// until the pieces of other processes have ended. Call TakeTurns before Run.
func (p *Priority) TakeTurns(turn func(context.Context) (end func())) { p.turn = turn }

// Write registers a running request that writes rows of the work. The caller must call end once
// when the request ends.
func (p *Priority) Write() (end func()) { return p.begin(&p.all, &p.writes) }

// Read registers a running request that only reads. The caller must call end when the request
// ends. A long request, such as a slow download, counts only for its first quarter of a second.
func (p *Priority) Read() (end func()) {
	once := sync.OnceFunc(p.begin(&p.all))
	limit := time.AfterFunc(maxRead, once)
	return func() {
		limit.Stop()
		once()
	}
}

func (p *Priority) begin(of ...*activity) (end func()) {
	each := func(fn func(*activity, time.Time)) {
		p.mu.Lock()
		defer p.mu.Unlock()
		now := time.Now()
		for _, a := range of {
			fn(a, now)
		}
	}
	each((*activity).begin)
	return func() { each((*activity).end) }
}

// WriteTime returns the time in which writes have run since the start of the process.
func (p *Priority) WriteTime() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.writes.time()
}

// requestTime returns the time in which requests have run since the start of the process.
func (p *Priority) requestTime() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all.time()
}

// ReportPeers stores the number of processes that share the work, including this process.
// share is the share of the time since the last report in which writes ran in the other
// processes, as their sum.
func (p *Priority) ReportPeers(processes int, share float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.elsewhere.processes = processes
	if share > 0 { // a report without writes can mean that a heartbeat is late
		p.elsewhere.share, p.elsewhere.busy = min(share, 1), time.Now()
	}
}

// Busy reports whether pieces must run one at a time because of writes.
func (p *Priority) Busy() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.writes.running > 0 || time.Since(p.writes.ended) < recent ||
		time.Since(p.elsewhere.busy) < 2*recent // reports arrive about every second
}

// Run runs a piece of work. piece reports whether there is more work. If there is more
// and requests ran meanwhile, Run rests before it returns. The end of ctx
// ends the rest. A long piece should call Yield with the context that it gets.
func (p *Priority) Run(ctx context.Context, piece func(context.Context) (more bool, err error)) (more bool, err error) {
	if p.Busy() {
		select {
		case p.slot <- struct{}{}:
			defer func() { <-p.slot }()
			defer p.takeTurn(ctx)()
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	w := p.piece(maxPieceRest)
	if more, err = piece(context.WithValue(ctx, pacedKey{}, w)); more && err == nil {
		w.rest(ctx, 0)
	}
	return more, err
}

// takeTurn waits for the pieces of other processes, if there are any.
func (p *Priority) takeTurn(ctx context.Context) (end func()) {
	p.mu.Lock()
	alone := p.turn == nil || p.elsewhere.processes < 2
	p.mu.Unlock()
	if alone {
		return func() {}
	}
	return p.turn(ctx)
}

// Paced returns a context for work that runs outside of Run because it mostly waits for
// I/O. With this context, Yield rests for at most 50 ms.
func (p *Priority) Paced(ctx context.Context) context.Context {
	return context.WithValue(ctx, pacedKey{}, p.piece(maxPacedRest))
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
	busy   time.Duration // requestTime at that time
	rested time.Duration
}

// piece returns a piece of work that begins now.
func (p *Priority) piece(longest time.Duration) *paced {
	return &paced{priority: p, longest: longest, since: time.Now(), busy: p.requestTime()}
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
	if length := min(w.priority.restFor(worked, w.priority.requestTime()-w.busy), w.longest); length > 0 {
		rest := time.NewTimer(length)
		defer rest.Stop()
		select {
		case <-rest.C:
		case <-ctx.Done():
		}
	}
	w.since, w.busy = time.Now(), w.priority.requestTime()
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
