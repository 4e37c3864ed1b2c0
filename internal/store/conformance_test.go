package store_test

import (
	"assay/internal/db"
	"database/sql"
	"testing"

	"assay/internal/store"
	"assay/internal/store/storetest"
)

var engines = map[string]store.Dialect{storetest.SQLite: store.OnSQLite, storetest.PostgreSQL: store.OnPostgres}

// opened opens a store, which is closed when tb ends.
func opened(tb testing.TB, db storetest.Database, o db.Options) *store.Store {
	tb.Helper()
	o.Path, o.URL = db.Path, db.URL
	s, err := store.Open(tb.Context(), o)
	must(tb, err)
	tb.Cleanup(func() { must(tb, s.Close()) })
	return s
}

// beside opens the database of a new store beside it.
func beside(tb testing.TB, engine string) *sql.DB {
	tb.Helper()
	d := storetest.On(tb, engine)
	opened(tb, d, db.Options{})
	raw := d.Raw(tb)
	tb.Cleanup(func() { must(tb, raw.Close()) })
	return raw
}

func TestStore_KeepsWhatItPromises(t *testing.T) {
	for engine := range engines {
		t.Run(engine, func(t *testing.T) {
			storetest.Run(t, func(tb testing.TB, o db.Options) *store.Store {
				return opened(tb, storetest.On(tb, engine), o)
			})
		})
	}
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
