package refresh

import (
	"context"
	"runtime/debug"
	"slices"
	"sync"
)

// The garbage collector runs when the heap has grown by GOGC percent, usually 100. Then garbage
// would double the memory of large jobs. These are the percentages for such work.
const (
	// quotesGC is for large responses and their validation. Collecting their garbage costs
	// little, because their quotes hold no pointers.
	quotesGC = 20
	fileGC   = 50 // for a file of any size, because its size is not known at first
	batchGC  = 25 // for a large batch
)

// garbage lowers the GOGC of this process while large work is in progress. Its methods may be
// called concurrently.
type garbage struct {
	mu       sync.Mutex
	usual    int   // GOGC without large work
	percents []int // of the large work in progress
}

// limit lowers GOGC to percent, if it is higher, until the caller calls end.
func (g *garbage) limit(percent int) (end func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.percents = append(g.percents, percent); len(g.percents) == 1 {
		g.usual = debug.SetGCPercent(percent)
	}
	debug.SetGCPercent(min(g.usual, slices.Min(g.percents)))
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		at := slices.Index(g.percents, percent)
		g.percents = slices.Delete(g.percents, at, at+1)
		debug.SetGCPercent(slices.Min(append(g.percents, g.usual)))
	}
}

// freeMemory returns unused memory to the operating system: the page cache of the SQLite connection
// that writes, and garbage. Between the stages of large work, both would otherwise add to the
// memory of the next stage. It takes some 100 ms.
func (p *process) freeMemory(ctx context.Context) {
	if err := p.store.ShrinkCache(ctx); err != nil && ctx.Err() == nil {
		p.log.Warn("page cache not freed", "error", err)
	}
	debug.FreeOSMemory()
}
