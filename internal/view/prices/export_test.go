package prices

import (
	"context"

	"assay/internal/catalog"
	"assay/internal/db"
)

// SetMost sets the maximum number of cached items.
func (t *Table) SetMost(n int) { t.most = n }

// Most returns the maximum number of cached items.
func (t *Table) Most() int { return t.most }

// Held returns the number of cached items.
func (t *Table) Held() int {
	t.storing.Lock()
	defer t.storing.Unlock()
	return t.cachedItems
}

// SetSum replaces the query for the sum of all versions.
func (t *Table) SetSum(sum func(context.Context, *db.DB) (int64, error)) { t.versions.sum = sum }

// Contents has a pointer to each cached bucket. Loading a bucket replaces its pointer.
type Contents [catalog.Buckets]*contents

// Contents returns the cached buckets.
func (t *Table) Contents() (all Contents) {
	for n := range t.buckets {
		all[n] = t.buckets[n].now.Load()
	}
	return all
}
