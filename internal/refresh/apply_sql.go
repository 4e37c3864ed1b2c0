package refresh

import (
	"context"
	"database/sql"
	"errors"

	"assay/internal/db"
	"assay/internal/inventory"
)

// openShards divides the inventory rows into shards for a job in the apply stage, unless it
// has some. Rows that are added later hold the price that the job has estimated, or that of a
// later change; see LockPrices.
func openShards(t *db.Tx, job int64, shards int) error {
	if err := lockJob(t, job); err != nil {
		return err
	}
	_, err := t.Exec(`
		INSERT INTO apply_shard (job_id, shard, next_id, end_id)
		WITH RECURSIVE
			part(shard) AS (SELECT 0 UNION ALL SELECT shard + 1 FROM part WHERE shard + 1 < $2),
			ids(past) AS (SELECT coalesce(max(id), 0) + 1 FROM inventory)
		SELECT $1, shard, past * shard / $2, past * (shard + 1) / $2 FROM part CROSS JOIN ids
		WHERE EXISTS (SELECT 1 FROM refresh_job WHERE id = $1 AND state = 'running' AND stage = 'apply')
		AND NOT EXISTS (SELECT 1 FROM apply_shard WHERE job_id = $1)`, job, shards)
	return err
}

// applyShards returns how many shards a job has, and how many of them are not done.
func applyShards(ctx context.Context, s *db.DB, job int64) (all, open int, err error) {
	err = s.Read.QueryRowContext(ctx, `SELECT count(*), count(*) FILTER (WHERE next_id < end_id) FROM apply_shard WHERE job_id = $1`,
		job).Scan(&all, &open)
	return all, open, err
}

// The shard stays locked until the rows are written. A worker that dies before leaves it as
// it was.
const nextRange = `
UPDATE apply_shard SET next_id = next_id + $2
WHERE (job_id, shard) = (
	SELECT l.job_id, l.shard FROM apply_shard l WHERE l.job_id = $1 AND l.next_id < l.end_id ORDER BY l.shard LIMIT 1`

// atOnce makes a transaction that has written nothing yet fail with an error that runs it
// again, instead of waiting for a row that another transaction holds or replacing what
// another one has written since it began. So it may write rows in any order. The timeout is
// far shorter than PostgreSQL's default deadlock_timeout.
const atOnce = `SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; SET LOCAL lock_timeout = '50ms'`

// applyNextRange writes prices to the next rows of a shard that no other transaction works on: a
// range of this many ids. It reports whether there was such a shard. It writes the rows that
// have another value, or possibly all rows if most have. An item without a price has rows
// without a value.
//
// Locking the rows in order takes a sixth of the time that writing them takes. So, unless
// inOrder is set, PostgreSQL writes a range without that, and the transaction runs again if
// others write its rows.
func applyNextRange(t *db.Tx, job, ids int64, most, inOrder bool) (bool, error) {
	if !inOrder {
		if err := t.ExecPostgres(atOnce); err != nil {
			return false, err
		}
	}
	var next, end int64
	err := t.QueryRow(nextRange+t.Dialect.SkipLocked("l")+`)
RETURNING next_id, end_id`, job, ids).Scan(&next, &end)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	from, to := next-ids, min(next, end)
	return true, inventory.ApplyToRows(t, from, to, most, inOrder)
}

// applyBatch writes the prices that a batch changed to all their rows, and returns how many
// rows it wrote. It does nothing if another instance has done the batch.
func applyBatch(t *db.Tx, job int64, batch int) (int64, error) {
	n, err := t.Exec(`UPDATE refresh_job SET apply_cursor = $2 + 1 WHERE id = $1 AND apply_cursor = $2 AND state = 'running' AND stage = 'apply'`,
		job, batch)
	if err != nil || n != 1 {
		return 0, err
	}
	return inventory.ApplyToBatch(t, job, batch)
}
