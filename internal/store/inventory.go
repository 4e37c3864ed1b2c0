package store

import (
	"assay/internal/db"
	"cmp"
	"database/sql"
	"errors"
	"slices"
	"strings"

	"assay/internal/catalog"
	"assay/internal/inventory"
	"assay/internal/money"
)

// InventoryAsOf returns the moment, in microseconds, of the stored inventory of
// a user, game and context; 0 if there is none.
func (t *Tx) InventoryAsOf(user int64, app int32, contextID string) (int64, error) {
	var at int64
	err := t.QueryRow(`SELECT snapshot_at FROM inventory_snapshot WHERE user_key = $1 AND app_id = $2 AND context_id = $3`,
		user, app, contextID).Scan(&at)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return at, err
}

// SetInventoryAsOf notes the moment of the inventory just synced.
func (t *Tx) SetInventoryAsOf(user int64, app int32, contextID string, at int64) error {
	_, err := t.Exec(`
		INSERT INTO inventory_snapshot (user_key, app_id, context_id, snapshot_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (user_key, app_id, context_id) DO UPDATE SET snapshot_at = excluded.snapshot_at`, user, app, contextID, at)
	return err
}

// keyColumns are those of keyTable. The game is one of them, although it is the
// same in all rows: compared with a constant, it would be all that PostgreSQL finds
// items by as long as it has no statistics of them.
const keyColumns = "app_id bigint, name text, phase text, bucket bigint"

func keyTable(app int32, keys []catalog.Key) *db.Table {
	rows := db.NewTable(keyColumns, len(keys))
	for _, k := range keys {
		rows.Int(int64(app))
		rows.Text(k.Name, k.Phase)
		rows.Int(int64(catalog.Bucket(k.Name)))
	}
	return rows
}

// An item's id begins with its bucket, so that what is estimated together lies
// together: a batch of 500 items touches some 100 pages of items and snapshots
// instead of a page or two for each item.
//
// On PostgreSQL several transactions may number items at once, hence a sequence;
// those that insert the same names wait for each other, in the names' order, and
// find what the first inserted.

// EnsureItems returns the items of a game by their keys, creating those that
// are new.
func (t *Tx) EnsureItems(app int32, keys []catalog.Key) (map[catalog.Key]inventory.Item, error) {
	if err := t.ByIndex(); err != nil {
		return nil, err
	}
	out := make(map[catalog.Key]inventory.Item, len(keys))
	missing := keys
	find := `SELECT i.id, i.name, i.phase, i.price, FALSE FROM ` + t.Dialect.Rows(1, keyColumns) + ` k CROSS JOIN item i
		WHERE i.app_id = k.app_id AND i.name = k.name AND i.phase = k.phase`
	insert := `
		INSERT INTO item (id, app_id, name, phase, bucket)
		SELECT ` + t.Dialect.NewItemID() + `, k.app_id, k.name, k.phase, k.bucket FROM ` + t.Dialect.Rows(1, keyColumns) + ` k
		WHERE true ORDER BY k.name, k.phase
		ON CONFLICT (app_id, name, phase) DO NOTHING RETURNING id, name, phase, price, TRUE`
	for _, query := range []string{find, insert, find} {
		if len(missing) == 0 {
			break
		}
		if err := t.addItems(out, query, app, missing); err != nil {
			return nil, err
		}
		missing = slices.DeleteFunc(slices.Clone(missing), func(k catalog.Key) bool { _, ok := out[k]; return ok })
		slices.SortFunc(missing, func(a, b catalog.Key) int {
			return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Phase, b.Phase))
		})
	}
	return out, nil
}

// AddItems makes items of a game of those keys that are none yet.
func (t *Tx) AddItems(app int32, keys []catalog.Key) error {
	_, err := t.EnsureItems(app, keys)
	return err
}

// rowsAtOnce is how many rows with texts a statement takes: in it, in the driver
// and in the database, each is in memory several times.
const rowsAtOnce = 2_000

// addItems adds to a map the items that a statement returns for these keys.
func (t *Tx) addItems(to map[catalog.Key]inventory.Item, query string, app int32, keys []catalog.Key) error {
	for part := range slices.Chunk(keys, rowsAtOnce) {
		if err := t.addSomeItems(to, query, app, part); err != nil {
			return err
		}
	}
	return nil
}

func (t *Tx) addSomeItems(to map[catalog.Key]inventory.Item, query string, app int32, keys []catalog.Key) error {
	_, err := db.Collect(t.Context(), t, func(r *sql.Rows, _ *struct{}) error {
		key := catalog.Key{AppID: app}
		var item inventory.Item
		err := r.Scan(&item.ID, &key.Name, &key.Phase, &item.Price, &item.New)
		to[key] = item
		return err
	}, query, keyTable(app, keys).Params(t.Dialect)...)
	return err
}

