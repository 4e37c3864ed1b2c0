package store

import (
	"database/sql"
	"encoding/json"
	"errors"

	"assay/internal/catalog"
	"assay/internal/inventory"
)

// EnsureUser returns the key of a user, who is created if new.
func (t *Tx) EnsureUser(userID string) (int64, error) {
	var key int64
	err := t.queryRow(`SELECT id FROM platform_user WHERE user_id = $1`, userID).Scan(&key)
	if !errors.Is(err, sql.ErrNoRows) {
		return key, err
	}
	err = t.queryRow(`INSERT INTO platform_user (user_id, created_at) VALUES ($1, $2) RETURNING id`, userID, micros(t.now)).Scan(&key)
	return key, err
}

// InventoryAsOf returns the moment, in microseconds, of the stored inventory of
// a user, game and context; 0 if there is none.
func (t *Tx) InventoryAsOf(user int64, app int32, contextID string) (int64, error) {
	var at int64
	err := t.queryRow(`SELECT snapshot_at FROM inventory_snapshot WHERE user_key = $1 AND app_id = $2 AND context_id = $3`,
		user, app, contextID).Scan(&at)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return at, err
}

// SetInventoryAsOf notes the moment of the inventory just synced.
func (t *Tx) SetInventoryAsOf(user int64, app int32, contextID string, at int64) error {
	_, err := t.exec(`
		INSERT INTO inventory_snapshot (user_key, app_id, context_id, snapshot_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (user_key, app_id, context_id) DO UPDATE SET snapshot_at = excluded.snapshot_at`, user, app, contextID, at)
	return err
}

// keyRow is an item's identity as a row of a JSON list; its columns are
// value ->> 0 to 2 there.
type keyRow [3]any

func keyList(keys []catalog.Key) (string, error) {
	rows := make([]keyRow, len(keys))
	for i, k := range keys {
		rows[i] = keyRow{k.Name, k.Phase, catalog.Bucket(k.Name)}
	}
	b, err := json.Marshal(rows)
	return string(b), err
}

// An item's id begins with its bucket, so that what is settled together lies
// together: a batch of 500 items touches some 100 pages of items and snapshots
// instead of a page or two for each item.
const insertItems = `
INSERT INTO item (id, app_id, name, phase, bucket)
SELECT coalesce((SELECT max(id) FROM item WHERE id >= k.bucket << 32 AND id < (k.bucket + 1) << 32), k.bucket << 32)
	+ row_number() OVER (PARTITION BY k.bucket ORDER BY k.name, k.phase), $1, k.name, k.phase, k.bucket
FROM (SELECT value ->> 0 AS name, value ->> 1 AS phase, value ->> 2 AS bucket FROM json_each($2)) k
RETURNING id, name, phase, price`

const itemsByKey = `
SELECT i.id, i.name, i.phase, i.price FROM json_each($2) k CROSS JOIN item i
ON i.app_id = $1 AND i.name = k.value ->> 0 AND i.phase = k.value ->> 1`

// EnsureItems returns the items of a game by their keys, creating those that
// are new.
func (t *Tx) EnsureItems(app int32, keys []catalog.Key) (map[catalog.Key]inventory.Item, error) {
	out := make(map[catalog.Key]inventory.Item, len(keys))
	if err := t.addItems(out, itemsByKey, app, keys); err != nil {
		return nil, err
	}
	var missing []catalog.Key
	for _, k := range keys {
		if _, ok := out[k]; !ok {
			missing = append(missing, k)
		}
	}
	if len(missing) == 0 {
		return out, nil
	}
	return out, t.addItems(out, insertItems, app, missing)
}

// addItems adds to a map the items that a statement returns for these keys.
func (t *Tx) addItems(to map[catalog.Key]inventory.Item, query string, app int32, keys []catalog.Key) error {
	packed, err := keyList(keys)
	if err != nil {
		return err
	}
	_, err = collect(t.ctx, t.tx, func(r *sql.Rows, _ *struct{}) error {
		key := catalog.Key{AppID: app}
		var item inventory.Item
		err := r.Scan(&item.ID, &key.Name, &key.Phase, &item.Price)
		to[key] = item
		return err
	}, query, app, packed)
	return err
}

