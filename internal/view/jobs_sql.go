package view

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/money"
	"assay/internal/refresh"
	"assay/internal/view/prices"
)

// Jobs returns jobs of a kind ("": all kinds) with IDs below before, newest first.
func Jobs(ctx context.Context, s *db.DB, kind refresh.Kind, before int64, limit int) ([]refresh.Job, error) {
	return db.Collect(ctx, s.Frequent, refresh.ScanJob, `
		SELECT`+refresh.JobColumns+`
		FROM refresh_job j LEFT JOIN refresh_batch b ON b.job_id = j.id
		WHERE j.id IN (SELECT id FROM refresh_job WHERE id < $1 AND ($2 = '' OR kind = $2) ORDER BY id DESC LIMIT $3)
		GROUP BY j.id ORDER BY j.id DESC`, before, string(kind), limit)
}

// LastOutcome returns the outcome of the last job of a kind that ended, or "" if there is
// none.
func LastOutcome(ctx context.Context, s *db.DB, kind refresh.Kind) (refresh.JobOutcome, error) {
	outcomes, err := db.Collect(ctx, s.Read, func(r *sql.Rows, o *refresh.JobOutcome) error { return r.Scan(o) },
		`SELECT outcome FROM refresh_job WHERE kind = $1 AND outcome <> '' ORDER BY id DESC LIMIT 1`, string(kind))
	if err != nil || len(outcomes) == 0 {
		return "", err
	}
	return outcomes[0], nil
}

// ProviderUse is the number of requests that a job sent to a provider.
type ProviderUse struct {
	JobID         int64
	Provider      string
	Requests      int64
	DeferredNames int64 // number of deferred names
}

// requestsSent is the number of requests that the units of a group sent.
const requestsSent = `CAST(sum(requests + CASE WHEN state = 'running' THEN 0 ELSE reserved END) AS BIGINT)`

// RequestCounts returns the number of requests by job and provider.
func RequestCounts(ctx context.Context, s *db.DB, jobs []int64) ([]ProviderUse, error) {
	return db.Collect(ctx, s.Frequent, func(r *sql.Rows, u *ProviderUse) error {
		return r.Scan(&u.JobID, &u.Provider, &u.Requests, &u.DeferredNames)
	}, `SELECT job_id, provider, `+requestsSent+`, CAST(coalesce(sum(size) FILTER (WHERE state = 'deferred'), 0) AS BIGINT)
		FROM fetch_unit WHERE job_id `+s.Dialect.OneOf(1)+` GROUP BY job_id, provider ORDER BY job_id, provider`, s.Dialect.EncodeIDs(jobs))
}

// latestStatus is one statement, because clients request the status many times a second.
const latestStatus = `
SELECT` + refresh.JobColumns + `,
	(SELECT string_agg(provider || ' ' || requests, ',') FROM (
		SELECT provider, ` + requestsSent + ` AS requests FROM fetch_unit WHERE job_id = j.id GROUP BY provider) u),
	m.running, m.pending, m.waiting, m.oldest
FROM (` + missingQueue + `) m
	JOIN refresh_job j ON j.id = (SELECT max(id) FROM refresh_job WHERE kind = 'bulk')
	LEFT JOIN refresh_batch b ON b.job_id = j.id
GROUP BY j.id, m.running, m.pending, m.waiting, m.oldest`

// readLatest returns the last bulk job with its requests by provider, and the state of the
// missing-price queue. The job is nil if there is none.
func readLatest(ctx context.Context, s *db.DB, now time.Time) (latest *refresh.Job, requests map[string]int64, q MissingStatus, err error) {
	requests = map[string]int64{}
	err = db.Each(ctx, s.Frequent, func(r *sql.Rows) error {
		latest = &refresh.Job{}
		var sent sql.NullString
		var oldest int64
		if err := refresh.ScanJobAnd(r, latest, &sent, &q.Running, &q.PendingItems, &q.WaitingItems, &oldest); err != nil {
			return err
		}
		q.OldestSeconds = age(oldest, now)
		for part := range strings.SplitSeq(sent.String, ",") {
			if provider, count, ok := strings.Cut(part, " "); ok {
				requests[provider], _ = strconv.ParseInt(count, 10, 64)
			}
		}
		return nil
	}, latestStatus, db.Micros(now))
	if err == nil && latest == nil {
		q, err = ReadMissingQueue(ctx, s, now)
	}
	return latest, requests, q, err
}

