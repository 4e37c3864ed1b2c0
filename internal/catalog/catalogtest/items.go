package catalogtest

import (
	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/db/dbtest"
)

// Items creates missing items of a game, without a phase. It returns the ids in the order
// of names.
func Items(f *dbtest.Fixture, app int32, names ...string) []int64 {
	f.Helper()
	ids, keys := make([]int64, len(names)), make([]catalog.Key, len(names))
	for i, n := range names {
		keys[i] = catalog.Key{AppID: app, Name: n}
	}
	f.Tx(func(tx *db.Tx) error {
		items, err := catalog.EnsureItems(tx, app, keys)
		for i, k := range keys {
			ids[i] = items[k].ID
		}
		return err
	})
	return ids
}
