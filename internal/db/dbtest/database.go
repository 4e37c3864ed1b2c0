// Package dbtest provides empty databases on both engines for tests.
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

	_ "github.com/jackc/pgx/v5/stdlib" // registers the driver "pgx"

	"assay/internal/db"
	"assay/internal/pgtest"
	"assay/internal/randtest"
)

// Names of the engines.
const (
	SQLite     = "sqlite"
	PostgreSQL = "postgres"
)

// pooled is the engine name for PostgreSQL behind a connection pooler, with a partitioned
// inventory. Only Each uses it.
const pooled = "pooler"

// engineVariable is the environment variable that selects one engine.
const engineVariable = "ASSAY_TEST_ENGINE"

// RunOnEngines runs all tests of a package once on each engine and returns the exit code.
// Call it from TestMain. If ASSAY_TEST_ENGINE is set, only that engine runs.
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

// Database is the location of a test database. Path and URL are as in db.Options.
type Database struct {
	Engine    string
	Path, URL string
	direct    string // address without the pooler, if URL uses one
}

// NewDatabase creates an empty database on the current engine of RunOnEngines. The database
// is removed when tb ends. SQLite files are stored in memory if possible: these tests do
// not simulate power failures, so slow disk writes would prove nothing.
func NewDatabase(tb testing.TB) Database {
	tb.Helper()
	d := On(tb, os.Getenv(engineVariable))
	if d.Engine == PostgreSQL {
		d.URL += fewConns // each connection starts a server process that loads the catalog
	}
	return d
}

const fewConns = "&pool_max_conns=6"

// On creates an empty database on the given engine.
func On(tb testing.TB, engine string) Database {
	tb.Helper()
	if engine != PostgreSQL && engine != pooled {
		return Database{Engine: SQLite, Path: filepath.Join(memoryDir(tb), "assay.db")}
	}
	tb.Log("the test runs on PostgreSQL")
	server := pgtest.Shared(tb)
	if engine != pooled {
		return Database{Engine: PostgreSQL, URL: server.CopyDatabase(tb, "migrated", migrate)}
	}
	d := Database{Engine: PostgreSQL, direct: server.CopyDatabase(tb, "partitioned", migratePartitioned)}
	d.URL = server.StartPooler(tb, poolerSessions).Through(tb, d.direct)
	return d
}

// poolerSessions is the number of sessions that the pooler opens for each database.
const poolerSessions = 20

func memoryDir(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "assay-test") //nolint:usetesting // t.TempDir is on disk
	if err != nil {
		return tb.TempDir()
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// migrate creates the schema in a database.
func migrate(ctx context.Context, url string) error {
	s, err := db.Open(ctx, db.Options{URL: url})
	if err != nil {
		return err
	}
	return s.Close()
}

// partitions is the number of partitions of a partitioned inventory.
const partitions = 4

// migratePartitioned creates the schema with a partitioned inventory.
func migratePartitioned(ctx context.Context, url string) error {
	if err := migrate(ctx, url); err != nil {
		return err
	}
	return db.PartitionInventory(ctx, db.Options{URL: url}, partitions, 0)
}

// RunsCase reports whether a test with many cases must run case nth. A short run on
// PostgreSQL runs one case of three, because creating a database there is slow. All other
// runs include all cases.
func RunsCase(nth int) bool {
	return nth%3 == 0 || randtest.Long() || os.Getenv(engineVariable) != PostgreSQL
}

// Open opens the database and closes it when tb ends.
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

// Raw opens a single connection to the database without db.DB. The caller must close it.
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

// Version returns a number that changes when any row of the database changes. It queries
// the connection raw, from the method Raw.
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

// rowVersions returns a query that computes a sum over the location and the writing
// transaction of each row. Row locks do not change the sum.
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

// Filled creates the schema, runs statements that add rows, and returns the connection that ran them.
func (d Database) Filled(tb testing.TB, statements ...string) *sql.DB {
	tb.Helper()
	d.Open(tb, db.Options{})
	raw := d.Raw(tb)
	tb.Cleanup(func() { _ = raw.Close() })
	for _, statement := range statements {
		if _, err := raw.ExecContext(tb.Context(), statement); err != nil {
			tb.Fatal(err)
		}
	}
	return raw
}

// Explain returns the plan of a query. It queries the connection raw, from the method Raw.
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
