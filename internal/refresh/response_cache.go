package refresh

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"assay/internal/catalog"
	"assay/internal/db"
)

// responseCacheSize is how many bytes of encoded responses a process keeps in memory.
const responseCacheSize = 10 << 20

// responseCache holds the newest encoded responses that this process has stored. Their units have
// ended, so they never change. Reading them from PostgreSQL takes more of the server's time than
// any other query of a refresh. SQLite reads in this process, so there the cache stays empty.
type responseCache struct {
	mu    sync.Mutex
	units map[int64][]Blob // by unit, in order of buckets
	order []int64          // units, the oldest first
	size  int              // bytes
}

func blobBytes(blobs []Blob) (n int) {
	for i := range blobs {
		n += len(blobs[i].Data)
	}
	return n
}

// add copies the blobs of a unit whose end is committed. It removes the oldest responses to make
// room.
func (c *responseCache) add(unit int64, blobs []Blob) {
	n := blobBytes(blobs)
	if n > responseCacheSize {
		return
	}
	data := make([]byte, 0, n) // the blobs have spare capacity, which would stay in memory
	own := make([]Blob, len(blobs))
	for i, b := range blobs {
		from := len(data)
		data = append(data, b.Data...)
		own[i] = Blob{Unit: unit, Bucket: b.Bucket, Data: data[from:]}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.units[unit]; known {
		return
	}
	for c.size+n > responseCacheSize {
		c.size -= blobBytes(c.units[c.order[0]])
		delete(c.units, c.order[0])
		c.order = c.order[1:]
	}
	if c.units == nil {
		c.units = map[int64][]Blob{}
	}
	c.units[unit], c.order, c.size = own, append(c.order, unit), c.size+n
}

// find returns the cached blobs of the units and buckets, ordered by bucket and unit, and the
// units that are not in the cache.
func (c *responseCache) find(units, buckets []int64) (found []Blob, missing []int64) {
	var wanted [catalog.Buckets]bool
	for _, b := range buckets {
		wanted[b] = true
	}
	c.mu.Lock()
	for _, id := range units {
		blobs, known := c.units[id]
		if !known {
			missing = append(missing, id)
		}
		for _, b := range blobs {
			if wanted[b.Bucket] {
				found = append(found, b)
			}
		}
	}
	c.mu.Unlock()
	slices.SortFunc(found, Blob.compare)
	return found, missing
}

// compare orders blobs by bucket and unit.
func (b Blob) compare(other Blob) int {
	return cmp.Or(cmp.Compare(b.Bucket, other.Bucket), cmp.Compare(b.Unit, other.Unit))
}

// cacheResponse keeps a stored response in memory.
func (p *process) cacheResponse(unit int64, blobs []Blob) {
	if p.store.Dialect == db.PostgreSQL && len(blobs) > 0 {
		p.responses.add(unit, blobs)
	}
}

// readBlobs calls fn for each stored blob of the units and buckets, ordered by bucket and unit.
// fn must not retain or change the data.
func (p *process) readBlobs(ctx context.Context, units, buckets []int64, fn func(Blob) error) error {
	cached, missing := p.responses.find(units, buckets)
	read := func(b Blob) error {
		p.blobsRead.Add(1)
		return fn(b)
	}
	readCached := func(n int) error {
		for _, b := range cached[:n] {
			if err := read(b); err != nil {
				return err
			}
		}
		cached = cached[n:]
		return nil
	}
	if len(missing) > 0 {
		err := readBlobs(ctx, p.store, missing, buckets, func(b Blob) error {
			before, _ := slices.BinarySearchFunc(cached, b, Blob.compare)
			if err := readCached(before); err != nil {
				return err
			}
			return read(b)
		})
		if err != nil {
			return err
		}
	}
	return readCached(len(cached))
}
