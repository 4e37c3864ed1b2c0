package db_test

import (
	"context"
	"testing"
	"time"

	"assay/internal/db"
	"assay/internal/db/dbtest"
)

// Each result must include all commits before the call, also if transactions end in another order
// than they began, and if the connection was closed.
func TestNumber_IncludesTheLastCommit(t *testing.T) {
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			d := dbtest.On(t, engine)
			s := d.Open(t, db.Options{})
			raw := d.Raw(t)
			defer raw.Close()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			exec := func(statement string, args ...any) {
				t.Helper()
				_, err := raw.ExecContext(ctx, statement, args...)
				must(t, err)
			}
			expect := func(want int64) {
				t.Helper()
				for range 3 { // the second result is the cached one
					if got, err := s.Number(ctx, `SELECT CAST(sum(version) AS BIGINT) FROM price_version`); err != nil || got != want {
						t.Fatalf("got %d, error %v, want %d", got, err, want)
					}
				}
			}
			exec(`INSERT INTO price_version (bucket, version) VALUES (1, 1), (2, 10), (3, 100)`)
			expect(111)
			exec(`UPDATE price_version SET version = 2 WHERE bucket = 1`)
			expect(112)
			if engine == dbtest.SQLite {
				return
			}
			other := d.Raw(t)
			defer other.Close()
			first, err := other.BeginTx(ctx, nil)
			must(t, err)
			_, err = first.ExecContext(ctx, `UPDATE price_version SET version = 20 WHERE bucket = 2`)
			must(t, err)
			expect(112)
			exec(`UPDATE price_version SET version = 200 WHERE bucket = 3`)
			expect(212)
			must(t, first.Commit())
			expect(222)
			second, err := other.BeginTx(ctx, nil)
			must(t, err)
			_, err = second.ExecContext(ctx, `UPDATE price_version SET version = 30 WHERE bucket = 2`)
			must(t, err)
			must(t, second.Rollback())
			expect(222)
			exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
			_, _ = s.Number(ctx, `SELECT CAST(sum(version) AS BIGINT) FROM price_version`) // may find the closed connection
			exec(`UPDATE price_version SET version = 3 WHERE bucket = 1`)
			expect(223)
		})
	}
}

// A query fails before its deadline. The next query of the connection is longer than the rest of
// that time.
func TestNumber_ErrorLeavesNoDeadline(t *testing.T) {
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			s := dbtest.On(t, engine).Open(t, db.Options{})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := s.Number(ctx, `SELECT CAST(version AS BIGINT) FROM no_such_table`); err == nil {
				t.Error("query of a missing table: got no error, want one")
			}
			query := `SELECT 1`
			if engine == dbtest.PostgreSQL {
				query = `SELECT 1 FROM pg_sleep(1.5)`
			}
			var one int
			if err := s.Frequent.QueryRowContext(t.Context(), query).Scan(&one); err != nil {
				t.Errorf("next query of the connection: got error %v, want none", err)
			}
		})
	}
}
