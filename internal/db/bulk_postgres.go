package db

import (
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// copyRows inserts the rows of a bulk statement by COPY. database/sql has no COPY, so
// copyRows uses the driver's connection, within the same transaction.
func (t *Tx) copyRows(b *Bulk, rows *Table) (inserted int64, err error) {
	values := make([]any, 0, len(rows.Columns))
	source := pgx.CopyFromSlice(rows.Rows, func(row int) ([]any, error) {
		values = rows.appendRow(values[:0], row)
		return values, nil
	})
	err = t.conn.Raw(func(driver any) error {
		inserted, err = driver.(*stdlib.Conn).Conn().CopyFrom(t.ctx, pgx.Identifier{b.table}, b.names, source)
		return err
	})
	return inserted, err
}
