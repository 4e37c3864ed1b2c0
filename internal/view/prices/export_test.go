package prices

import (
	"context"

	"assay/internal/catalog"
	"assay/internal/db"
)

// SetMost sets how many items the table keeps.
func (t *Table) SetMost(n int) { t.most = n }

// Most returns how many items the table keeps.
func (t *Table) Most() int { return t.most }

// Held returns how many items are kept now.
func (t *Table) Held() int64 { return t.held.Load() }

// SetSum sets what the table asks for the sum of all versions.
func (t *Table) SetSum(sum func(context.Context, *db.DB) (int64, error)) { t.versions.sum = sum }

// Contents are what the table keeps of each bucket. A read makes them anew.
type Contents [catalog.Buckets]*contents

// Contents returns what the table keeps now.
func (t *Table) Contents() (all Contents) {
	for n := range t.buckets {
		all[n] = t.buckets[n].now.Load()
	}
	return all
}
