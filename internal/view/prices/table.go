// Package prices caches the prices of items in memory.
//
// A result is never older than the last commit before the call, on any instance. Each commit
// that changes prices increments the versions of their name buckets. A read first queries the
// versions, then rereads the buckets whose version changed. Items that have no price or do not
// fit in memory are read from the database each time.
package prices

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"assay/internal/catalog"
	"assay/internal/db"
)

// maxItems is the maximum number of cached items. An item takes about 120 bytes.
const maxItems = 500_000

// Table caches the prices of items. It is empty at first, and loads a bucket when one of its
// names is requested. Its methods may be called concurrently.
type Table struct {
	store    *db.DB
	most     int
	versions versionCheck
	buckets  [catalog.Buckets]bucket
	renewing sync.Mutex   // held while many buckets are read, so that lists share the reads
	listed   atomic.Int64 // time of the last list in Unix nanoseconds; 0: none

	storing     sync.Mutex
	cachedItems int // number of items in all buckets
}

// bucket is the cached part of one name bucket.
type bucket struct {
	reading sync.Mutex
	now     atomic.Pointer[contents] // nil: not loaded yet
}

// New returns an empty Table.
func New(s *db.DB) *Table {
	t := &Table{store: s, most: maxItems}
	t.versions.store, t.versions.sum = s, catalog.PriceVersion
	return t
}

// Lookup calls fn for each key with its price. The parameter known is false for an unknown
// item.
func (t *Table) Lookup(ctx context.Context, keys []catalog.Key, fn func(i int, p Price, known bool)) error {
	if len(keys) == 0 {
		return nil
	}
	versions, err := t.versions.latest(ctx)
	if err != nil {
		return fmt.Errorf("read price versions: %w", err)
	}
	var others []int
	for i, key := range keys {
		n := catalog.Bucket(key.Name)
		c := t.buckets[n].now.Load()
		if c == nil || c.version < versions[n] {
			if c, err = t.read(ctx, n, versions[n]); err != nil {
				return fmt.Errorf("read prices of a bucket: %w", err)
			}
		}
		if p, ok := c.find(key); ok {
			fn(i, p, true)
		} else {
			others = append(others, i)
		}
	}
	return t.lookUp(ctx, keys, others, fn)
}

// ID returns the ID of an item without a query. It returns false if the item is not cached. IDs
// never change.
func (t *Table) ID(key catalog.Key) (id int64, known bool) {
	n := catalog.Bucket(key.Name)
	if c := t.buckets[n].now.Load(); c != nil {
		if i := c.item(key); i != nil {
			return idOf(n, i), true
		}
	}
	return 0, false
}

// read returns the contents of a bucket with the given version or a newer one. It loads them if
// necessary.
func (t *Table) read(ctx context.Context, n int, version int64) (*contents, error) {
	b := &t.buckets[n]
	b.reading.Lock()
	defer b.reading.Unlock()
	if now := b.now.Load(); now != nil && now.version >= version {
		return now, nil // another caller loaded it
	}
	next := &contents{version: version, partial: true}
	if room := t.room(n); room > 0 {
		var b contentsBuilder
		// Read one item more than fits, to detect a bucket that is too large.
		if err := BucketPrices(ctx, t.store, []int{n}, room+1, b.add); err != nil {
			return nil, err
		}
		if len(b.items) <= room {
			next.names, next.items = b.build()
			next.partial = false
		}
	}
	return t.keep(n, next), nil
}

// room returns the number of items that fit into the given buckets.
func (t *Table) room(buckets ...int) int {
	t.storing.Lock()
	defer t.storing.Unlock()
	room := t.most - t.cachedItems
	for _, n := range buckets {
		room += t.buckets[n].size()
	}
	return room
}

// keep stores the contents of a bucket, unless contents of the same or a newer version are stored. It returns the stored
// contents, which are partial if the items do not fit.
func (t *Table) keep(n int, next *contents) *contents {
	t.storing.Lock()
	defer t.storing.Unlock()
	b := &t.buckets[n]
	if now := b.now.Load(); now != nil && now.version >= next.version {
		return now
	}
	rest := t.cachedItems - b.size()
	if rest+len(next.items) > t.most {
		next = &contents{version: next.version, partial: true}
	}
	t.cachedItems = rest + len(next.items)
	b.now.Store(next)
	return next
}

// size returns the number of cached items.
func (b *bucket) size() int {
	if c := b.now.Load(); c != nil {
		return len(c.items)
	}
	return 0
}

// lookUp reads prices that are not cached from the database.
func (t *Table) lookUp(ctx context.Context, keys []catalog.Key, places []int, fn func(i int, p Price, known bool)) error {
	byApp := map[int32][]catalog.Key{}
	for _, i := range places {
		byApp[keys[i].AppID] = append(byApp[keys[i].AppID], keys[i])
	}
	found := make(map[int32]map[catalog.Key]Price, len(byApp))
	for app, names := range byApp {
		var err error
		if found[app], err = Prices(ctx, t.store, app, names); err != nil {
			return fmt.Errorf("read prices by name: %w", err)
		}
	}
	for _, i := range places {
		p, known := found[keys[i].AppID][keys[i]]
		fn(i, p, known)
	}
	return nil
}
