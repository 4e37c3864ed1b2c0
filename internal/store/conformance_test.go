package store_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"assay/internal/pgtest"
	"assay/internal/store"
	"assay/internal/store/storetest"
)

// engine is one of the databases that a store works on.
type engine struct {
	dialect store.Dialect
	driver  string
	// fresh makes an empty database and returns what opens it, and its address for
	// the driver.
	fresh func(tb testing.TB) (o store.Options, address string)
}

var engines = map[string]engine{
	"SQLite": {store.OnSQLite, "sqlite", func(tb testing.TB) (store.Options, string) {
		path := filepath.Join(tb.TempDir(), "assay.db")
		return store.Options{Path: path}, path
	}},
	"PostgreSQL": {store.OnPostgres, "pgx", func(tb testing.TB) (store.Options, string) {
		url := pgtest.Shared(tb).CopyDatabase(tb, "migrated", migrated)
		return store.Options{URL: url}, url
	}},
}

// migrated fills a database with the schema.
func migrated(ctx context.Context, url string) error {
	s, err := store.Open(ctx, store.Options{URL: url})
	if err != nil {
		return err
	}
	return s.Close()
}

// opened opens a store, which is closed when tb ends.
func opened(tb testing.TB, o store.Options) *store.Store {
	tb.Helper()
	s, err := store.Open(tb.Context(), o)
	must(tb, err)
	tb.Cleanup(func() { must(tb, s.Close()) })
	return s
}

// raw opens the database of a new store beside it.
func (e engine) raw(tb testing.TB) *sql.DB {
	tb.Helper()
	o, address := e.fresh(tb)
	opened(tb, o)
	db, err := sql.Open(e.driver, address)
	must(tb, err)
	tb.Cleanup(func() { must(tb, db.Close()) })
	return db
}

func TestStore_KeepsWhatItPromises(t *testing.T) {
	for name, e := range engines {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, func(tb testing.TB, o store.Options) *store.Store {
				fresh, _ := e.fresh(tb)
				o.Path, o.URL = fresh.Path, fresh.URL
				return opened(tb, o)
			})
		})
	}
}
