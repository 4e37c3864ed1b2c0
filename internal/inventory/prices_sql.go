package inventory

import (
	"database/sql"

	"assay/internal/db"
)

// applyToAll copies prices to all rows of a range. On SQLite it is faster than a join, which
// collects all rows before it writes them. It is not used on PostgreSQL, which would write a
// new version of every row, even of unchanged ones.
const applyToAll = `
UPDATE inventory SET value = (SELECT nullif(price, 0) FROM item WHERE item.id = inventory.item_id)
WHERE id >= $1 AND id < $2`

// Statements for rows with a value that differs from their item's price. The apply
// statements update the rows. The lock statements lock them in order of id on PostgreSQL.
const (
	applyPrice = `UPDATE inventory SET value = nullif(item.price, 0) FROM `
	findRows   = `SELECT inventory.id FROM inventory, `
	ofItem     = ` AND item.id = inventory.item_id`
	differing  = ofItem + ` AND inventory.value IS DISTINCT FROM nullif(item.price, 0)`
	lockByID   = ` ORDER BY inventory.id FOR NO KEY UPDATE OF inventory`

	rangeRows = `item WHERE inventory.id >= $1 AND inventory.id < $2`
	batchRows = `item JOIN refresh_item r ON r.item_id = item.id
WHERE r.job_id = $1 AND r.batch = $2 AND r.state = 'updated' AND r.price_after <> r.price_before`
	userRows = `item WHERE inventory.user_key = $1 AND inventory.app_id = $2 AND inventory.context_id = $3`

	applyToRange = applyPrice + rangeRows + differing
	applyToBatch = applyPrice + batchRows + differing
	applyToUser  = applyPrice + userRows + differing

	lockRangePostgres = findRows + rangeRows + differing + lockByID
	lockUserPostgres  = findRows + userRows + differing + lockByID

	// Another transaction that copies prices to a range may have read an older price. So these
	// statements also lock rows that have their item's price: that transaction may be about to
	// write the older one.
	lockBatchPostgres = findRows + batchRows + ofItem + lockByID
	lockItemsPostgres = findRows + `item WHERE item.id = ANY(CAST($1 AS bigint[]))` + ofItem + lockByID

	// keepPricesPostgres prevents changes to the prices of a batch. Otherwise a price could return
	// to its old value, and be applied to a range, before the price in between is written.
	keepPricesPostgres = `SELECT item.id FROM ` + batchRows + ` ORDER BY item.id FOR SHARE OF item`
)

// applyPrices copies prices to rows. It returns the number of written rows. On SQLite these are the
// rows whose value differs. On PostgreSQL, it first locks the rows that the query lock finds, in
// order of id. A second statement then reads the prices, so that it never replaces a newer price of
// another transaction. It writes all locked rows, so that a transaction that has read an older
// price cannot write it to one of them: see ApplyToRows.
func applyPrices(t *db.Tx, apply, lock string, args ...any) (int64, error) {
	if t.Dialect == db.SQLite {
		return t.Exec(apply, args...)
	}
	ids, err := db.Collect(t.Context(), t, func(r *sql.Rows, id *int64) error { return r.Scan(id) }, lock, args...)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	return t.Exec(applyPrice+`item WHERE inventory.id `+t.Dialect.OneOf(1)+ofItem, t.Dialect.EncodeIDs(ids))
}

// copyPrices copies prices to a user's rows of a game and context.
func copyPrices(t *db.Tx, user int64, app int32, contextID string) error {
	_, err := applyPrices(t, applyToUser, lockUserPostgres, user, app, contextID)
	return err
}

// ApplyToRows copies prices to the rows with from <= id < to whose value differs. If allRows
// is true, it writes all rows of the range on SQLite. If inOrder is false, it does not lock the
// rows first. The transaction must then be REPEATABLE READ. It fails when another transaction
// has written one of the rows, and the caller must retry it.
func ApplyToRows(t *db.Tx, from, to int64, allRows, inOrder bool) (err error) {
	switch {
	case allRows && t.Dialect == db.SQLite:
		_, err = t.Exec(applyToAll, from, to)
	case inOrder:
		_, err = applyPrices(t, applyToRange, lockRangePostgres, from, to)
	default:
		_, err = t.Exec(applyToRange, from, to)
	}
	return err
}

// ApplyToBatch copies the prices that a batch of a job changed to all rows of their items.
// It returns the number of written rows.
func ApplyToBatch(t *db.Tx, job int64, batch int) (int64, error) {
	if err := t.ExecPostgres(keepPricesPostgres, job, batch); err != nil {
		return 0, err
	}
	return applyPrices(t, applyToBatch, lockBatchPostgres, job, batch)
}

// ApplyToItems copies the prices of items to all their rows. The transaction must have changed or
// locked the items.
func ApplyToItems(t *db.Tx, ids []int64) error {
	_, err := applyPrices(t, applyPrice+`item WHERE item.id `+t.Dialect.OneOf(1)+differing, lockItemsPostgres, t.Dialect.EncodeIDs(ids))
	return err
}