// DeferredNames returns the number of names that the last full bulk job deferred, by provider.
func DeferredNames(ctx context.Context, s *db.DB) (map[string]int64, error) {
	uses, err := db.Collect(ctx, s.Read, func(r *sql.Rows, u *ProviderUse) error { return r.Scan(&u.Provider, &u.DeferredNames) }, `
		SELECT provider, CAST(sum(size) AS BIGINT) FROM fetch_unit
		WHERE state = 'deferred' AND job_id = (SELECT max(id) FROM refresh_job WHERE kind = 'bulk' AND retry_of = 0 AND stage <> 'plan')
		GROUP BY provider`)
	out := make(map[string]int64, len(uses))
	for _, u := range uses {
		out[u.Provider] = u.DeferredNames
	}
	return out, err
}

// MarketYield is the number of quotes that a job got from a market.
type MarketYield struct {
	JobID            int64
	Provider, Market string
	Quotes, Rejected int64 // Rejected counts invalid rows
}

// QuoteCounts returns the number of quotes by job and market.
func QuoteCounts(ctx context.Context, s *db.DB, jobs []int64) ([]MarketYield, error) {
	return db.Collect(ctx, s.Frequent, func(r *sql.Rows, y *MarketYield) error {
		return r.Scan(&y.JobID, &y.Provider, &y.Market, &y.Quotes, &y.Rejected)
	}, `SELECT f.job_id, m.provider, m.key,
			CAST(coalesce(sum(f.quotes) FILTER (WHERE f.outcome = 'ok'), 0) AS BIGINT), CAST(sum(f.rejected) AS BIGINT)
		FROM market_fetch f JOIN market m ON m.id = f.market_id
		WHERE f.job_id `+s.Dialect.OneOf(1)+` GROUP BY f.job_id, m.provider, m.key ORDER BY f.job_id, m.provider, m.key`, s.Dialect.EncodeIDs(jobs))
}

// DeferredUnit is a request that a job did not send.
type DeferredUnit struct {
	JobID    int64
	Provider string
	File     string // empty: the provider is requested by name
}

// Deferred returns the requests that jobs did not send because of a budget, an open circuit
// breaker or a retry-after.
func Deferred(ctx context.Context, s *db.DB, jobs []int64) ([]DeferredUnit, error) {
	return db.Collect(ctx, s.Frequent, func(r *sql.Rows, u *DeferredUnit) error {
		return r.Scan(&u.JobID, &u.Provider, &u.File)
	}, `SELECT DISTINCT job_id, provider, file FROM fetch_unit
		WHERE job_id `+s.Dialect.OneOf(1)+` AND state = 'deferred' AND (file <> '' OR size > 0) ORDER BY job_id, provider, file`, s.Dialect.EncodeIDs(jobs))
}

// StoredJobItem is a job item as stored.
type StoredJobItem struct {
	Batch       int64
	ItemID      int64
	Key         catalog.Key
	State       string
	Reason      string
	Attempts    int64
	PriceBefore money.Micro
	PriceAfter  money.Micro // negative before the estimate
	Error       string
}

// JobItems returns the items of a job in a state ("": all states), starting after the
// given batch and item. It reads batch by batch, because all items of a batch are one row.
func JobItems(ctx context.Context, s *db.DB, job int64, state string, afterBatch, afterItem int64, limit int) ([]StoredJobItem, error) {
	return findJobItems(ctx, s, job, JobItemFilter{State: state}, nil, afterBatch, afterItem, limit)
}

