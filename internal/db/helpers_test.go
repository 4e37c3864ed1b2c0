package db_test

import (
	"database/sql"
	"os"
	"testing"

	"assay/internal/db"
	"assay/internal/storetest"
)

var (
	engines  = []string{storetest.SQLite, storetest.PostgreSQL}
	dialects = map[string]db.Dialect{storetest.SQLite: db.SQLite, storetest.PostgreSQL: db.PostgreSQL}
)

// opened opens a database with all subjects, which is closed when tb ends.
func opened(tb testing.TB, at storetest.Database, o db.Options) *db.DB {
	tb.Helper()
	o.Path, o.URL = at.Path, at.URL
	s, err := db.Open(tb.Context(), o)
	must(tb, err)
	tb.Cleanup(func() { must(tb, s.Close()) })
	return s
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func write(tb testing.TB, path, text string) {
	tb.Helper()
	must(tb, os.WriteFile(path, []byte(text), 0o600))
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
