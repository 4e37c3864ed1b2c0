package catalog

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strings"

	"assay/internal/db"
	"assay/internal/money"
)

// KeyColumns are those of KeyTable. The game is one of them, although it is the
// same in all rows: compared with a constant, it would be all that PostgreSQL finds
// items by as long as it has no statistics of them.
const KeyColumns = "app_id bigint, name text, phase text, bucket bigint"

// KeyTable returns keys of a game as rows of the columns KeyColumns.
func KeyTable(app int32, keys []Key) *db.Table {
	rows := db.NewTable(KeyColumns, len(keys))
	for _, k := range keys {
		rows.Int(int64(app))
		rows.Text(k.Name, k.Phase)
		rows.Int(int64(Bucket(k.Name)))
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
func EnsureItems(t *db.Tx, app int32, keys []Key) (map[Key]Item, error) {
	if err := t.ByIndex(); err != nil {
		return nil, err
	}
	out := make(map[Key]Item, len(keys))
	missing := keys
	find := `SELECT i.id, i.name, i.phase, i.price, FALSE FROM ` + t.Dialect.Rows(1, KeyColumns) + ` k CROSS JOIN item i
		WHERE i.app_id = k.app_id AND i.name = k.name AND i.phase = k.phase`
	insert := `
		INSERT INTO item (id, app_id, name, phase, bucket)
		SELECT ` + t.Dialect.NewItemID() + `, k.app_id, k.name, k.phase, k.bucket FROM ` + t.Dialect.Rows(1, KeyColumns) + ` k
		WHERE true ORDER BY k.name, k.phase
		ON CONFLICT (app_id, name, phase) DO NOTHING RETURNING id, name, phase, price, TRUE`
	for _, query := range []string{find, insert, find} {
		if len(missing) == 0 {
			break
		}
		if err := addItems(t, out, query, app, missing); err != nil {
			return nil, err
		}
		missing = slices.DeleteFunc(slices.Clone(missing), func(k Key) bool { _, ok := out[k]; return ok })
		slices.SortFunc(missing, func(a, b Key) int {
			return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Phase, b.Phase))
		})
	}
	return out, nil
}

// AddItems makes items of a game of those keys that are none yet.
func AddItems(t *db.Tx, app int32, keys []Key) error {
	_, err := EnsureItems(t, app, keys)
	return err
}

// addItems adds to a map the items that a statement returns for these keys.
func addItems(t *db.Tx, to map[Key]Item, query string, app int32, keys []Key) error {
	for part := range slices.Chunk(keys, db.RowsAtOnce) {
		if err := addSomeItems(t, to, query, app, part); err != nil {
			return err
		}
	}
	return nil
}

func addSomeItems(t *db.Tx, to map[Key]Item, query string, app int32, keys []Key) error {
	_, err := db.Collect(t.Context(), t, func(r *sql.Rows, _ *struct{}) error {
		key := Key{AppID: app}
		var item Item
		err := r.Scan(&item.ID, &key.Name, &key.Phase, &item.Price, &item.New)
		to[key] = item
		return err
	}, query, KeyTable(app, keys).Params(t.Dialect)...)
	return err
}

// LockPrices keeps the prices of items as they are until the transaction ends, and
// returns them. Rows that copy them, and entries that are queued because they are missing,
// are then committed before the next price is, and found by a job applies that.
func LockPrices(t *db.Tx, items []int64) (map[int64]money.Micro, error) {
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

// QueueMissing queues items without a price, each once, and returns how many were not
// queued before. Those are due at once, and not as of now: a clock that is set back
// would make them wait for it. Of the others, each that waits is due as soon as a
// first pause has passed since its last attempt. It reports whether an entry is due
// sooner by any of that.
func QueueMissing(t *db.Tx, items []int64) (added int64, sooner bool, err error) {
	added, err = t.Exec(`
		INSERT INTO missing_price (item_id, queued_at, due_at)
		SELECT k.id, $1, 0 FROM `+t.Dialect.Rows(2, "id bigint")+` k WHERE true ORDER BY k.id
		ON CONFLICT (item_id) DO NOTHING`, db.Micros(t.Now()), t.Dialect.PackIDs(items))
	if err != nil || added == int64(len(items)) {
		return added, added > 0, err
	}
	n, err := t.Exec(`
		UPDATE missing_price SET due_at = soonest_at WHERE item_id IN (
			SELECT m.item_id FROM missing_price m
			WHERE m.item_id IN `+t.Dialect.IDs(1)+` AND m.job_id = 0 AND m.due_at > m.soonest_at
			ORDER BY m.item_id`+t.Dialect.LockOf("m")+`)`, t.Dialect.PackIDs(items))
	return added, added+n > 0, err
}

// CheckQueue reports whether the missing-price queue can be read. It reads one row at
// most: health checks take no credential, and MissingQueue counts all rows.
func CheckQueue(ctx context.Context, s *db.DB) error {
	var queued bool
	return s.Reserved.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM missing_price)`).Scan(&queued)
}