// InventoryRows returns the stored rows of a user, game and context.
func (t *Tx) InventoryRows(user int64, app int32, contextID string) ([]inventory.Row, error) {
	if err := t.ByIndex(); err != nil {
		return nil, err
	}
	return db.Collect(t.Context(), t, func(r *sql.Rows, v *inventory.Row) error {
		return r.Scan(&v.ID, &v.AssetID, &v.ItemID, &v.ClassID, &v.InstanceID, &v.Amount, &v.Tradable, &v.Marketable, &v.Inspect)
	}, `SELECT id, asset_id, item_id, class_id, instance_id, amount, tradable, marketable, inspect
		FROM inventory WHERE user_key = $1 AND app_id = $2 AND context_id = $3`, user, app, contextID)
}

// inventoryColumns are those of inventoryTable.
const inventoryColumns = "id bigint, item_id bigint, amount bigint, asset_id text, class_id text, instance_id text, inspect text, " +
	"tradable boolean, marketable boolean"

func inventoryTable(rows []inventory.Row) *db.Table {
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
	addInventory = `
INSERT INTO inventory (user_key, app_id, item_id, amount, context_id, asset_id, class_id, instance_id, inspect, tradable, marketable, value)
SELECT v.column1, v.column2, v.column3, v.column4, v.column5, v.column6, v.column7, v.column8, v.column9, v.column10, v.column11,
	nullif(v.column12, 0)
FROM (`
	addInventoryEnd = `) AS v`
)

// AddInventory inserts rows, in their order, with the prices of their items.
func (t *Tx) AddInventory(user int64, app int32, contextID string, rows []inventory.Row, prices map[int64]money.Micro) error {
	for part := range slices.Chunk(rows, rowsAtOnce) {
		if err := t.addInventory(user, app, contextID, part, prices); err != nil {
			return err
		}
	}
	return nil
}

var inventoryBulk = db.NewBulk(addInventory, addColumns, addInventoryEnd)

func (t *Tx) addInventory(user int64, app int32, contextID string, rows []inventory.Row, prices map[int64]money.Micro) error {
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

// ChangeInventory rewrites rows by their ids; each copies the price that its
// item has.
func (t *Tx) ChangeInventory(rows []inventory.Row) error {
	for part := range slices.Chunk(rows, rowsAtOnce) {
		if err := t.changeInventory(part); err != nil {
			return err
		}
	}
	return nil
}

func (t *Tx) changeInventory(rows []inventory.Row) error {
	_, err := t.Exec(`
		UPDATE inventory SET item_id = v.item_id, class_id = v.class_id, instance_id = v.instance_id, amount = v.amount,
			tradable = v.tradable, marketable = v.marketable, inspect = v.inspect, value = nullif(i.price, 0)
		FROM `+t.Dialect.Rows(1, inventoryColumns)+` v LEFT JOIN item i ON i.id = v.item_id
		WHERE inventory.id = v.id`, inventoryTable(rows).Params(t.Dialect)...)
	return err
}

// RemoveInventory deletes rows by their ids, with what was found of them.
func (t *Tx) RemoveInventory(ids []int64) error {
	if _, err := t.Exec(`DELETE FROM inventory WHERE id IN `+t.Dialect.IDs(1), t.Dialect.PackIDs(ids)); err != nil {
		return err
	}
	return t.RemoveInspections(ids)
}

// HoldPrices keeps the prices of items as they are until the transaction ends, and
// returns them. Rows that copy them and entries that are queued for want of them
// are then committed before the next price is, and found by a job applies that.
func (t *Tx) HoldPrices(items []int64) (map[int64]money.Micro, error) {
	prices := make(map[int64]money.Micro, len(items))
	_, err := db.Collect(t.Context(), t, func(r *sql.Rows, _ *struct{}) error {
		var id int64
		var price money.Micro
		err := r.Scan(&id, &price)
		prices[id] = price
		return err
	}, `SELECT i.id, i.price FROM item i WHERE i.id IN `+t.Dialect.IDs(1)+` ORDER BY i.id`+t.Dialect.Share("i"), t.Dialect.PackIDs(items))
	return prices, err
}

// LockRows locks the rows of a user's inventory that a sync is about to write: those
// with the ids, and those that InventoryTouched may write. It comes after
// HoldPrices and before any of these is written.
func (t *Tx) LockRows(user int64, app int32, contextID string, ids []int64) error {
	return t.ExecPostgres(lockRows+`
		SELECT unnest(CAST($1 AS bigint[]))
		UNION SELECT v.id FROM inventory v WHERE v.user_key = $2 AND v.app_id = $3 AND v.context_id = $4 AND v.in_transfer
			AND EXISTS (SELECT 1 FROM trade WHERE seller_key = $2)
		UNION SELECT v.id FROM trade d JOIN inventory v ON v.user_key = $2 AND v.app_id = $3 AND v.context_id = $4 AND v.asset_id = d.asset_id
			WHERE d.seller_key = $2 AND d.app_id = $3 AND d.context_id = $4 AND d.state = 'pending'`+inOrderOfID, ids, user, app, contextID)
}

// What is between the two finds the ids of inventory rows to lock.
const (
	lockRows    = `SELECT count(*) FROM (SELECT id FROM inventory WHERE id IN (`
	inOrderOfID = `) ORDER BY id FOR UPDATE) locked`
)
