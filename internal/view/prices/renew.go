package prices

import (
	"context"
	"slices"
	"time"

	"assay/internal/catalog"
)

// renewChunk is the maximum number of buckets in one query. It limits the memory for items that
// are not stored yet.
const renewChunk = 16

// Used returns the time of the last list. It is 1970 if there was none.
func (t *Table) Used() time.Time { return time.Unix(0, t.listed.Load()) }

// Version returns a number that grows with each change of a price that the cache knows of.
func (t *Table) Version() int64 {
	if last := t.versions.last.Load(); last != nil {
		return last.sum
	}
	return 0
}

// Renew rereads the cached buckets whose version changed. It only makes lists faster: they reread
// a changed bucket themselves.
func (t *Table) Renew(ctx context.Context) error {
	versions, err := t.versions.latest(ctx)
	if err != nil {
		return err
	}
	return t.update(ctx, versions, func(c *contents) bool { return c != nil })
}

// update rereads the chosen buckets that are older than the given versions. Few queries read many
// buckets, because each query waits for the database during a refresh.
func (t *Table) update(ctx context.Context, versions *[catalog.Buckets]int64, choose func(*contents) bool) error {
	old := func(n int) bool {
		c := t.buckets[n].now.Load()
		return choose(c) && (c == nil || c.version < versions[n])
	}
	var changed []int
	for n := range t.buckets {
		if old(n) {
			changed = append(changed, n)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	t.renewing.Lock()
	defer t.renewing.Unlock()
	changed = slices.DeleteFunc(changed, func(n int) bool { return !old(n) }) // read by another caller
	for chunk := range slices.Chunk(changed, renewChunk) {
		fit, err := t.readMany(ctx, chunk, versions)
		if err != nil {
			return err
		}
		for _, n := range chunk {
			if fit {
				break
			}
			if _, err := t.read(ctx, n, versions[n]); err != nil {
				return err
			}
		}
	}
	return nil
}

// readMany reads several buckets with one query. It returns false if their items do not fit.
func (t *Table) readMany(ctx context.Context, buckets []int, versions *[catalog.Buckets]int64) (fit bool, err error) {
	room := t.room(buckets...)
	if room <= 0 || slices.ContainsFunc(buckets, func(n int) bool { c := t.buckets[n].now.Load(); return c != nil && c.partial }) {
		return false, nil
	}
	builders := make([]contentsBuilder, catalog.Buckets)
	items := 0
	err = BucketPrices(ctx, t.store, buckets, room+1, func(id int64, key catalog.Key, p Price) {
		builders[id>>32].add(id, key, p)
		items++
	})
	if err != nil || items > room {
		return false, err
	}
	for _, n := range buckets {
		next := &contents{version: versions[n]}
		next.names, next.items = builders[n].build()
		t.keep(n, next)
	}
	return true, nil
}
