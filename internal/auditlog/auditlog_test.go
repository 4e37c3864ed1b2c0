package auditlog

import (
	"errors"
	"strings"
	"testing"
	"time"

	"assay/internal/db"
	"assay/internal/db/dbtest"
)

// actors returns the actors of all entries, newest first.
func actors(f *dbtest.Fixture) string {
	f.Helper()
	entries, err := List(f.Context(), f.DB, "", 0, 100)
	f.Must(err)
	names := make([]string, len(entries))
	for i := range entries {
		names[i] = entries[i].Actor
	}
	return strings.Join(names, " ")
}

func TestCreated_ExtendsThePathOfTheTarget(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		for target, want := range map[string]string{"/api/keys": "/api/keys/shop", "/operators?role=admin": "/operators/shop?role=admin"} {
			f.Must(f.DB.InTx(With(f.Context(), Entry{Target: target}), func(tx *db.Tx) error { Created(tx, "shop"); return nil }))
			entries, err := List(f.Context(), f.DB, "", 0, 1)
			f.Must(err)
			f.Is("target of "+target, entries[0].Target, want)
		}
	})
}

func TestWith_WritesOneEntryWithTheFirstCommit(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		f.Tx(func(tx *db.Tx) error { _, err := tx.Exec(`CREATE TABLE written (n INTEGER)`); return err })
		ctx := With(f.Context(), Entry{
			Actor: "key:a", Address: "203.0.113.7", Action: "PUT /api/users/{userId}", Target: "/api/users/" + strings.Repeat("x", 2_000) + "\xff", RequestID: "id",
		})
		write := func(result error) error {
			return f.DB.InTx(ctx, func(tx *db.Tx) error {
				_, err := tx.Exec(`INSERT INTO written VALUES (1)`)
				return errors.Join(err, result)
			})
		}
		refused := errors.New("refused")
		f.Is("InTx returned the error of the refused change", errors.Is(write(refused), refused), true)
		f.Is("actors after a rollback", actors(f), "")
		f.Must(write(nil))
		f.Must(write(nil))
		f.Is("actors after two commits", actors(f), "key:a")
		entries, err := List(f.Context(), f.DB, "key:a", 0, 1)
		f.Must(err)
		e := entries[0]
		f.Is("length of the target", len(e.Target), maxTarget)
		e.ID, e.Target = 0, ""
		f.Is("entry", e, Entry{At: f.Now.Truncate(time.Microsecond), Actor: "key:a", Address: "203.0.113.7", Action: "PUT /api/users/{userId}", RequestID: "id"})
	})
}

// A change without an entry must not exist, even if the entry cannot be written.
func TestWith_AFailedEntryUndoesTheChange(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		f.Tx(func(tx *db.Tx) error {
			_, err := tx.Exec(`CREATE TABLE written (n INTEGER)`)
			if err == nil {
				_, err = tx.Exec(`ALTER TABLE audit_entry RENAME TO missing`)
			}
			return err
		})
		err := f.DB.InTx(With(f.Context(), Entry{Actor: "admin"}), func(tx *db.Tx) error { _, err := tx.Exec(`INSERT INTO written VALUES (1)`); return err })
		f.Is("the change returned an error", err != nil, true)
		var rows int
		f.Must(f.DB.Read.QueryRowContext(f.Context(), `SELECT count(*) FROM written`).Scan(&rows))
		f.Is("rows of the change", rows, 0)
	})
}

func TestDeleteOld_LimitsAgeAndNumber(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		add := func(names ...string) {
			for _, name := range names {
				f.Must(f.DB.InTx(With(f.Context(), Entry{Actor: name}), func(*db.Tx) error { return nil }))
			}
		}
		add("old1", "old2")
		f.Now = f.Now.Add(maxAge)
		add("a", "b", "c")
		f.Now = f.Now.Add(time.Hour)
		f.Must(DeleteOld(f.Context(), f.DB))
		f.Is("entries of the last year", actors(f), "c b a")
		var more bool
		remove := func(most, batch int) {
			f.Tx(func(tx *db.Tx) (err error) { more, err = deleteOld(tx, most, batch); return err })
		}
		remove(2, 1)
		f.Is("entries after a batch of one", actors(f), "c b")
		f.Is("a full batch may have more", more, true)
		remove(2, 1)
		f.Is("entries within the limit", actors(f), "c b")
		f.Is("more entries to delete", more, false)
	})
}
