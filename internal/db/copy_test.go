package db

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"assay/internal/pgtest"
)

// copySide is the source or target of a copy in a test.
type copySide struct {
	Options
	d  Dialect
	db *sql.DB
}

// emptySide creates an empty database with the schema.
func emptySide(t *testing.T, d Dialect) *copySide {
	t.Helper()
	s := &copySide{d: d}
	driver, address := "sqlite", filepath.Join(t.TempDir(), "assay.db")
	if d == PostgreSQL {
		driver, address = "pgx", pgtest.Shared(t).CopyDatabase(t, "schema", func(ctx context.Context, url string) error {
			store, err := Open(ctx, Options{URL: url})
			return errors.Join(err, store.Close())
		})
		s.URL = address
	} else {
		s.Path = address
	}
	store, err := Open(t.Context(), s.Options)
	must(t, err)
	must(t, store.Close())
	if d == SQLite {
		address += "?_pragma=synchronous(0)"
	}
	s.db, err = sql.Open(driver, address)
	must(t, err)
	t.Cleanup(func() { must(t, s.db.Close()) })
	return s
}

// copySides runs a test for copies between the two engines, in both directions.
func copySides(t *testing.T, test func(t *testing.T, from, to *copySide)) {
	t.Helper()
	t.Run("SQLite to PostgreSQL", func(t *testing.T) { test(t, emptySide(t, SQLite), emptySide(t, PostgreSQL)) })
	t.Run("PostgreSQL to SQLite", func(t *testing.T) { test(t, emptySide(t, PostgreSQL), emptySide(t, SQLite)) })
}

// sameEngineSides runs a test for copies within one engine.
func sameEngineSides(t *testing.T, test func(t *testing.T, from, to *copySide)) {
	t.Helper()
	t.Run("SQLite to SQLite", func(t *testing.T) { test(t, emptySide(t, SQLite), emptySide(t, SQLite)) })
	t.Run("PostgreSQL to PostgreSQL", func(t *testing.T) { test(t, emptySide(t, PostgreSQL), emptySide(t, PostgreSQL)) })
}

func (s *copySide) exec(t *testing.T, query string, args ...any) {
	t.Helper()
	_, err := s.db.ExecContext(t.Context(), query, args...)
	must(t, err)
}

func (s *copySide) number(t *testing.T, query string, args ...any) (n int64) {
	t.Helper()
	must(t, s.db.QueryRowContext(t.Context(), query, args...).Scan(&n))
	return n
}

func (s *copySide) tables(t *testing.T) []copyTable {
	t.Helper()
	wanted, err := copiedTables(t.Context())
	must(t, err)
	tables, err := findTables(t.Context(), s.db, s.d, wanted)
	must(t, err)
	return tables
}

// traps are texts that are often encoded wrongly.
var traps = []string{
	"★ Karambit | Doppler (Factory New)", "Souvenir M4A1-S | 龍王 (Dragon King)", "Sealed Graffiti | A/B\n?", "\ttab ", "",
	`it's "quoted" \ \N \. \x`, "e\u0301 is not \u00e9", "\U0001F480\u200d\ufeff", "$1 ?1 %s {} NULL", strings.Repeat("long ", 1000), "\x01\x7f",
}

// filledRows is the number of rows in each table. A copy of them needs one full statement and a
// partial one.
const filledRows = bulkRows + 7

// fill inserts rows with values of all types into every table.
func (s *copySide) fill(t *testing.T) {
	t.Helper()
	big := bytes.Repeat([]byte("\x00\xff blob"), 1<<18)
	tx, err := s.db.BeginTx(t.Context(), nil)
	must(t, err)
	for _, table := range kinds(t) {
		marks := make([]string, len(table.columns))
		for i := range marks {
			marks[i] = fmt.Sprint("$", i+1)
		}
		insert := "INSERT INTO " + table.name + " (" + strings.Join(table.columnNames(), ", ") + ") VALUES (" + strings.Join(marks, ", ") + ")"
		for row := range filledRows {
			var values []any
			for i, c := range table.columns {
				var v any
				switch c.kind {
				case copyInteger:
					v = int64(row + 1000*i)
				case copyBoolean:
					v = row%2 == 0 // stored as 1 or 0 on SQLite
				case copyText:
					v = fmt.Sprint(traps[row%len(traps)], "#", row)
				default:
					v = big[:row]
				}
				switch {
				case row == 5 && (c.name == "price" || c.name == "value" && c.kind == copyInteger):
					v = int64(1<<63 - 1)
				case row == 6 && c.kind == copyBlob:
					v = big
				case row%3 == 0 && (c.name == "names" || table.name == "inventory" && c.name == "value"):
					v = nil
				}
				values = append(values, v)
			}
			if _, err := tx.ExecContext(t.Context(), insert, values...); err != nil {
				t.Fatalf("%s: got error %v, want none", table.name, err)
			}
		}
	}
	must(t, tx.Commit())
}

// kinds returns all tables with the column types of PostgreSQL, because SQLite has no booleans.
func kinds(t *testing.T) []copyTable {
	t.Helper()
	return emptySide(t, PostgreSQL).tables(t)
}

// rows returns all rows of a table as sorted text.
func (s *copySide) rows(t *testing.T, table copyTable) []string {
	t.Helper()
	r, err := table.read(t.Context(), s.db)
	must(t, err)
	defer r.Close()
	var out []string
	for {
		row, err := r.next()
		must(t, err)
		if row == nil {
			slices.Sort(out)
			return out
		}
		out = append(out, fmt.Sprintf("%q", row))
	}
}

