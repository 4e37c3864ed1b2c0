package refresh

import (
	"runtime/debug"
	"slices"
	"sync"
)

// The garbage collector runs when the heap has grown by GOGC percent, usually 100. While large
// jobs are in progress, garbage would double their memory. So it then runs sooner.
const (
	largeValidationGC = 25 // for validation, which holds the quotes of all markets
	largeWorkGC       = 50 // for large responses and batches
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
