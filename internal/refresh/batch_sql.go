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

// endsFiles reports whether the job of a unit has no open files.
func endsFiles(ctx context.Context, s *db.DB, u FetchUnit) (ended bool, err error) {
	err = s.Read.QueryRowContext(ctx, `
		SELECT NOT EXISTS (SELECT 1 FROM fetch_unit u WHERE u.job_id = $1 AND `+openFile+`)`, u.JobID).Scan(&ended)
	return ended, err
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
	items, err := rowsByID(ctx, s, b, ids, func(r *sql.Rows, i *Item) (int64, error) {
		var candidateAt, checked, updated, estimated, quotesAt, noSales int64
		err := r.Scan(&i.ID, &i.Key.AppID, &i.Key.Name, &i.Key.Phase, &i.Price, &i.Status,
			&i.Figures.Average, &i.Figures.Interval.Low, &i.Figures.Interval.High, &i.Figures.UsedMarkets,
			&i.Figures.Consensus, &i.Figures.LevelSet, &i.Candidate, &candidateAt,
			&i.Guard, &i.Range.Low, &i.Range.High, &checked, &updated, &estimated, &quotesAt, &noSales, &i.Failures, &i.Rev)
		i.CandidateAt, i.CheckedAt, i.UpdatedAt = db.Moment(candidateAt), db.Moment(checked), db.Moment(updated)
		i.EstimatedAt, i.QuotesAt, i.NoSalesSince = db.Moment(estimated), db.Moment(quotesAt), db.Moment(noSales)
		return i.ID, err
	}, `SELECT id, app_id, name, phase, price, status,
			average, interval_low, interval_high, used_markets, consensus, level_set, candidate, candidate_at,
			guard, range_low, range_high, price_checked_at, price_updated_at, estimated_at, quotes_at, no_sales_since, failures, rev
		FROM item`, "id")
	if err != nil {
		return nil, err
	}
	quotes, err := rowsByID(ctx, s, b, ids, func(r *sql.Rows, q *itemQuotes) (int64, error) {
		var text sql.RawBytes
		if err := r.Scan(&q.item, &text); err != nil {
			return 0, err
		}
		var err error
		q.quotes, err = DecodeQuotes(string(text))
		return q.item, err
	}, `SELECT item_id, quotes FROM item_quotes`, "item_id")
	for i := range items {
		if len(quotes) > 0 && quotes[0].item == items[i].ID {
			items[i].Quotes, quotes = quotes[0].quotes, quotes[1:]
		}
	}
	return items, err
}

// rowsByID returns the rows of a table for some ids, which are in order. The batch of a bulk job
// has nearly all items of a range of ids. PostgreSQL reads such a range in half of the time
// that it takes to look up each id. If the range has many more rows, the ids are looked up.
func rowsByID[T any](ctx context.Context, s *db.DB, b Batch, ids []int64, scan func(*sql.Rows, *T) (int64, error), query, key string) ([]T, error) {
	out := make([]T, 0, len(ids))
	rest, read := ids, 0
	row := func(r *sql.Rows, _ *struct{}) error {
		read++
		var v T
		id, err := scan(r, &v)
		for len(rest) > 0 && rest[0] < id {
			rest = rest[1:]
		}
		if len(rest) > 0 && rest[0] == id {
			out = append(out, v)
		}
		return err
	}
	if most := 4 * len(ids); b.Kind == Bulk {
		_, err := db.CollectByIndex(ctx, s, row, query+` WHERE `+key+` >= $1 AND `+key+` <= $2 ORDER BY `+key+` LIMIT $3`, ids[0], ids[len(ids)-1], most)
		if err != nil || read < most {
			return out, err
		}
	}
	out, rest = out[:0], ids
	_, err := db.CollectByIndex(ctx, s, row, query+` WHERE `+key+` `+s.Dialect.OneOf(1)+` ORDER BY `+key, s.Dialect.EncodeIDs(ids))
	return out, err
}