// findJobItems returns the items of a job that match a filter. named has the IDs of the wanted items by
// batch; nil: all items.
func findJobItems(ctx context.Context, s *db.DB, job int64, f JobItemFilter, named map[int64][]int64, afterBatch, afterItem int64, limit int) ([]StoredJobItem, error) {
	batches, err := jobBatches(ctx, s, job, f, named, afterBatch)
	var out []StoredJobItem
	for k := 0; k < len(batches) && len(out) < limit && err == nil; k++ {
		if batches[k] > afterBatch {
			afterItem = -1
		}
		var items []StoredJobItem
		items, err = db.Collect(ctx, s.Read, func(r *sql.Rows, i *StoredJobItem) error {
			return r.Scan(&i.Batch, &i.ItemID, &i.Key.AppID, &i.Key.Name, &i.Key.Phase, &i.State, &i.Reason, &i.Attempts,
				&i.PriceBefore, &i.PriceAfter, &i.Error)
		}, `SELECT r.batch, r.item_id, i.app_id, i.name, i.phase, r.state, r.reason, r.attempts, r.price_before, r.price_after, r.error
			FROM (SELECT batch, item_id, state, reason, attempts, price_before, price_after, error FROM refresh_item
				WHERE job_id = $1 AND batch = $2 AND item_id > $3 AND ($4 = '' OR state = $4) AND ($6 = '' OR error = $6)
				AND ($7 OR item_id `+s.Dialect.OneOf(8)+`) ORDER BY item_id LIMIT $5) r
			JOIN item i ON i.id = r.item_id ORDER BY r.item_id`, job, batches[k], afterItem, f.State, limit-len(out), f.Cause,
			named == nil, s.Dialect.EncodeIDs(named[batches[k]]))
		out = append(out, items...)
	}
	return out, err
}

// jobBatches returns the batches of a job in order, starting with the batch from. A state selects
// batches that count items in it, because reading the items of a batch is expensive. A batch whose
// items were all skipped by the plan has no row in refresh_batch. A cause
// selects batches with items that failed for it. With named, only batches with wanted items count.
func jobBatches(ctx context.Context, s *db.DB, job int64, f JobItemFilter, named map[int64][]int64, from int64) ([]int64, error) {
	var out []int64
	err := db.Each(ctx, s.Read, func(r *sql.Rows) error {
		var batch int64
		var text []byte
		var failures []refresh.Failure
		if err := r.Scan(&batch, &text); err != nil {
			return err
		}
		if f.Cause != "" {
			if err := json.Unmarshal(text, &failures); err != nil {
				return err
			}
			if !slices.ContainsFunc(failures, func(failure refresh.Failure) bool { return failure.Error == f.Cause }) {
				return nil
			}
		}
		if named == nil || len(named[batch]) > 0 {
			out = append(out, batch)
		}
		return nil
	}, `SELECT i.batch, CASE WHEN $3 THEN i.failures ELSE '' END
		FROM refresh_batch_items i LEFT JOIN refresh_batch b ON b.job_id = i.job_id AND b.batch = i.batch
		WHERE i.job_id = $1 AND i.batch >= $2 AND CASE $4 WHEN 'updated' THEN b.updated WHEN 'noQuote' THEN b.no_quote
			WHEN 'failed' THEN b.failed WHEN 'cancelled' THEN b.cancelled WHEN 'pending' THEN b.pending ELSE 1 END > 0
		ORDER BY i.batch`, job, from, f.Cause != "", f.State)
	return out, err
}

// findUnpriced calls fn with the ID of each item without a price whose name contains all words.
func findUnpriced(ctx context.Context, s *db.DB, words prices.Words, fn func(id int64)) error {
	return db.Each(ctx, s.Read, func(r *sql.Rows) error {
		var id int64
		var name string
		if err := r.Scan(&id, &name); err != nil {
			return err
		}
		if words.In(name) {
			fn(id)
		}
		return nil
	}, `SELECT id, name FROM item WHERE `+refresh.Unpriced)
}

const missingQueue = `
	SELECT EXISTS (SELECT 1 FROM refresh_job WHERE kind = 'missing' AND state IN ('queued', 'running')) AS running,
		count(*) FILTER (WHERE job_id <> 0 OR due_at <= $1) AS pending,
		count(*) FILTER (WHERE job_id = 0 AND due_at > $1) AS waiting,
		coalesce(min(queued_at) FILTER (WHERE job_id <> 0 OR due_at <= $1), 0) AS oldest
	FROM missing_price`

// ReadMissingQueue returns the state of the missing-price queue.
func ReadMissingQueue(ctx context.Context, s *db.DB, now time.Time) (MissingStatus, error) {
	var q MissingStatus
	var oldest int64
	err := s.Frequent.QueryRowContext(ctx, missingQueue, db.Micros(now)).Scan(&q.Running, &q.PendingItems, &q.WaitingItems, &oldest)
	q.OldestSeconds = age(oldest, now)
	return q, err
}

