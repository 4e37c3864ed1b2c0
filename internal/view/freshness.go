package view

import (
	"context"
	"sync"
	"time"

	"assay/internal/refresh"
)

const (
	// freshFor is how long a price counts as fresh.
	freshFor = 24 * time.Hour
	// A count of all items serves callers for freshKeep while a job runs or
	// nothing happened. The first caller after freshRenew counts again; callers are
	// coalesced and do not wait for it unless it takes seconds.
	freshKeep, freshRenew = 5 * time.Second, time.Second
)

// freshKey changes when the counts of Freshness are likely to have changed.
type freshKey struct {
	job     int64
	state   refresh.State
	updated int64
	queued  int64
}

// freshness keeps the last count of all items, which takes a tenth of a second.
type freshness struct {
	mu      sync.Mutex
	last    Freshness
	key     freshKey
	at      time.Time     // when it was made; zero: there is none
	pending chan struct{} // closed when the count under way has ended; nil: none is
}

// get returns a count that is good enough, or makes one.
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

// renew counts for the one caller that has set pending.
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

// countFresh counts all items in scope.
func (r *JobReader) countFresh(ctx context.Context, now time.Time) (Freshness, error) {
	f, err := ReadFreshness(ctx, r.o.Store, r.o.ScopeAll, now.Add(-freshFor))
	if err != nil {
		return Freshness{}, err
	}
	out := Freshness{Fresh: f.Fresh, Stale: f.Stale, Unknown: f.Unknown}
	if !f.Oldest.IsZero() {
		out.OldestSeconds = seconds(now.Sub(f.Oldest))
	}
	return out, nil
}
