package store

import (
	"context"
	"database/sql"
	"fmt"
)

// bulkRows is how many rows a prepared statement takes at once on SQLite: enough
// to make the cost of a statement small, few enough to leave few rows over.
const bulkRows = 64

// bulk is a statement that writes rows of a table. PostgreSQL takes all rows at
// once. On SQLite it is prepared for bulkRows of them and for one: text that
// depends on the number of rows would be parsed anew each time, which costs about
// as much as running it.
type bulk struct {
	columns   string
	text      string    // on PostgreSQL
	many, one *sql.Stmt // on SQLite
}

// bulks are the statements that write many rows.
type bulks struct {
	items, quotes, points, jobItems, units, blobs, places, asked, fetches, fetched, inventory bulk
	newWallets, wallets, entries                                                              bulk
}

// makeBulks makes the statements, preparing them on SQLite's one writer.
func makeBulks(ctx context.Context, d dialect, db *sql.DB) (*bulks, error) {
	b := &bulks{}
	for _, p := range []struct {
		bulk                   *bulk
		before, columns, after string
	}{
		{&b.items, writeItems, estimateColumns, writeItemsWhere},
		{&b.quotes, writeQuotes, quotesTypes, replaceOfOld},
		{&b.points, writePoints, pointColumns, writePointsConflict},
		{&b.jobItems, writeJobItems, jobItemColumns, writeJobItemsWhere},
		{&b.units, insertUnits, insertUnitColumns, ""},
		{&b.blobs, insertBlobs, blobColumns, ""},
		{&b.fetches, addFetches, fetchColumns, addFetchesConflict},
		{&b.fetched, noteFetches, fetchedColumns, noteFetchesConflict},
		{&b.places, placeNames, placeColumns, placeNamesConflict},
		{&b.asked, askedNames, askedColumns, askedNamesConflict},
		{&b.inventory, addInventory, addColumns, addInventoryEnd},
		{&b.newWallets, addWallets, headTypes, addWalletsConflict},
		{&b.wallets, setWallets, headTypes, setWalletsWhere},
		{&b.entries, addEntries, entryTypes, ""},
	} {
		p.bulk.columns = p.columns
		if d == onPostgres {
			p.bulk.text = p.before + d.values(0, p.columns) + p.after
			continue
		}
		var err error
		if p.bulk.many, err = db.PrepareContext(ctx, p.before+d.values(bulkRows, p.columns)+p.after); err != nil {
			return nil, fmt.Errorf("prepare: %w", err)
		}
		if p.bulk.one, err = db.PrepareContext(ctx, p.before+d.values(1, p.columns)+p.after); err != nil {
			return nil, fmt.Errorf("prepare: %w", err)
		}
	}
	return b, nil
}

// writeRows runs a bulk for the rows of a table that has its columns, and
// returns how many rows of the database were touched.
func (t *Tx) writeRows(b *bulk, rows *table) (touched int64, err error) {
	if rows.rows == 0 {
		return 0, nil
	}
	if t.d == onPostgres {
		return t.exec(b.text, rows.arrays()...)
	}
	many, one := t.tx.StmtContext(t.ctx, b.many), t.tx.StmtContext(t.ctx, b.one) //nolint:sqlclosecheck // they end with the transaction
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
