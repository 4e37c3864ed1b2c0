package refresh

import (
	"context"
	"database/sql"

	"assay/internal/catalog"
	"assay/internal/db"
)

// A transaction that writes several entries of the missing-price queue locks them first,
// ordered by item. The order prevents deadlocks.

// waitingItems returns the items of the missing-price queue that are due later and not in the
// job, in the name buckets from <= bucket < to.
func waitingItems(ctx context.Context, s *db.DB, job Job, from, to int) ([]WaitingItem, error) {
	return db.Collect(ctx, s.Read, func(r *sql.Rows, w *WaitingItem) error {
		return r.Scan(&w.ID, &w.Key.AppID, &w.Key.Name, &w.Key.Phase)
	}, `SELECT i.id, i.app_id, i.name, i.phase FROM missing_price m JOIN item i ON i.id = m.item_id
		WHERE m.item_id >= $1 AND m.item_id < $2 AND m.job_id = 0 AND m.due_at > $3
		AND m.item_id NOT IN (SELECT item_id FROM refresh_item WHERE job_id = $4 AND batch >= $5 AND batch <= $6 AND state = 'pending')
		ORDER BY i.id`, int64(from)*bucketIDs, int64(to)*bucketIDs, db.Micros(s.Clock()), job.ID,
		from*job.Batches/catalog.Buckets, (to-1)*job.Batches/catalog.Buckets)
}

// bucketIDs is the number of item ids in a name bucket.
const bucketIDs = 1 << 32

const listedColumns = "item_id bigint, market_id bigint, ask bigint, sale bigint"

// dueListed makes waiting entries of the missing-price queue due immediately if a response
// quotes another price than the market's stored quote. It reports whether there were such
// entries.
func dueListed(t *db.Tx, listed []Listed) (bool, error) {
	if len(listed) == 0 {
		return false, nil
	}
	rows := db.NewTable(listedColumns, len(listed))
	for i := range listed {
		l := &listed[i]
		rows.Int(l.ItemID, l.MarketID, int64(l.Ask), int64(l.Sale))
	}
	n, err := t.Exec(`
		UPDATE missing_price SET due_at = 0 WHERE item_id IN (
			SELECT m.item_id FROM missing_price m
			WHERE m.job_id = 0 AND m.due_at > $1 AND m.item_id IN (
				SELECT l.item_id FROM `+t.Dialect.Rows(2, listedColumns)+` l WHERE NOT EXISTS (
					SELECT 1 FROM market_snapshot s WHERE s.item_id = l.item_id AND s.market_id = l.market_id AND s.ask = l.ask AND s.sale = l.sale))
			ORDER BY m.item_id`+t.Dialect.LockOf("m")+`)`, rows.Params(t.Dialect, db.Micros(t.Now()))...)
	return n > 0, err
}
