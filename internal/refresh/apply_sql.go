package refresh

import (
	"context"

	"assay/internal/db"
	"assay/internal/inventory"
)

// openShards divides the inventory rows into shards for a job in the apply stage, unless the
// job has shards already. Rows that are added later copy the price of their item when they
// are inserted; see catalog.LockPrices.
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

// applyShards returns the number of a job's shards, and how many of them are not done.
func applyShards(ctx context.Context, s *db.DB, job int64) (all, open int, err error) {
	err = s.Read.QueryRowContext(ctx, `SELECT count(*), count(*) FILTER (WHERE next_id < end_id) FROM apply_shard WHERE job_id = $1`,
		job).Scan(&all, &open)
	return all, open, err
}

// nextRange moves the position of an open shard forward by $2 ids. The shard stays locked until
// the rows of these ids are written. If the worker is killed before the commit, the position is
// unchanged.
const nextRange = `
UPDATE apply_shard SET next_id = next_id + $2
WHERE (job_id, shard) = (
	SELECT l.job_id, l.shard FROM apply_shard l WHERE l.job_id = $1 AND l.next_id < l.end_id ORDER BY l.shard LIMIT 1`

// failFast makes a transaction fail with a retryable error instead of waiting for a row lock
// or overwriting a newer version of a row. The transaction can then write rows in any order
// without deadlocks. The timeout is far shorter than PostgreSQL's default deadlock_timeout.
const failFast = `SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; SET LOCAL lock_timeout = '50ms'`

// commitSoon makes a commit return before the write-ahead log is on disk. A crash of the server
// may lose the last ranges together with the positions of their shards. A worker then writes
// these ranges again. The commit that ends the job waits for the whole log.
const commitSoon = `SET LOCAL synchronous_commit = off`

// applyNextRange writes prices to the inventory rows in the next range of a shard that no other
// transaction has locked. The range spans the given number of ids. applyNextRange returns false
// if there is no such shard. It writes the rows whose price differs. On SQLite it writes all
// rows if allRows is set. If an item has no price, its rows get no price.
//
// Without lockInOrder, PostgreSQL writes the rows without locking them in order first, because
// locking makes the write a sixth slower. If another transaction writes the same rows, this
// one fails and runs again.
func applyNextRange(t *db.Tx, job, ids int64, allRows, lockInOrder bool) (bool, error) {
	settings := commitSoon
	if !lockInOrder {
		settings = failFast + "; " + commitSoon
	}
	if err := t.ExecPostgres(settings); err != nil {
		return false, err
	}
	var next, end int64
	err := t.QueryRow(nextRange+t.Dialect.SkipLocked("l")+`)
RETURNING next_id, end_id`, job, ids).Scan(&next, &end)
	if found, err := db.Found(err); !found {
		return false, err
	}
	from, to := next-ids, min(next, end)
	return true, inventory.ApplyToRows(t, from, to, allRows, lockInOrder)
}

// applyBatch writes the prices that a batch changed to all their inventory rows, and returns
// the number of rows. It does nothing if another instance has applied the batch.
func applyBatch(t *db.Tx, job int64, batch int) (int64, error) {
	n, err := t.Exec(`UPDATE refresh_job SET apply_cursor = $2 + 1 WHERE id = $1 AND apply_cursor = $2 AND state = 'running' AND stage = 'apply'`,
		job, batch)
	if err != nil || n != 1 {
		return 0, err
	}
	return inventory.ApplyToBatch(t, job, batch)
}
