package db_test

import (
	"database/sql"
	"os"
	"testing"

	"assay/internal/db"
	"assay/internal/db/dbtest"
)

var (
	engines  = []string{dbtest.SQLite, dbtest.PostgreSQL}
	dialects = map[string]db.Dialect{dbtest.SQLite: db.SQLite, dbtest.PostgreSQL: db.PostgreSQL}
)

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

// openRaw creates a database with the schema and opens a raw connection to it.
func openRaw(tb testing.TB, engine string) *sql.DB {
	tb.Helper()
	d := dbtest.On(tb, engine)
	d.Open(tb, db.Options{})
	raw := d.Raw(tb)
	tb.Cleanup(func() { must(tb, raw.Close()) })
	return raw
}
