package store

import (
	"context"
	"database/sql"
	"fmt"
)

// bulkRows is how many rows a prepared statement takes at once on SQLite: enough
// to make the cost of a statement small, few enough to leave few rows over.
const bulkRows = 64

// bulk is a statement that writes rows of a table. PostgreSQL takes all rows at once. On
// SQLite it is prepared for bulkRows of them and for one: text that depends on the number
// of rows would be parsed anew each time, which costs about as much as running it.
type bulk struct {
	before, columns, after string
	number                 int
}

// bulks are all of them.
var bulks []*bulk

// newBulk returns the statement with a list of columns and their types between two texts.
// It is for variables of packages: a database prepares them when it is opened.
func newBulk(before, columns, after string) *bulk {
	b := &bulk{before, columns, after, len(bulks)}
	bulks = append(bulks, b)
	return b
}

// text is the statement for so many rows; on PostgreSQL for any number.
func (b *bulk) text(d dialect, rows int) string {
	return b.before + d.values(rows, b.columns) + b.after
}

// preparedBulk is a bulk on SQLite's one writer.
type preparedBulk struct{ many, one *sql.Stmt }

func prepareBulks(ctx context.Context, d dialect, db *sql.DB) ([]preparedBulk, error) {
	out := make([]preparedBulk, len(bulks))
	for i, b := range bulks {
		if d == onPostgres {
			break
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

// writeRows runs a bulk for the rows of a table that has its columns, and
// returns how many rows of the database were touched.
func (t *Tx) writeRows(b *bulk, rows *table) (touched int64, err error) {
	if rows.rows == 0 {
		return 0, nil
	}
	if t.d == onPostgres {
		return t.exec(b.text(t.d, 0), rows.arrays()...)
	}
	prepared := &t.db.bulks[b.number]
	many, one := t.tx.StmtContext(t.ctx, prepared.many), t.tx.StmtContext(t.ctx, prepared.one) //nolint:sqlclosecheck // they end with the transaction
	args := make([]any, 0, bulkRows*len(rows.columns))
	for row := 0; row < rows.rows; {
		statement, n := one, 1
		if rows.rows-row >= bulkRows {
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
