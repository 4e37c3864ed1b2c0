package inventory

import (
	"database/sql"
	"slices"

	"assay/internal/db"
	"assay/internal/money"
)

// inventoryAsOf returns the time of the stored inventory of a user, game and context in
// microseconds. It returns 0 if there is none. It also returns 0 if the time is later than a
// push can have, because the clock was wrong when the inventory was stored.
func inventoryAsOf(t *db.Tx, user int64, app int32, contextID string) (int64, error) {
	var at int64
	err := t.QueryRow(`SELECT snapshot_at FROM inventory_snapshot WHERE user_key = $1 AND app_id = $2 AND context_id = $3`,
		user, app, contextID).Scan(&at)
	if found, err := db.Found(err); !found || at > t.Now().Add(MaxAhead).UnixMicro() {
		return 0, err
	}
	return at, nil
}

// setInventoryAsOf stores the time of an inventory.
func setInventoryAsOf(t *db.Tx, user int64, app int32, contextID string, at int64) error {
	_, err := t.Exec(`
		INSERT INTO inventory_snapshot (user_key, app_id, context_id, snapshot_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (user_key, app_id, context_id) DO UPDATE SET snapshot_at = excluded.snapshot_at`, user, app, contextID, at)
	return err
}

// inventoryRows returns the stored rows of a user, game and context.
func inventoryRows(t *db.Tx, user int64, app int32, contextID string) ([]Row, error) {
	if err := t.ByIndex(); err != nil {
		return nil, err
	}
	return db.Collect(t.Context(), t, func(r *sql.Rows, v *Row) error {
		return r.Scan(&v.ID, &v.AssetID, &v.ItemID, &v.ClassID, &v.InstanceID, &v.Amount, &v.Tradable, &v.Marketable, &v.Inspect)
	}, `SELECT id, asset_id, item_id, class_id, instance_id, amount, tradable, marketable, inspect
		FROM inventory WHERE user_key = $1 AND app_id = $2 AND context_id = $3`, user, app, contextID)
}

// inventoryColumns are the columns of inventoryTable.
const inventoryColumns = "id bigint, item_id bigint, amount bigint, asset_id text, class_id text, instance_id text, inspect text, " +
	"tradable boolean, marketable boolean"

func inventoryTable(rows []Row) *db.Table {
	out := db.NewTable(inventoryColumns, len(rows))
	for i := range rows {
		r := &rows[i]
		out.Int(r.ID, r.ItemID, r.Amount)
		out.Text(r.AssetID, r.ClassID, r.InstanceID, r.Inspect)
		out.Bool(r.Tradable, r.Marketable)
	}
	return out
}

const (
	addColumns = "user_key bigint, app_id bigint, item_id bigint, amount bigint, context_id text, asset_id text, " +
		"class_id text, instance_id text, inspect text, tradable boolean, marketable boolean, value bigint"
	addInventorySQL = `
INSERT INTO inventory (user_key, app_id, item_id, amount, context_id, asset_id, class_id, instance_id, inspect, tradable, marketable, value)
SELECT v.column1, v.column2, v.column3, v.column4, v.column5, v.column6, v.column7, v.column8, v.column9, v.column10, v.column11,
	nullif(v.column12, 0)
FROM (`
	addInventoryEnd = `) AS v`
)

// addInventory inserts rows in the given order, with the prices of their items.
func addInventory(t *db.Tx, user int64, app int32, contextID string, rows []Row, prices map[int64]money.Micro) error {
	for part := range slices.Chunk(rows, db.RowsAtOnce) {
		if err := addInventoryPart(t, user, app, contextID, part, prices); err != nil {
			return err
		}
	}
	return nil
}

var inventoryBulk = db.NewBulk(addInventorySQL, addColumns, addInventoryEnd)

func addInventoryPart(t *db.Tx, user int64, app int32, contextID string, rows []Row, prices map[int64]money.Micro) error {
	out := db.NewTable(addColumns, len(rows))
	for i := range rows {
		r := &rows[i]
		out.Int(user, int64(app), r.ItemID, r.Amount)
		out.Text(contextID, r.AssetID, r.ClassID, r.InstanceID, r.Inspect)
		out.Bool(r.Tradable, r.Marketable)
		out.Int(int64(prices[r.ItemID]))
	}
	_, err := t.WriteRows(inventoryBulk, out)
	return err
}

// changeInventory updates rows by their ids. Each row gets the price of its item.
func changeInventory(t *db.Tx, rows []Row) error {
	for part := range slices.Chunk(rows, changedAtOnce) {
		if err := changeInventoryPart(t, part); err != nil {
			return err
		}
	}
	return nil
}

// changedAtOnce limits the rows of an UPDATE. With outdated statistics, PostgreSQL compares each
// row with all others.
const changedAtOnce = 200

func changeInventoryPart(t *db.Tx, rows []Row) error {
	var byID string
	if t.Dialect == db.PostgreSQL {
		byID = ` AND inventory.id ` + t.Dialect.OneOf(1) // otherwise, with outdated statistics, PostgreSQL could read the whole table
	}
	_, err := t.Exec(`
		UPDATE inventory SET item_id = v.item_id, class_id = v.class_id, instance_id = v.instance_id, amount = v.amount,
			tradable = v.tradable, marketable = v.marketable, inspect = v.inspect, value = nullif(i.price, 0)
		FROM `+t.Dialect.Rows(1, inventoryColumns)+` v LEFT JOIN item i ON i.id = v.item_id
		WHERE inventory.id = v.id`+byID, inventoryTable(rows).Params(t.Dialect)...)
	return err
}

// RemoveInventory deletes rows by their ids, and their inspections.
func RemoveInventory(t *db.Tx, ids []int64) error {
	if _, err := t.Exec(`DELETE FROM inventory WHERE id `+t.Dialect.OneOf(1), t.Dialect.EncodeIDs(ids)); err != nil {
		return err
	}
	return removeInspections(t, ids)
}

// lockRows locks the rows that a sync writes: the rows with the given ids, and the rows
// that the callback Synced may write. Call it after LockPrices and before the first write.
func lockRows(t *db.Tx, user int64, app int32, contextID string, ids []int64) error {
	return t.ExecPostgres(lockRowsSQL+`
		SELECT unnest(CAST($1 AS bigint[]))
		UNION SELECT v.id FROM inventory v WHERE v.user_key = $2 AND v.app_id = $3 AND v.context_id = $4 AND v.in_transfer
			AND EXISTS (SELECT 1 FROM trade WHERE seller_key = $2)
		UNION SELECT v.id FROM trade d JOIN inventory v ON v.user_key = $2 AND v.app_id = $3 AND v.context_id = $4 AND v.asset_id = d.asset_id
			WHERE d.seller_key = $2 AND d.app_id = $3 AND d.context_id = $4 AND d.state = 'pending'`+inOrderOfID, ids, user, app, contextID)
}

// Start and end of a statement that locks inventory rows in order of id. The query between
// them returns the ids.
const (
	lockRowsSQL = `SELECT count(*) FROM (SELECT id FROM inventory WHERE id = ANY(ARRAY(`
	inOrderOfID = `)) ORDER BY id FOR UPDATE) locked`
)
