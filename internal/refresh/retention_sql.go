package refresh

import (
	"database/sql"
	"fmt"

	"assay/internal/db"
)

// retainable orders the ended jobs of each kind by their end, the newest first. A job with an
// end in the future ended before the clock was set back, and does not count as old.
const retainable = `
SELECT id FROM (
	SELECT id, finished_at, row_number() OVER (PARTITION BY kind ORDER BY finished_at DESC, id DESC) AS place
	FROM refresh_job WHERE state IN ('finished', 'failed', 'cancelled')) ended
WHERE place > $1 AND finished_at < $2
ORDER BY id LIMIT $3`

// retain deletes up to limit ended jobs with all their rows. It deletes the job's own row
// first. If two processes delete the same job, the second one finds no row and skips the job.
func retain(t *db.Tx, r Retention, limit int) (int, error) {
	ids, err := db.Collect(t.Context(), t, func(rows *sql.Rows, id *int64) error { return rows.Scan(id) },
		retainable, r.MinJobs, db.Micros(t.Now().Add(-r.Age)), limit)
	if err != nil {
		return 0, err
	}
	for _, id := range ids {
		n, err := t.Exec(`DELETE FROM refresh_job WHERE id = $1`, id)
		if err != nil {
			return 0, err
		}
		if n == 0 {
			continue
		}
		for _, query := range []string{
			`DELETE FROM refresh_batch_items WHERE job_id = $1`,
			`DELETE FROM refresh_batch WHERE job_id = $1`,
			`DELETE FROM refresh_level WHERE job_id = $1`,
			`DELETE FROM market_fetch WHERE job_id = $1`,
			`DELETE FROM fetch_unit WHERE job_id = $1`,
		} {
			if _, err := t.Exec(query, id); err != nil {
				return 0, fmt.Errorf("remove job %d: %w", id, err)
			}
		}
	}
	if len(ids) == 0 {
		return 0, nil
	}
	return len(ids), nil
}
