package store

import (
	"assay/internal/db"
	"context"
	"database/sql"

	"assay/internal/refresh"
)

// What writes several entries of the missing-price queue locks them in the order of their
// items first: transactions that write some of the same entries must not wait for each
// other in a circle.

// QueueMissing queues items without a price, each once, and returns how many were not
// queued before. Those are due at once, and not as of now: a clock that is set back
// would make them wait for it. Of the others, each that waits is due as soon as a
// first pause has passed since its last attempt. It reports whether an entry is due
// sooner by any of that.
func (t *Tx) QueueMissing(items []int64) (added int64, sooner bool, err error) {
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

// Waiting returns the items of the missing-price queue in the name buckets from
// (included) to (excluded) that are due later and that the job does not work on.
func (s *Store) Waiting(ctx context.Context, job refresh.Job, from, to int) ([]refresh.WaitingItem, error) {
	return db.Collect(ctx, s.Read, func(r *sql.Rows, w *refresh.WaitingItem) error {
		return r.Scan(&w.ID, &w.Key.AppID, &w.Key.Name, &w.Key.Phase)
	}, `SELECT i.id, i.app_id, i.name, i.phase FROM missing_price m JOIN item i ON i.id = m.item_id
		WHERE m.item_id >= $1 AND m.item_id < $2 AND m.job_id = 0 AND m.due_at > $3
		AND NOT EXISTS (SELECT 1 FROM refresh_item r
			WHERE r.job_id = $4 AND r.batch = i.bucket * $5 / `+buckets+` AND r.item_id = i.id AND r.state = 'pending')
		ORDER BY i.id`, int64(from)*bucketIDs, int64(to)*bucketIDs, db.Micros(s.Clock()), job.ID, job.Batches)
}

// bucketIDs is how many ids of items a name bucket has.
const bucketIDs = 1 << 32

const listedColumns = "item_id bigint, market_id bigint, ask bigint, sale bigint"

// DueListed makes those waiting entries of the missing-price queue due at once that a
// response lists with another price than the market's snapshot has, if it has any. It
// reports whether there were some.
func (t *Tx) DueListed(listed []refresh.Listed) (bool, error) {
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

// QueueAnswers reports whether the missing-price queue can be read. It reads one row at
// most: health checks take no credential, and MissingQueue counts all rows.
func (s *Store) QueueAnswers(ctx context.Context) error {
	var queued bool
	return s.Reserved.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM missing_price)`).Scan(&queued)
}
