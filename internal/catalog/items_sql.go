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

// KeyColumns declares the columns of KeyTable. It contains app_id although all rows have
// the same value. With a constant app_id and no table statistics, PostgreSQL would search
// the index by app_id alone.
const KeyColumns = "app_id bigint, name text, phase text, bucket bigint"

// KeyTable returns keys of a game as a table with the columns KeyColumns.
func KeyTable(app int32, keys []Key) *db.Table {
	rows := db.NewTable(KeyColumns, len(keys))
	for _, k := range keys {
		rows.Int(int64(app))
		rows.Text(k.Name, k.Phase)
		rows.Int(int64(Bucket(k.Name)))
	}
	return rows
}

// EnsureItems returns the items of a game by key. It creates missing items.
//
// The high bits of an item id are its bucket, so items that are estimated together are
// stored together. A batch of 500 items then reads about 100 pages of items and quotes,
// instead of one or two pages per item.
//
// On PostgreSQL, ids come from a sequence because several transactions may create items
// at the same time. Transactions that insert the same names wait for each other. All
// insert in the order of names, so they cannot deadlock. The later transaction finds the
// rows of the earlier one with the second SELECT.
func EnsureItems(t *db.Tx, app int32, keys []Key) (map[Key]Item, error) {
	if err := t.ByIndex(); err != nil {
		return nil, err
	}
	out := make(map[Key]Item, len(keys))
	missing := keys
	find := `SELECT i.id, i.name, i.phase, i.price, FALSE FROM ` + t.Dialect.Rows(1, KeyColumns) + ` k` +
		t.Dialect.Lookup(`item i ON i.app_id = k.app_id AND i.name = k.name AND i.phase = k.phase`)
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

// addItems runs query for keys in batches and adds the returned items to the map.
func addItems(t *db.Tx, to map[Key]Item, query string, app int32, keys []Key) error {
	for part := range slices.Chunk(keys, db.RowsAtOnce) {
		if err := db.Each(t.Context(), t, func(r *sql.Rows) error {
			key := Key{AppID: app}
			var item Item
			err := r.Scan(&item.ID, &key.Name, &key.Phase, &item.Price, &item.New)
			to[key] = item
			return err
		}, query, KeyTable(app, part).Params(t.Dialect)...); err != nil {
			return err
		}
	}
	return nil
}

// LockPrices returns the prices of items and prevents changes to them until the
// transaction ends. A transaction may copy the prices to inventory rows or queue missing
// prices. Because of the lock, it commits before the next price change. The job that
// applies the next price therefore finds those rows and queue entries.
func LockPrices(t *db.Tx, items []int64) (map[int64]money.Micro, error) {
	prices := make(map[int64]money.Micro, len(items))
	err := db.Each(t.Context(), t, func(r *sql.Rows) error {
		var id int64
		var price money.Micro
		err := r.Scan(&id, &price)
		prices[id] = price
		return err
	}, `SELECT i.id, i.price FROM item i WHERE i.id `+t.Dialect.OneOf(1)+` ORDER BY i.id`+t.Dialect.Share("i"), t.Dialect.EncodeIDs(items))
	return prices, err
}

// QueueMissing adds items without a price to the missing-price queue. It returns the
// number of new entries. New entries are due immediately: their due_at is 0 and not the
// current time, so that a clock that is set back does not delay them. An entry that waits
// for a retry may become due earlier: at the end of the first backoff after its last
// attempt. sooner reports whether any entry is due earlier than before.
func QueueMissing(t *db.Tx, items []int64) (added int64, sooner bool, err error) {
	added, err = t.Exec(`
		INSERT INTO missing_price (item_id, queued_at, due_at)
		SELECT k.id, $1, 0 FROM `+t.Dialect.Rows(2, "id bigint")+` k WHERE true ORDER BY k.id
		ON CONFLICT (item_id) DO NOTHING`, db.Micros(t.Now()), t.Dialect.EncodeIDs(items))
	if err != nil || added == int64(len(items)) {
		return added, added > 0, err
	}
	n, err := t.Exec(`
		UPDATE missing_price SET due_at = soonest_at WHERE item_id IN (
			SELECT m.item_id FROM missing_price m
			WHERE m.item_id `+t.Dialect.OneOf(1)+` AND m.job_id = 0 AND m.due_at > m.soonest_at
			ORDER BY m.item_id`+t.Dialect.LockOf("m")+`)`, t.Dialect.EncodeIDs(items))
	return added, added+n > 0, err
}

// CheckQueue returns an error if the missing-price queue cannot be read. It reads at most
// one row. Health checks need no credentials, so they must be cheap. They cannot use
// view.ReadMissingQueue, which counts all rows.
func CheckQueue(ctx context.Context, s *db.DB) error {
	var queued bool
	return s.Reserved.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM missing_price)`).Scan(&queued)
}
