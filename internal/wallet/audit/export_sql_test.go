package audit

import (
	"context"
	"database/sql"

	"assay/internal/db"
)

// GuardPostgres returns what is compared of the tables of the ledger in a PostgreSQL
// database, as it is kept in guard_postgres.txt.
func GuardPostgres(ctx context.Context, raw *sql.DB) (string, error) {
	found, err := db.ReadObjects(ctx, raw, selectObjectsPostgres)
	return found.String(), err
}

// LoosenForTests has Schema find no changes, for ledgers whose constraints a test has
// dropped.
func (l *Snapshot) LoosenForTests() { l.loosened = true }