// count returns the number of rows in all tables.
func (s *copySide) count(t *testing.T) (n int64) {
	t.Helper()
	for _, table := range append(s.tables(t), copyTable{name: instanceTable}) {
		n += s.number(t, table.query("count(*)"))
	}
	return n
}

func runCopy(t *testing.T, from, to *copySide) ([]TableRows, error) {
	t.Helper()
	return Copy(t.Context(), CopyOptions{From: from.Options, To: to.Options, Lease: time.Minute})
}

func TestCopiedTables_MatchBothSchemas(t *testing.T) {
	wanted, err := copiedTables(t.Context())
	must(t, err)
	for d, read := range map[Dialect]func(context.Context, Querier) ([]copyTable, error){SQLite: tablesSQLite, PostgreSQL: tablesPostgres} {
		s := emptySide(t, d)
		all, err := read(t.Context(), s.db)
		must(t, err)
		have := map[string]bool{versionTable: true, instanceTable: true, writerTable: true}
		for _, table := range s.tables(t) { // fails if the columns or their kinds differ
			have[table.name] = true
		}
		for _, table := range all {
			if !have[table.name] {
				t.Errorf("got a copy without table %s, want all tables", table.name)
			}
		}
		if len(all) != len(wanted)+3 || len(wanted) < 15 {
			t.Errorf("got %d tables, of which %d are copied; want all but 3, and at least 15", len(all), len(wanted))
		}
	}
}

func TestCopy_CopiesEveryRowOfEveryTable(t *testing.T) {
	copies := func(t *testing.T, from, to *copySide) {
		from.fill(t)
		var reports []CopyProgress
		done, err := Copy(t.Context(), CopyOptions{From: from.Options, To: to.Options, OnProgress: func(p CopyProgress) { reports = append(reports, p) }})
		must(t, err)
		targets := to.tables(t)
		for i, table := range from.tables(t) {
			if diff := cmp.Diff(from.rows(t, table), to.rows(t, targets[i])); diff != "" {
				t.Errorf("%s: rows of the target (-want +got):\n%.2000s", table.name, diff)
			}
			if done[i] != (TableRows{table.name, filledRows}) {
				t.Errorf("%s: got the report %v, want %d rows", table.name, done[i], filledRows)
			}
		}
		if last, want := reports[len(reports)-1], int64(len(done)*filledRows); !last.Verifying || last.Total != want {
			t.Errorf("last progress: got %+v, want verifying with a total of %d rows", last, want)
		}
		store, err := Open(t.Context(), to.Options)
		must(t, err)
		must(t, store.Close())
	}
	copySides(t, copies)
	sameEngineSides(t, copies)
}

func TestCopy_DoesNotReuseIDs(t *testing.T) {
	const job = `INSERT INTO refresh_job (kind, forced, state, stage, requested_by, created_at) VALUES ('x', false, 'finished', 'done', '', 0) RETURNING id`
	copySides(t, func(t *testing.T, from, to *copySide) {
		from.fill(t)
		if from.d == PostgreSQL {
			from.exec(t, `SELECT setval('refresh_job_id_seq', 5000)`)
		} else {
			from.exec(t, `UPDATE sqlite_sequence SET seq = 5000 WHERE name = 'refresh_job'`)
		}
		_, err := runCopy(t, from, to)
		must(t, err)
		if id := to.number(t, job); id != 5001 {
			t.Errorf("next job: got id %d, want 5001", id)
		}
		if to.d == SQLite {
			return
		}
		sequences := to.number(t, `SELECT count(*) FROM pg_sequences WHERE sequencename <> 'goose_db_version_id_seq'`)
		for _, table := range to.tables(t) {
			for _, c := range table.columns {
				if !c.identity {
					continue
				}
				sequences--
				next := to.number(t, `SELECT nextval(CAST(pg_get_serial_sequence($1, $2) AS regclass))`, table.name, c.name)
				if greatest := to.number(t, "SELECT max("+c.name+") FROM "+table.name); next <= greatest && table.name != "refresh_job" {
					t.Errorf("%s: got next id %d, want more than %d", table.name, next, greatest)
				}
			}
		}
		if next := to.number(t, `SELECT nextval('item_number')`); next != filledRows {
			t.Errorf("next item number: got %d, want %d", next, filledRows)
		}
		if sequences != 1 {
			t.Errorf("got %d sequences that were not checked, want 0", sequences-1)
		}
	})
}

func TestCopy_ReleasesClaimedWork(t *testing.T) {
	copySides(t, func(t *testing.T, from, to *copySide) {
		from.fill(t)
		from.exec(t, `UPDATE fetch_unit SET state = 'running', token = 41 WHERE id = 7`)
		from.exec(t, `UPDATE refresh_batch SET state = 'running', token = 41 WHERE job_id = 7`)
		_, err := runCopy(t, from, to)
		must(t, err)
		for _, query := range []string{
			`SELECT token FROM fetch_unit WHERE id = 7 AND state = 'pending'`,
			`SELECT token FROM refresh_batch WHERE job_id = 7 AND state = 'pending'`,
		} {
			if token := to.number(t, query); token != 42 {
				t.Errorf("%s: got token %d, want 42", query, token)
			}
		}
		if n := from.number(t, `SELECT count(*) FROM fetch_unit WHERE state = 'running' AND token = 41`); n != 1 {
			t.Error("the copy changed the source, want no change")
		}
	})
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
