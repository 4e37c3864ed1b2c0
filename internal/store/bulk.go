package store

import (
	"context"
	"database/sql"
	"fmt"
)

// bulkRows is how many rows a prepared statement takes at once: enough to make
// the cost of a statement small, few enough to leave few rows over.
const bulkRows = 64

// bulk is a statement that writes rows, prepared for bulkRows of them and for
// one. Text that depends on the number of rows would be parsed anew each time,
// which costs about as much as running it.
type bulk struct {
	columns   int
	many, one *sql.Stmt
}

// bulks are the statements that settling and syncs write with.
type bulks struct {
	items, snapshots, points, jobItems, inventory bulk
}

// prepareBulks prepares on the writer's one connection.
func prepareBulks(ctx context.Context, db *sql.DB) (*bulks, error) {
	b := &bulks{}
	for _, p := range []struct {
		bulk    *bulk
		columns int
		text    func(rows int) string
	}{
		{&b.items, estimateColumns, func(rows int) string { return writeItems + values(rows, estimateColumns) + writeItemsWhere }},
		{&b.snapshots, snapshotWidth, func(rows int) string { return writeSnapshots + values(rows, snapshotWidth) + writeSnapshotsConflict }},
		{&b.points, pointColumns, func(rows int) string { return writePoints + values(rows, pointColumns) + writePointsConflict }},
		{&b.jobItems, jobItemColumns, func(rows int) string { return writeJobItems + values(rows, jobItemColumns) + writeJobItemsWhere }},
		{&b.inventory, inventoryWidth, func(rows int) string { return addInventory + values(rows, inventoryWidth) + addInventoryJoin }},
	} {
		var err error
		p.bulk.columns = p.columns
		if p.bulk.many, err = db.PrepareContext(ctx, p.text(bulkRows)); err != nil {
			return nil, fmt.Errorf("prepare: %w", err)
		}
		if p.bulk.one, err = db.PrepareContext(ctx, p.text(1)); err != nil {
			return nil, fmt.Errorf("prepare: %w", err)
		}
	}
	return b, nil
}

// writeRows runs a bulk for n rows, whose values row appends; more are the
// parameters that come after those of the rows. It returns how many rows of the
// table were touched.
func (t *Tx) writeRows(b *bulk, n int, row func(args []any, i int) []any, more ...any) (touched int64, err error) {
	if n == 0 {
		return 0, nil
	}
	many, one := t.tx.StmtContext(t.ctx, b.many), t.tx.StmtContext(t.ctx, b.one) //nolint:sqlclosecheck // they end with the transaction
	args := make([]any, 0, bulkRows*b.columns+len(more))
	for i := 0; i < n; {
		statement, rows := one, 1
		if n-i >= bulkRows {
			statement, rows = many, bulkRows
		}
		args = args[:0]
		for range rows {
			args = row(args, i)
			i++
		}
		res, err := statement.ExecContext(t.ctx, append(args, more...)...)
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
