package refresh

import (
	"context"
	"database/sql"

	"assay/internal/db"
)

const claimBatch = `
UPDATE refresh_batch SET state = 'running', owner = $1, token = token + 1, started_at = $2
WHERE (job_id, batch) = (
	SELECT b.job_id, b.batch FROM refresh_job j JOIN refresh_batch b ON b.job_id = j.id
	WHERE j.state IN ('queued', 'running') AND j.stage = 'estimate' AND b.state = 'pending' AND NOT EXISTS (
		SELECT 1 FROM fetch_unit u
		WHERE u.job_id = b.job_id AND u.state IN ('pending', 'running') AND u.detached = 0 AND u.batch_from <= b.batch AND u.batch_to >= b.batch)
	ORDER BY j.kind DESC, b.job_id, b.batch LIMIT 1`

// ClaimBatch claims a batch whose units have all ended, or returns nil. Batches of
// missing-price jobs come first.
func ClaimBatch(t *db.Tx, owner string) (*Batch, error) {
	batches, err := db.Collect(t.Context(), t, func(r *sql.Rows, b *Batch) error {
		return r.Scan(&b.JobID, &b.Batch, &b.Token)
	}, claimBatch+t.Dialect.SkipLocked("b")+`)
RETURNING job_id, batch, token`, owner, db.Micros(t.Now()))
	if err != nil || len(batches) == 0 {
		return nil, err
	}
	b := batches[0]
	err = t.QueryRow(`SELECT kind, rate_set FROM refresh_job WHERE id = $1`, b.JobID).Scan(&b.Kind, &b.RateSet)
	return &b, err
}

// unblocksBatch reports whether a batch can be estimated now that the unit u has ended.
func unblocksBatch(ctx context.Context, s *db.DB, u FetchUnit) (free bool, err error) {
	err = s.Read.QueryRowContext(ctx, `
		SELECT EXISTS (SELECT 1 FROM refresh_batch b WHERE b.job_id = $1 AND b.batch >= $2 AND b.batch <= $3 AND NOT EXISTS (
			SELECT 1 FROM fetch_unit u
			WHERE u.job_id = b.job_id AND u.state IN ('pending', 'running') AND u.detached = 0 AND u.batch_from <= b.batch AND u.batch_to >= b.batch))`,
		u.JobID, u.BatchFrom, u.BatchTo).Scan(&free)
	return free, err
}

// returnBatch releases a claimed batch.
func returnBatch(t *db.Tx, b Batch) error {
	_, err := t.Exec(`UPDATE refresh_batch SET state = 'pending' WHERE job_id = $1 AND batch = $2 AND token = $3 AND state = 'running'`,
		b.JobID, b.Batch, b.Token)
	return err
}

// BatchItems returns the pending items of a batch with their quotes, ordered by id.
func BatchItems(ctx context.Context, s *db.DB, b Batch) ([]Item, error) {
	ids, err := plannedItems(ctx, s, b)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	return db.CollectByIndex(ctx, s, func(r *sql.Rows, i *Item) error {
		var candidateAt, checked, updated, estimated, quotesAt, noSales int64
		var quotes string
		err := r.Scan(&i.ID, &i.Key.AppID, &i.Key.Name, &i.Key.Phase, &i.Price, &i.Status, &i.Candidate, &candidateAt,
			&i.Guard, &i.Range.Low, &i.Range.High, &checked, &updated, &estimated, &quotesAt, &noSales, &i.Failures, &i.Rev, &quotes)
		if err != nil {
			return err
		}
		i.CandidateAt, i.CheckedAt, i.UpdatedAt = db.Moment(candidateAt), db.Moment(checked), db.Moment(updated)
		i.EstimatedAt, i.QuotesAt, i.NoSalesSince = db.Moment(estimated), db.Moment(quotesAt), db.Moment(noSales)
		i.Quotes, err = DecodeQuotes(quotes)
		return err
	}, `SELECT i.id, i.app_id, i.name, i.phase, i.price, i.status, i.candidate, i.candidate_at,
			i.guard, i.range_low, i.range_high, i.price_checked_at, i.price_updated_at, i.estimated_at, i.quotes_at, i.no_sales_since, i.failures, i.rev, coalesce(q.quotes, '')
		FROM item i LEFT JOIN item_quotes q ON q.item_id = i.id
		WHERE i.id `+s.Dialect.OneOf(1)+` ORDER BY i.id`, s.Dialect.EncodeIDs(ids))
}
