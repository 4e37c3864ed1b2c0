package audit_test

import (
	"errors"
	"os"
	"testing"

	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/wallet/audit"
)

func TestGuard_DetectsFunctionsThatShadowPostgreSQL(t *testing.T) {
	d := dbtest.On(t, dbtest.PostgreSQL)
	d.Open(t, db.Options{})
	d.URL += "&search_path=public,pg_catalog"
	must(t, audit.ReadLedger(t.Context(), d.Open(t, db.Options{}), func(l *audit.Snapshot) error {
		_, changes, err := l.Schema()
		if len(changes) != 1 || changes[0].Object != "search path" || changes[0].Actual != "public, pg_catalog" {
			t.Errorf("got changes %+v, want only the search path", changes)
		}
		return err
	}))
}

// TestGuard_MatchesTheMigrations compares a new database with the expected schema.
// ASSAY_UPDATE=1 rewrites the expected schema for PostgreSQL.
func TestGuard_MatchesTheMigrations(t *testing.T) {
	for _, engine := range []string{dbtest.SQLite, dbtest.PostgreSQL} {
		t.Run(engine, func(t *testing.T) {
			d := dbtest.On(t, engine)
			if os.Getenv("ASSAY_UPDATE") == "1" && engine == dbtest.PostgreSQL {
				raw := d.Raw(t)
				guard, err := audit.GuardPostgres(t.Context(), raw)
				must(t, errors.Join(err, raw.Close()))
				must(t, os.WriteFile("guard_postgres.txt", []byte(guard), 0o644))
				return
			}
			s := d.Open(t, db.Options{})
			must(t, audit.ReadLedger(t.Context(), s, func(l *audit.Snapshot) error {
				n, changes, err := l.Schema()
				for _, c := range changes {
					t.Errorf("%s: got the definition %q, want %q; run make generate after a change of the migrations", c.Object, c.Actual, c.Expected)
				}
				if n < 15 {
					t.Errorf("compared %d objects, want at least 15", n)
				}
				return err
			}))
		})
	}
}
