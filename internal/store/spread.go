package store

import (
	"context"
	"database/sql"
	"errors"
)

// OpenLanes divides the inventory rows into lanes for a spreading job, unless it
// has some. Rows that come later hold the price that the job has settled, or
// that of whoever changes it afterwards; see HoldPrices.
func (t *Tx) OpenLanes(job int64, lanes int) error {
	if err := t.lockJob(job); err != nil {
		return err
	}
	_, err := t.exec(`
		INSERT INTO spread_lane (job_id, lane, next_id, end_id)
		WITH RECURSIVE
			part(lane) AS (SELECT 0 UNION ALL SELECT lane + 1 FROM part WHERE lane + 1 < $2),
			ids(past) AS (SELECT coalesce(max(id), 0) + 1 FROM inventory)
		SELECT $1, lane, past * lane / $2, past * (lane + 1) / $2 FROM part CROSS JOIN ids
		WHERE EXISTS (SELECT 1 FROM refresh_job WHERE id = $1 AND state = 'running' AND stage = 'spread')
		AND NOT EXISTS (SELECT 1 FROM spread_lane WHERE job_id = $1)`, job, lanes)
	return err
}

// SpreadLanes returns how many lanes a job has, and how many of them are not
// done.
func (s *Store) SpreadLanes(ctx context.Context, job int64) (all, open int, err error) {
	err = s.read.QueryRowContext(ctx, `SELECT count(*), count(*) FILTER (WHERE next_id < end_id) FROM spread_lane WHERE job_id = $1`,
		job).Scan(&all, &open)
	return all, open, err
}

// The lane is held until the rows are written: whoever dies in between leaves it
// as it was.
const nextRange = `
UPDATE spread_lane SET next_id = next_id + $2
WHERE (job_id, lane) = (
	SELECT l.job_id, l.lane FROM spread_lane l WHERE l.job_id = $1 AND l.next_id < l.end_id ORDER BY l.lane LIMIT 1`

const (
	spreadChanged = `
UPDATE inventory SET value = item.price FROM item
WHERE inventory.id >= $1 AND inventory.id < $2 AND item.id = inventory.item_id
AND item.price > 0 AND inventory.value IS DISTINCT FROM item.price`
	// On SQLite a join collects what it will write first; a subquery writes in one
	// pass. PostgreSQL writes a new version of every row that it touches.
	spreadAll = `
UPDATE inventory SET value = (SELECT nullif(price, 0) FROM item WHERE item.id = inventory.item_id)
WHERE id >= $1 AND id < $2`
)

// SpreadRange copies prices onto the next rows of a lane that nobody else is at,
// a range of so many ids, and reports whether there was such a lane. It writes
// the rows that had another value, or possibly all if most are said to have. An
// item without a price has rows without a value.
func (t *Tx) SpreadRange(job, ids int64, most bool) (bool, error) {
	if err := t.shareSpread(); err != nil {
		return false, err
	}
	var next, end int64
	err := t.queryRow(nextRange+t.d.skipLocked("l")+`)
RETURNING next_id, end_id`, job, ids).Scan(&next, &end)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	query := spreadChanged
	if most && t.d == onSQLite {
		query = spreadAll
	}
	_, err = t.exec(query, next-ids, min(next, end))
	return true, err
}

// SpreadBatch copies the prices that a batch changed onto all their rows, and
// returns how many it wrote. It does nothing where another instance has done the
// batch.
func (t *Tx) SpreadBatch(job int64, batch int) (int64, error) {
	if err := t.lockSpread(); err != nil {
		return 0, err
	}
	n, err := t.exec(`UPDATE refresh_job SET spread_cursor = $2 + 1 WHERE id = $1 AND spread_cursor = $2 AND state = 'running' AND stage = 'spread'`,
		job, batch)
	if err != nil || n != 1 {
		return 0, err
	}
	return t.exec(`
		UPDATE inventory SET value = item.price FROM refresh_item r JOIN item ON item.id = r.item_id
		WHERE r.job_id = $1 AND r.batch = $2 AND r.state = 'updated' AND r.price_after <> r.price_before
		AND inventory.item_id = r.item_id AND item.price > 0 AND inventory.value IS DISTINCT FROM item.price`, job, batch)
}
