package db

import (
	"context"
	"database/sql"
	"fmt"
)

// bulkRows is how many rows a prepared statement takes at once on SQLite: enough
// to make the cost of a statement small, few enough to leave few rows over.
const bulkRows = 64

// Bulk is a statement that writes rows of a table. PostgreSQL takes all rows at once. On
// SQLite it is prepared for bulkRows of them and for one: text that depends on the number
// of rows would be parsed each time, which costs about as much as running it.
type Bulk struct {
	before, columns, after string
	number                 int
}

// bulks are all of them, in the order in which the packages declare them.
var bulks []*Bulk //nolint:gochecknoglobals // complete once the packages are initialized

// NewBulk returns the statement with a list of columns and their types between two texts.
// It is for variables of packages: a database prepares them when it is opened.
func NewBulk(before, columns, after string) *Bulk {
	b := &Bulk{before, columns, after, len(bulks)}
	bulks = append(bulks, b)
	return b
}

// text is the statement for so many rows; on PostgreSQL for any number.
func (b *Bulk) text(d Dialect, rows int) string {
	return b.before + d.values(rows, b.columns) + b.after
}

// preparedBulk is a bulk as one database takes it: prepared on SQLite's one writer, or the
// text on PostgreSQL, which is put together once and not for each batch.
type preparedBulk struct {
	many, one *sql.Stmt
	text      string
}

func prepareBulks(ctx context.Context, d Dialect, db *sql.DB) ([]preparedBulk, error) {
	out := make([]preparedBulk, len(bulks))
	for i, b := range bulks {
		if d == PostgreSQL {
			out[i].text = b.text(d, 0)
			continue
		}
		var err error
		if out[i].many, err = db.PrepareContext(ctx, b.text(d, bulkRows)); err != nil {
			return nil, fmt.Errorf("prepare: %w", err)
		}
		if out[i].one, err = db.PrepareContext(ctx, b.text(d, 1)); err != nil {
			return nil, fmt.Errorf("prepare: %w", err)
		}
	}
	return out, nil
}

// WriteRows runs a bulk for the rows of a table that has its columns, and
// returns how many rows of the database were touched.
func (t *Tx) WriteRows(b *Bulk, rows *Table) (touched int64, err error) {
	if rows.Rows == 0 {
		return 0, nil
	}
	prepared := &t.DB.bulks[b.number]
	if t.Dialect == PostgreSQL {
		return t.Exec(prepared.text, rows.Arrays()...)
	}
	many, one := t.tx.StmtContext(t.ctx, prepared.many), t.tx.StmtContext(t.ctx, prepared.one) //nolint:sqlclosecheck // they end with the transaction
	args := make([]any, 0, bulkRows*len(rows.Columns))
	for row := 0; row < rows.Rows; {
		statement, n := one, 1
		if rows.Rows-row >= bulkRows {
			statement, n = many, bulkRows
		}
		args = args[:0]
		for range n {
			args = rows.appendRow(args, row)
			row++
		}
		res, err := statement.ExecContext(t.ctx, args...)
		if err != nil {
			return touched, err
		}
		k, err := res.RowsAffected()
		if err != nil {
			return touched, err
		}
		touched += k
	}
	return touched, nil
}
