package prices

import (
	"context"
	"time"
)

const (
	// renewEvery is the interval at which Run rereads changed buckets. During a refresh, a list then
	// rereads only the buckets that changed since.
	renewEvery = 200 * time.Millisecond
	// renewFor is how long Run continues after the last list.
	renewFor = time.Minute
)

// Run keeps the cached prices current until ctx ends, while lists are requested. It only makes
// lists faster: they reread a changed bucket themselves.
func (t *Table) Run(ctx context.Context) {
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			if now.UnixNano()-t.listed.Load() < int64(renewFor) {
				_ = t.Renew(ctx) // the next list returns the error of the database
			}
		}
	}
}

// Renew rereads the cached buckets whose version changed.
func (t *Table) Renew(ctx context.Context) error {
	versions, err := t.versions.latest(ctx)
	if err != nil {
		return err
	}
	for n := range t.buckets {
		if c := t.buckets[n].now.Load(); c == nil || c.version >= versions[n] {
			continue
		}
		if _, err := t.read(ctx, n, versions[n]); err != nil {
			return err
		}
	}
	return nil
}
