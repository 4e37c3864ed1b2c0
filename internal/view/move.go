package view

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"assay/internal/money"
	"assay/internal/view/prices"
)

// movePrecision is the precision of the start of the day of a DayChange. All lists within it
// share the prices at that time.
const movePrecision = 5 * time.Minute

// dayPrices caches the prices of items a day ago.
type dayPrices struct {
	mu    sync.Mutex
	since time.Time
	byApp map[int32]map[int64]money.Micro // prices at since of items that changed later; immutable maps
}

// dayMoves returns the prices of the items of a game a day ago. It reads only those of items
// that changed since then, and only once in movePrecision.
func (r *ItemReader) dayMoves(ctx context.Context, app int32, now time.Time) (*prices.Moves, error) {
	since := now.Add(-day).Truncate(movePrecision)
	changed, err := r.prices.Changed(ctx, app, since)
	if err != nil {
		return nil, fmt.Errorf("items that changed in a day: %w", err)
	}
	r.days.mu.Lock()
	defer r.days.mu.Unlock()
	if !r.days.since.Equal(since) {
		r.days.since, r.days.byApp = since, map[int32]map[int64]money.Micro{}
	}
	known := r.days.byApp[app]
	missing := slices.DeleteFunc(changed, func(id int64) bool { _, ok := known[id]; return ok })
	if len(missing) > 0 {
		all := make(map[int64]money.Micro, len(known)+len(missing))
		maps.Copy(all, known)
		for part := range slices.Chunk(missing, moveChunk) {
			if err := pricesAt(ctx, r.o.Store, part, since, all); err != nil {
				return nil, fmt.Errorf("prices of a day ago: %w", err)
			}
		}
		r.days.byApp[app], known = all, all
	}
	return &prices.Moves{Since: since, Before: known}, nil
}
