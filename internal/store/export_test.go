package store

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Dialect is what tests need of a dialect.
type Dialect = dialect

// The dialects.
const (
	OnSQLite   = onSQLite
	OnPostgres = onPostgres
)

// Fragment returns the part of a statement that a method of the dialect makes;
// ok is false where it has no such method.
func Fragment(d Dialect, method string, n int, text string) (fragment string, ok bool) {
	switch method {
	case "ids":
		return d.ids(n), true
	case "texts":
		return d.texts(n), true
	case "rows":
		return d.rows(n, text), true
	case "skipLocked":
		return d.skipLocked(text), true
	case "lock":
		return d.lock(), true
	case "lockOf":
		return d.lockOf(text), true
	case "share":
		return d.share(text), true
	case "clock":
		return d.clock(n), true
	case "newTransactionID":
		return d.newTransactionID(), true
	case "newTradeID":
		return d.newTradeID(), true
	case "newItemID":
		return d.newItemID(), true
	}
	return "", false
}

// Setting returns how something is set in PostgreSQL.
func Setting(t *Tx, name string) (value string, err error) {
	err = t.queryRow(`SELECT current_setting($1)`, name).Scan(&value)
	return value, err
}

// UnpricedItemsQuery is the query for items without a price.
const UnpricedItemsQuery = unpricedItems

// ListingsQuery is the query for listings; item is 0 for all items.
func ListingsQuery(f ListingFilter, item int64, limit int) (query string, args []any) {
	return f.listings(item, limit)
}

// BulkTexts returns the statements that write rows. On SQLite they are prepared
// when a store is opened.
func BulkTexts() (out []string) {
	for _, b := range bulks {
		out = append(out, b.text(onPostgres, 0))
	}
	return out
}

// PostgresObjects returns what is compared of a PostgreSQL database's schema, as it is
// kept in guard_postgres.txt and catalogue_postgres.txt.
func PostgresObjects(ctx context.Context, db *sql.DB) (guard, catalogue string, err error) {
	tables, err := tablesPostgres(ctx, db)
	if err != nil {
		return "", "", err
	}
	if guard, err = objectLines(ctx, db, selectObjectsPostgres); err == nil {
		catalogue, err = objectLines(ctx, db, selectCataloguePostgres, ownTables(tables))
	}
	return guard, catalogue, err
}

func objectLines(ctx context.Context, db *sql.DB, query string, args ...any) (string, error) {
	found, err := readObjects(ctx, db, query, args...)
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(found)) {
		fmt.Fprintf(&b, "%q %q\n", name, found[name])
	}
	return b.String(), err
}
