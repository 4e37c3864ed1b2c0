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
	// meanwhile, unless it is older than freshKeep. OverviewReader.KeepState counts after freshSoon,
	// so that requests need not.
	freshKeep, freshRenew, freshSoon = 10 * time.Second, 9 * time.Second, 6 * time.Second
)

// freshKey identifies the state that a count belongs to. A different key means that the count
// is probably outdated.
type freshKey struct {
	job       int64
	estimated bool // the job changes no price any more
	updated   int64
	queued    int64
}

// freshness caches the last count of all items. One count takes about 0.1 s.
type freshness struct {
	mu      sync.Mutex
	last    Freshness
	key     freshKey
	at      time.Time     // time of the count; zero: no count yet
	used    time.Time     // last call of get
	pending chan struct{} // closed when the running count ends; nil: no count is running
}

// get returns the cached count if it is recent enough. Otherwise it counts, or waits for the
// count that another caller started.
func (f *freshness) get(ctx context.Context, c *counted, now func() time.Time, count func(context.Context, time.Time) (Freshness, error)) (Freshness, error) {
	f.mu.Lock()
	f.used = now()
	f.mu.Unlock()
	return f.newer(ctx, c, freshRenew, now, count)
}

// newer is get with another age at which a new count starts.
func (f *freshness) newer(ctx context.Context, c *counted, renew time.Duration, now func() time.Time, count func(context.Context, time.Time) (Freshness, error)) (Freshness, error) {
	key := c.key
	for {
		f.mu.Lock()
		age := now().Sub(f.at)
		good := !f.at.IsZero() && age >= 0 && age < freshKeep && (c.Status.Status.Running || key == f.key)
		pending := f.pending
		if good && (age < renew || pending != nil) {
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

// inUse reports whether a caller got the count within the last minute.
func (f *freshness) inUse(now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return now.Sub(f.used) < inUse
}

// soon returns the age at which the loop beside requests counts again. It counts at once when
// a job has changed its last price, so that requests after the job need not wait.
func (f *freshness) soon(key freshKey) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if key.estimated && key != f.key {
		return 0
	}
	return freshSoon
}

// renewFreshness counts the items if the count is in use and soon too old.
func (r *JobReader) renewFreshness(ctx context.Context) error {
	if !r.fresh.inUse(r.o.Now()) {
		return nil
	}
	c, err := r.status.Do(ctx, r.readStatus)
	if err == nil {
		_, err = r.fresh.newer(ctx, &c, r.fresh.soon(c.key), r.o.Now, r.countFresh)
	}
	return err
}

// countFresh counts all items in scope by age.
func (r *JobReader) countFresh(ctx context.Context, now time.Time) (Freshness, error) {
	return ReadFreshness(ctx, r.o.Store, r.o.ScopeAll, now)
}