// InventoryRows returns the stored rows of a user, game and context.
func (t *Tx) InventoryRows(user int64, app int32, contextID string) ([]inventory.Row, error) {
	return collect(t.ctx, t.tx, func(r *sql.Rows, v *inventory.Row) error {
		return r.Scan(&v.ID, &v.AssetID, &v.ItemID, &v.ClassID, &v.InstanceID, &v.Amount, &v.Tradable, &v.Marketable, &v.Inspect)
	}, `SELECT id, asset_id, item_id, class_id, instance_id, amount, tradable, marketable, inspect
		FROM inventory WHERE user_key = $1 AND app_id = $2 AND context_id = $3`, user, app, contextID)
}

// inventoryRow is a row as an element of a JSON list: id, asset_id, item_id,
// class_id, instance_id, amount, tradable, marketable, inspect.
type inventoryRow [9]any

func inventoryList(rows []inventory.Row) (string, error) {
	out := make([]inventoryRow, len(rows))
	for i, r := range rows {
		out[i] = inventoryRow{r.ID, r.AssetID, r.ItemID, r.ClassID, r.InstanceID, r.Amount, bit(r.Tradable), bit(r.Marketable), r.Inspect}
	}
	b, err := json.Marshal(out)
	return string(b), err
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

const (
	inventoryWidth = 11
	addInventory   = `
INSERT INTO inventory (user_key, app_id, context_id, asset_id, item_id, class_id, instance_id, amount, tradable, marketable, inspect, value)
SELECT v.*, nullif(i.price, 0) FROM (VALUES `
	addInventoryJoin = `) AS v LEFT JOIN item i ON i.id = v.column5`
)

// AddInventory inserts rows; each copies the price that its item has.
func (t *Tx) AddInventory(user int64, app int32, contextID string, rows []inventory.Row) error {
	_, err := t.writeRows(&t.bulks.inventory, len(rows), func(args []any, i int) []any {
		r := &rows[i]
		return append(args, user, app, contextID, r.AssetID, r.ItemID, r.ClassID, r.InstanceID, r.Amount,
			bit(r.Tradable), bit(r.Marketable), r.Inspect)
	})
	return err
}

// ChangeInventory rewrites rows by their ids; each copies the price that its
// item has.
func (t *Tx) ChangeInventory(rows []inventory.Row) error {
	packed, err := inventoryList(rows)
	if err != nil {
		return err
	}
	_, err = t.exec(`
		UPDATE inventory SET item_id = v.value ->> 2, class_id = v.value ->> 3, instance_id = v.value ->> 4, amount = v.value ->> 5,
			tradable = v.value ->> 6, marketable = v.value ->> 7, inspect = v.value ->> 8, value = nullif(i.price, 0)
		FROM json_each($1) v LEFT JOIN item i ON i.id = v.value ->> 2
		WHERE inventory.id = v.value ->> 0`, packed)
	return err
}

// RemoveInventory deletes rows by their ids.
func (t *Tx) RemoveInventory(ids []int64) error {
	_, err := t.exec(`DELETE FROM inventory WHERE id IN (SELECT value FROM json_each($1))`, list(ids))
	return err
}

// QueueMissing queues items without a price, each once, and returns how many
// were not queued before. They are due at once, and not as of now: a clock that
// is set back would make them wait for it.
func (t *Tx) QueueMissing(items []int64) (int64, error) {
	return t.exec(`
		INSERT INTO missing_price (item_id, queued_at, due_at)
		SELECT i.id, $2, 0 FROM json_each($1) v JOIN item i ON i.id = v.value WHERE i.price <= 0
		ON CONFLICT (item_id) DO NOTHING`, list(items), micros(t.now))
}

// PutUser sets what the platform says of a user, who is created if new.
func (t *Tx) PutUser(u inventory.User) error {
	_, err := t.exec(`
		INSERT INTO platform_user (user_id, steam_id, display_name, leaderboard, created_at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (user_id) DO UPDATE SET steam_id = excluded.steam_id, display_name = excluded.display_name,
			leaderboard = CASE WHEN $6 THEN platform_user.leaderboard ELSE excluded.leaderboard END`,
		u.ID, u.SteamID, u.DisplayName, u.Leaderboard, micros(t.now), u.KeepLeaderboard)
	return err
}
