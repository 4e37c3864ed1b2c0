package view

import (
	"context"
	"sync"
	"time"

	"assay/internal/refresh"
)

const (
	freshFor = refresh.FreshFor
	// While a job runs or nothing has changed, callers get the last count for freshKeep. The
	// first caller after freshRenew starts a new count. The other callers get the old count
	// meanwhile, unless it is older than freshKeep.
	freshKeep, freshRenew = 5 * time.Second, time.Second
)

// freshKey identifies the state that a count belongs to. A different key means that the count
// is probably outdated.
type freshKey struct {
	job     int64
	state   refresh.State
	updated int64
	queued  int64
}

// freshness caches the last count of all items. One count takes about 0.1 s.
type freshness struct {
	mu      sync.Mutex
	last    Freshness
	key     freshKey
	at      time.Time     // time of the count; zero: no count yet
	pending chan struct{} // closed when the running count ends; nil: no count is running
}

// get returns the cached count if it is recent enough. Otherwise it counts, or waits for the
// count that another caller started.
func (f *freshness) get(ctx context.Context, key freshKey, now func() time.Time, count func(context.Context, time.Time) (Freshness, error)) (Freshness, error) {
	for {
		f.mu.Lock()
		age := now().Sub(f.at)
		good := !f.at.IsZero() && age >= 0 && age < freshKeep && (key.state.Live() || key == f.key)
		pending := f.pending
		if good && (age < freshRenew || pending != nil) {
			defer f.mu.Unlock()
			return f.last, nil
		}
		if pending == nil {
			f.pending = make(chan struct{})
			f.mu.Unlock()
			return f.renew(ctx, key, now, count)
		}
		f.mu.Unlock()
		select {
		case <-pending:
		case <-ctx.Done():
			return Freshness{}, ctx.Err()
		}
	}
}

// renew counts the items. Only the caller that set pending may call it.
func (f *freshness) renew(ctx context.Context, key freshKey, now func() time.Time, count func(context.Context, time.Time) (Freshness, error)) (Freshness, error) {
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		close(f.pending)
		f.pending = nil
	}()
	made, err := count(ctx, now())
	if err != nil {
		return Freshness{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last, f.key, f.at = made, key, now()
	return made, nil
}

// countFresh counts all items in scope by age.
func (r *JobReader) countFresh(ctx context.Context, now time.Time) (Freshness, error) {
	return ReadFreshness(ctx, r.o.Store, r.o.ScopeAll, now)
}
