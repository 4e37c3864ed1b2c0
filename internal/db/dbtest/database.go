// Package dbtest gives tests empty databases on both engines.
package dbtest

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"assay/internal/db"
	"assay/internal/pgtest"
	"assay/internal/randtest"
)

// The engines.
const (
	SQLite     = "sqlite"
	PostgreSQL = "postgres"
)

// pooled is PostgreSQL behind a pooler, for Each alone.
const pooled = "pooler"

// engineVariable names the only engine that tests use.
const engineVariable = "ASSAY_TEST_ENGINE"

// RunOnEngines runs all tests of a package once on each engine, for its TestMain,
// and returns the exit code. ASSAY_TEST_ENGINE names the only one.
func RunOnEngines(m *testing.M) (code int) {
	for _, engine := range engines() {
		if err := os.Setenv(engineVariable, engine); err != nil {
			panic(err)
		}
		if code = m.Run(); code != 0 {
			return code
		}
	}
	return code
}

func engines() []string {
	if only := os.Getenv(engineVariable); only != "" {
		return []string{only}
	}
	return []string{SQLite, PostgreSQL}
}

// Database is a place for a database. Path and URL are as in db.Options.
type Database struct {
	Engine    string
	Path, URL string
	direct    string // past the pooler that URL leads through, if any
}

// NewDatabase makes an empty database on the engine that RunOnEngines is at,
// which is gone when tb ends. On SQLite the file is in memory where there is such
// a place: these tests never cut the power, so waiting for a disk proves nothing.
func NewDatabase(tb testing.TB) Database {
	tb.Helper()
	d := On(tb, os.Getenv(engineVariable))
	if d.Engine == PostgreSQL {
		d.URL += fewConns // each costs a process that reads the catalogue anew
	}
	return d
}

const fewConns = "&pool_max_conns=6"

// On makes an empty database on an engine.
func On(tb testing.TB, engine string) Database {
	tb.Helper()
	if engine != PostgreSQL && engine != pooled {
		return Database{Engine: SQLite, Path: filepath.Join(memoryDir(tb), "assay.db")}
	}
	tb.Log("on PostgreSQL")
	server := pgtest.Shared(tb)
	d := Database{Engine: PostgreSQL, URL: server.CopyDatabase(tb, "migrated", migrate)}
	if engine == pooled {
		d.direct = d.URL
		d.URL = server.StartPooler(tb, poolerSessions).Through(tb, d.direct)
	}
	return d
}

// poolerSessions is how many sessions the pooler has for a database.
const poolerSessions = 20

func memoryDir(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "assay-test") //nolint:usetesting // that one is on a disk
	if err != nil {
		return tb.TempDir()
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// migrate fills a database with the schema.
func migrate(ctx context.Context, url string) error {
	s, err := db.Open(ctx, db.Options{URL: url})
	if err != nil {
		return err
	}
	return s.Close()
}

// Takes reports whether a test of many cases, each with a database of its own, takes
// the nth: all on SQLite and at full counts, otherwise one in three, since a database
// on a server takes much longer to make and to warm.
func Takes(nth int) bool {
	return nth%3 == 0 || randtest.Long() || os.Getenv(engineVariable) != PostgreSQL
}

// Open opens the database, and closes it when tb ends.
func (d Database) Open(tb testing.TB, o db.Options) *db.DB {
	tb.Helper()
	o.Path, o.URL, o.Direct = d.Path, d.URL, cmp.Or(d.direct, o.Direct)
	s, err := db.Open(tb.Context(), o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Fatal(err)
		}
	})
	return s
}

// Raw opens one connection to the database, past db.DB. Its caller closes it.
func (d Database) Raw(tb testing.TB) *sql.DB {
	tb.Helper()
	driver, address := "pgx", cmp.Or(d.direct, strings.TrimSuffix(d.URL, fewConns))
	if d.Engine == SQLite {
		driver, address = "sqlite", "file:"+d.Path+"?_pragma=busy_timeout(10000)"
	}
	db, err := sql.Open(driver, address)
	if err != nil {
		tb.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	return db
}

// Version returns a number that changes with any row of the database, read on the
// connection of Raw.
func (d Database) Version(tb testing.TB, raw *sql.DB) (version int64) {
	tb.Helper()
	query := `PRAGMA data_version`
	if d.Engine == PostgreSQL {
		query = rowVersions(tb, raw)
	}
	if err := raw.QueryRowContext(tb.Context(), query).Scan(&version); err != nil {
		tb.Fatal(err)
	}
	return version
}

// rowVersions returns a query that sums up which transaction wrote each row of
// each table where. That a row was locked does not show.
func rowVersions(tb testing.TB, raw *sql.DB) string {
	tb.Helper()
	rows, err := raw.QueryContext(tb.Context(), `SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename`)
	if err != nil {
		tb.Fatal(err)
	}
	defer rows.Close()
	var sums []string
	for rows.Next() {
		var name string
		err = errors.Join(err, rows.Scan(&name))
		sums = append(sums, `(SELECT coalesce(sum(hashtext(ctid::text || xmin::text)), 0) FROM `+name+`)`)
	}
	if err := errors.Join(err, rows.Err()); err != nil {
		tb.Fatal(err)
	}
	return `SELECT CAST(` + strings.Join(sums, " + ") + ` AS bigint)`
}

// Explain returns the plan of a query, read on the connection of Raw.
func (d Database) Explain(tb testing.TB, raw *sql.DB, query string, args ...any) string {
	tb.Helper()
	check := func(err error) {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
	}
	word := "EXPLAIN "
	if d.Engine == SQLite {
		word = "EXPLAIN QUERY PLAN "
	}
	rows, err := raw.QueryContext(tb.Context(), word+query, args...)
	check(err)
	defer rows.Close()
	var plan strings.Builder
	for rows.Next() {
		var line string
		into := []any{&line}
		if d.Engine == SQLite {
			into = []any{new(int), new(int), new(int), &line}
		}
		check(rows.Scan(into...))
		plan.WriteString(line + "\n")
	}
	check(rows.Err())
	return plan.String()
}