// ReadFreshness counts the items in scope by the age of their price.
func ReadFreshness(ctx context.Context, s *db.DB, scopeAll bool, now time.Time) (Freshness, error) {
	var f Freshness
	var oldest int64
	err := s.Read.QueryRowContext(ctx, `
		SELECT count(*) FILTER (WHERE i.price > 0 AND i.price_checked_at >= $2),
			count(*) FILTER (WHERE i.price > 0 AND i.price_checked_at < $2),
			count(*) FILTER (WHERE i.price <= 0),
			coalesce(min(i.price_checked_at) FILTER (WHERE i.price > 0), 0)
		FROM item i WHERE $1 OR `+refresh.InScope,
		scopeAll, db.Micros(now.Add(-freshFor))).Scan(&f.Fresh, &f.Stale, &f.Unknown, &oldest)
	f.OldestSeconds = age(oldest, now)
	return f, err
}

// age returns the seconds since a stored time. It returns 0 for the zero time.
func age(stored int64, now time.Time) int64 {
	if stored == 0 {
		return 0
	}
	return seconds(now.Sub(db.Moment(stored)))
}

// Depths counts open work. It also returns the time at which the oldest work was queued.
func Depths(ctx context.Context, s *db.DB, now time.Time) ([]QueueDepth, time.Time, error) {
	out, err := db.Collect(ctx, s.Read, func(r *sql.Rows, d *QueueDepth) error { return r.Scan(&d.Kind, &d.State, &d.Count) }, `
		SELECT 'plan', 'pending', count(*) FROM refresh_job WHERE state IN ('queued', 'running') AND state = 'queued'
		UNION ALL SELECT 'background', coalesce(u.state, 'pending'), count(*) FROM background_name n
			LEFT JOIN fetch_unit u ON u.id = n.unit_id AND u.state = 'running' WHERE n.rank <> 0 OR n.missing_since <> 0 GROUP BY 2
		UNION ALL SELECT 'fetch', state, count(*) FROM fetch_unit WHERE state IN ('pending', 'running') AND detached <> `+refresh.DetachedBackgroundSQL+` GROUP BY state
		UNION ALL SELECT 'estimate', state, count(*) FROM refresh_batch WHERE state IN ('pending', 'running') GROUP BY state
		UNION ALL SELECT 'apply', 'running', count(*) FROM refresh_job WHERE state IN ('queued', 'running') AND stage = 'apply'
		UNION ALL SELECT 'missing', CASE WHEN job_id <> 0 THEN 'running' WHEN due_at <= $1 THEN 'pending' ELSE 'waiting' END, count(*)
			FROM missing_price GROUP BY 2`, db.Micros(now))
	if err != nil {
		return nil, time.Time{}, err
	}
	var oldest int64
	err = s.Read.QueryRowContext(ctx, `
		SELECT coalesce(min(since), 0) FROM (
			SELECT created_at AS since FROM refresh_job WHERE state IN ('queued', 'running')
			UNION ALL SELECT queued_at FROM missing_price WHERE job_id <> 0 OR due_at <= $1) w`, db.Micros(now)).Scan(&oldest)
	return out, db.Moment(oldest), err
}

// Claims returns the current claims of all processes.
func Claims(ctx context.Context, s *db.DB) ([]Claim, error) {
	return db.Collect(ctx, s.Read, func(r *sql.Rows, c *Claim) error {
		var since int64
		err := r.Scan(&c.Owner, &c.Kind, &c.Work, &c.Provider, &since, &c.Token)
		c.Since = db.Moment(since)
		return err
	}, `SELECT owner, 'fetch', provider || ' ' || file, provider, started_at, token FROM fetch_unit
			WHERE state IN ('pending', 'running') AND state = 'running' AND detached <> `+refresh.DetachedBackgroundSQL+`
		UNION ALL SELECT owner, 'estimate', 'job ' || job_id || ' batch ' || batch, '', started_at, token FROM refresh_batch
			WHERE state IN ('pending', 'running') AND state = 'running'
		UNION ALL SELECT u.owner, 'background', n.provider || ' ' || n.name, n.provider, u.started_at, u.token FROM background_name n
			JOIN fetch_unit u ON u.id = n.unit_id WHERE n.unit_id <> 0 AND u.state IN ('pending', 'running') AND u.state = 'running'
		ORDER BY 5 LIMIT 100`)
}
