package storetest_test

import (
	"database/sql"
	"testing"

	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/storetest"
)

var engines = map[string]db.Dialect{dbtest.SQLite: db.SQLite, dbtest.PostgreSQL: db.PostgreSQL}

// beside opens the database of a new store beside it.
func beside(tb testing.TB, engine string) *sql.DB {
	tb.Helper()
	d := dbtest.On(tb, engine)
	d.Open(tb, db.Options{})
	raw := d.Raw(tb)
	tb.Cleanup(func() { must(tb, raw.Close()) })
	return raw
}

func TestStore_KeepsWhatItPromises(t *testing.T) {
	for engine := range engines {
		t.Run(engine, func(t *testing.T) {
			storetest.Run(t, func(tb testing.TB, o db.Options) *db.DB {
				return dbtest.On(tb, engine).Open(tb, o)
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
