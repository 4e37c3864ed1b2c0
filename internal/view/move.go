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

// movePrecision is the precision of the time from which a DayChange is computed: a day ago, rounded
// down. All lists with the same rounded time share the prices at that time.
const movePrecision = 5 * time.Minute

// dayPrices caches the prices that items had a day ago.
type dayPrices struct {
	mu    sync.Mutex
	since time.Time
	byApp map[int32]map[int64]money.Micro // prices at since, only for items that changed later; the inner maps are immutable

	using   sync.Mutex
	used    map[int32]time.Time // last list by app
	renewed int64               // prices.Table.Version at the last renewal
}

// use records a list of the items of a game.
func (d *dayPrices) use(app int32, now time.Time) {
	d.using.Lock()
	defer d.using.Unlock()
	if d.used == nil {
		d.used = map[int32]time.Time{}
	}
	d.used[app] = now
}

// appsToRenew returns the games whose lists are in use, if a price changed since the last call.
func (d *dayPrices) appsToRenew(now time.Time, version int64) []int32 {
	d.using.Lock()
	defer d.using.Unlock()
	if d.renewed == version {
		return nil
	}
	d.renewed = version
	maps.DeleteFunc(d.used, func(_ int32, at time.Time) bool { return now.Sub(at) >= inUse })
	return slices.Collect(maps.Keys(d.used))
}

// renewMoves reads the prices of a day ago of items that changed, so that most lists find them.
func (r *ItemReader) renewMoves(ctx context.Context) error {
	now := r.o.Now().Truncate(time.Microsecond)
	for _, app := range r.days.appsToRenew(now, r.prices.Version()) {
		if _, err := r.dayMoves(ctx, app, now); err != nil {
			return err
		}
	}
	return nil
}

// dayMoves returns the prices that the items of a game had a day ago. It reads prices only for
// items that changed since then, and each price only once per movePrecision.
func (r *ItemReader) dayMoves(ctx context.Context, app int32, now time.Time) (*prices.Moves, error) {
	since := now.Add(-day).Truncate(movePrecision)
	changed, err := r.prices.Changed(ctx, app, since)
	if err != nil {
		return nil, fmt.Errorf("list items that changed in a day: %w", err)
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
				return nil, fmt.Errorf("read prices of a day ago: %w", err)
			}
		}
		r.days.byApp[app], known = all, all
	}
	return &prices.Moves{Since: since, Before: known}, nil
}
