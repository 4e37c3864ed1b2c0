package db

import (
	"context"
	"database/sql"
)

// CatalogPostgres returns the schema objects of a PostgreSQL database in the format of
// catalog_postgres.txt.
func CatalogPostgres(ctx context.Context, db *sql.DB) (string, error) {
	tables, err := tablesPostgres(ctx, db)
	if err != nil {
		return "", err
	}
	found, err := ReadObjects(ctx, db, selectCatalogPostgres, ownTables(tables))
	return found.String(), err
}

// Fragment calls a method of the dialect by name and returns its SQL. It returns false if
// there is no such method.
func Fragment(d Dialect, method string, n int, text string) (fragment string, ok bool) {
	switch method {
	case "IDs":
		return d.IDs(n), true
	case "OneOf":
		return d.OneOf(n), true
	case "Lookup":
		return d.Lookup(text), true
	case "Texts":
		return d.Texts(n), true
	case "Rows":
		return d.Rows(n, text), true
	case "SkipLocked":
		return d.SkipLocked(text), true
	case "Lock":
		return d.Lock(), true
	case "LockOf":
		return d.LockOf(text), true
	case "Share":
		return d.Share(text), true
	case "Clock":
		return d.Clock(n), true
	case "NewTransactionID":
		return d.NewTransactionID(), true
	case "NewTradeID":
		return d.NewTradeID(), true
	case "NewItemID":
		return d.NewItemID(), true
	}
	return "", false
}

// CheckSchema calls checkSchema.
var CheckSchema = checkSchema

// BulkTexts returns the statements of all bulks. On SQLite, Open prepares them.
func BulkTexts() (out []string) {
	for _, b := range bulks {
		out = append(out, b.text(PostgreSQL, 0))
	}
	return out
}
