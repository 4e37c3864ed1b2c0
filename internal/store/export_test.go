package store

import (
	"assay/internal/db"
	"context"
	"database/sql"
)

// Dialect is what tests need of a dialect.
type Dialect = db.Dialect

// The dialects.
const (
	OnSQLite   = db.SQLite
	OnPostgres = db.PostgreSQL
)

// Setting returns how something is set in PostgreSQL.
func Setting(t *Tx, name string) (value string, err error) {
	err = t.QueryRow(`SELECT current_setting($1)`, name).Scan(&value)
	return value, err
}

// UnpricedItemsQuery is the query for items without a price.
const UnpricedItemsQuery = unpricedItems

// ListingsQuery is the query for listings; item is 0 for all items.
func ListingsQuery(f ListingFilter, item int64, limit int) (query string, args []any) {
	return f.listings(item, limit)
}

// GuardPostgres returns what is compared of the tables of the ledger in a PostgreSQL
// database, as it is kept in guard_postgres.txt.
func GuardPostgres(ctx context.Context, raw *sql.DB) (string, error) {
	found, err := db.ReadObjects(ctx, raw, selectObjectsPostgres)
	return found.String(), err
}
