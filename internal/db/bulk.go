package db

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strings"
)

// bulkRows is the number of rows in a prepared SQLite statement. It is large enough to
// reduce the cost per row, and small enough to leave few rows for single statements.
const bulkRows = 64

// Bulk is a statement that writes rows of a table. On PostgreSQL it writes all rows in one
// execution. If it only inserts rows, it loads many rows with COPY, which is faster and
// writes less log. On SQLite it is prepared twice: for bulkRows rows and for one row. A
// text for any other number of rows would be parsed each time, which costs about as much as
// running it.
type Bulk struct {
	before, columns, after string
	number                 int
	table                  string   // target of COPY, with names; "" if the statement does more than insert
	names                  []string // column names of table
}

// bulks lists all bulk statements in the order of their declaration.
var bulks []*Bulk //nolint:gochecknoglobals // complete after package initialization

var plainInsert = regexp.MustCompile(`^\s*INSERT INTO (\w+) \(([^)]*)\)\s*$`)

// NewBulk returns a statement that is before + rows + after. The columns are a list of
// names and types. Use it to initialize package variables, because Open prepares the
// statements.
func NewBulk(before, columns, after string) *Bulk {
	b := &Bulk{before: before, columns: columns, after: after, number: len(bulks)}
	if parts := plainInsert.FindStringSubmatch(before); parts != nil && after == "" {
		b.table, b.names = parts[1], strings.Fields(strings.ReplaceAll(parts[2], ",", " "))
	}
	bulks = append(bulks, b)
	return b
}

// text returns the statement for a number of rows. On PostgreSQL the number is ignored.
func (b *Bulk) text(d Dialect, rows int) string {
	return b.before + d.values(rows, b.columns) + b.after
}

// preparedBulk is a Bulk for one database. On SQLite it holds prepared statements. On
// PostgreSQL it holds the text.
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

// WriteRows runs a bulk statement for the rows of a table with the same columns. It
// returns the number of affected rows.
func (t *Tx) WriteRows(b *Bulk, rows *Table) (touched int64, err error) {
	if rows.Rows == 0 {
		return 0, nil
	}
	prepared := &t.DB.bulks[b.number]
	switch {
	case t.Dialect == PostgreSQL && b.table != "" && rows.Rows >= bulkRows:
		return t.copyRows(b, rows)
	case t.Dialect == PostgreSQL:
		return t.Exec(prepared.text, rows.Arrays()...)
	}
	many, one := t.tx.StmtContext(t.ctx, prepared.many), t.tx.StmtContext(t.ctx, prepared.one) //nolint:sqlclosecheck // they are closed with the transaction
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
