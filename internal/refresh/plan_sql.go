package refresh

import (
	"context"
	"database/sql"
	"errors"
	"strconv"

	"assay/internal/db"
)

// planState is the state of an item in a plan, given $1 now, $2 forced, $3 the TTL with its
// tolerance, $4 the length of a no-sales pause, all in microseconds (rule 5: an unknown price
// is never skipped). Times in the future come from before the clock was set back and skip
// nothing; hence the lower bounds.
const planState = `
	CASE WHEN i.price <= 0 OR $2 THEN ''
	     WHEN i.retry_at > $1 AND i.retry_at <= $1 + $4 THEN 'noSales'
	     WHEN i.quotes_at > $1 - $3 AND i.quotes_at <= $1 THEN 'ttl'
	     ELSE '' END`

// The items of a plan: those in scope ($5: all), the failed ones of job $5, or the first $5
// due entries of the missing-price queue. An entry that is due later than the longest pause
// was queued before the clock was set back.
const (
	planScope = `
FROM item i
WHERE $5 OR EXISTS (SELECT 1 FROM inventory v WHERE v.item_id = i.id)
	OR EXISTS (SELECT 1 FROM listing l WHERE l.item_id = i.id AND l.state = 'active')`
	planRetry = `
FROM item i JOIN refresh_item f ON f.item_id = i.id
WHERE f.job_id = $5 AND (f.state = 'failed' OR f.state = 'skipped' AND f.reason IN ('budget', 'paused', 'backoff'))`
	planMissing = `
FROM item i JOIN (
	SELECT item_id FROM missing_price
	WHERE job_id = 0 AND (due_at <= $1 OR due_at > $1 + ` + maxMissingRetryMicros + `)
	ORDER BY due_at, item_id LIMIT $5) m ON m.item_id = i.id`
)

// Constants of other packages for SQL. A test compares them.
const (
	maxMissingRetryMicros = "259200000000" // refresh.MaxMissingRetry in microseconds
	buckets               = "128"          // catalog.Buckets
	awaiting              = "'awaiting'"   // pricing.Awaiting, quoted
	Unpriced              = "status = 5"   // pricing.NoPrice; the condition of the index item_unpriced
)

// tolerancePercent lets a schedule of the same length as the TTL work: an item is due when 95
// % of the TTL have passed.
const tolerancePercent = 95

// planOf returns the part of the statement and the parameters $1 to $5 that select a plan's
// items.
func planOf(r Rules) (from string, args []any) {
	forced := r.Forced || r.Missing || r.RetryOf != 0
	args = []any{
		db.Micros(r.Now), forced,
		r.TTL.Microseconds() * tolerancePercent / 100, r.NoSalesRetry.Microseconds(),
	}
	switch {
	case r.Missing:
		return planMissing, append(args, r.Limit)
	case r.RetryOf != 0:
		return planRetry, append(args, r.RetryOf)
	default:
		return planScope, append(args, r.ScopeAll)
	}
}

// dueByApp counts items and, with names, distinct names, which takes longer than everything
// else.
func dueByApp(ctx context.Context, q db.Querier, r Rules, names bool) (map[int32]DueNames, error) {
	type row struct {
		app   int32
		skip  string
		items int64
		names int64
	}
	from, args := planOf(r)
	rows, err := db.Collect(ctx, q, func(rows *sql.Rows, v *row) error {
		return rows.Scan(&v.app, &v.skip, &v.items, &v.names)
	}, `SELECT app_id, skip, count(*), count(DISTINCT CASE WHEN $6 THEN name END)
		FROM (SELECT i.app_id, i.name, `+planState+` AS skip `+from+`) p GROUP BY app_id, skip`, append(args, names)...)
	if err != nil {
		return nil, err
	}
	out := map[int32]DueNames{}
	for _, v := range rows {
		d := out[v.app]
		switch v.skip {
		case SkipTTL:
			d.TTL = v.items
		case SkipNoSales:
			d.NoSales = v.items
		default:
			d.Due.Due, d.Names = v.items, v.names
		}
		out[v.app] = d
	}
	return out, nil
}

// ReadDue counts what these rules would plan, by game.
func ReadDue(ctx context.Context, s *db.DB, r Rules) (map[int32]DueNames, error) {
	return dueByApp(ctx, s.Read, r, true)
}

// dueInTx counts the items that these rules would plan, by game, without the names.
func dueInTx(t *db.Tx, r Rules) (map[int32]DueNames, error) {
	return dueByApp(t.Context(), t, r, false)
}

// hasDueMissing reports whether an entry of the missing-price queue is due.
func hasDueMissing(ctx context.Context, s *db.DB, r Rules) (bool, error) {
	var due bool
	err := s.Read.QueryRowContext(ctx, `
		SELECT EXISTS (SELECT 1 FROM missing_price WHERE job_id = 0 AND (due_at <= $1 OR due_at > $1 + $2))`,
		db.Micros(r.Now), MaxMissingRetry.Microseconds()).Scan(&due)
	return due, err
}

// PlanItems makes a job's items and batches, each item once.
func PlanItems(t *db.Tx, job int64, r Rules, batches int) error {
	from, args := planOf(r)
	insert := `
INSERT INTO refresh_item (job_id, batch, item_id, state, reason, attempts, price_before, price_after, error)
SELECT $6, bucket * $7 / ` + buckets + `, id, CASE WHEN skip = '' THEN 'pending' ELSE 'skipped' END, skip, 0, price, -1, ''
FROM (SELECT i.id, i.bucket, i.price, ` + planState + ` AS skip ` + from + `) p ORDER BY id`
	if _, err := t.Exec(insert, append(args, job, batches)...); err != nil {
		return err
	}
	for _, query := range []string{
		`INSERT INTO refresh_batch (job_id, batch, state, pending)
		 SELECT job_id, batch, 'pending', count(*) FROM refresh_item WHERE job_id = $1 AND state = 'pending' GROUP BY job_id, batch`,
		`UPDATE refresh_job SET (total, skipped_ttl, skipped_no_sales) = (
			SELECT count(*), count(*) FILTER (WHERE reason = 'ttl'), count(*) FILTER (WHERE reason = 'noSales')
			FROM refresh_item WHERE job_id = $1)
		 WHERE id = $1`,
	} {
		if _, err := t.Exec(query, job); err != nil {
			return err
		}
	}
	if !r.Missing {
		return nil
	}
	_, err := t.Exec(`
		UPDATE missing_price SET job_id = $1 WHERE item_id IN (
			SELECT m.item_id FROM missing_price m WHERE m.item_id IN (SELECT item_id FROM refresh_item WHERE job_id = $1)
			ORDER BY m.item_id`+t.Dialect.LockOf("m")+`)`, job)
	return err
}

// plannedByApp counts a job's pending items, by game.
func plannedByApp(t *db.Tx, job int64) (map[int32]int64, error) {
	type row struct {
		app   int32
		items int64
	}
	rows, err := db.Collect(t.Context(), t, func(r *sql.Rows, v *row) error { return r.Scan(&v.app, &v.items) }, `
		SELECT i.app_id, count(*) FROM refresh_item r JOIN item i ON i.id = r.item_id
		WHERE r.job_id = $1 AND r.state = 'pending' GROUP BY i.app_id`, job)
	out := make(map[int32]int64, len(rows))
	for _, v := range rows {
		out[v.app] = v.items
	}
	return out, err
}

// dueNamesOf lists the distinct names of a job's pending items of a game, by bucket. All
// phases of a name are in the same bucket, and so in the same batch.
func dueNamesOf(t *db.Tx, job int64, app int32) ([]PlannedName, error) {
	return db.Collect(t.Context(), t, func(rows *sql.Rows, n *PlannedName) error {
		var bucket int
		return rows.Scan(&n.Name, &n.Batch, &bucket)
	}, `SELECT DISTINCT i.name, r.batch, i.bucket FROM refresh_item r JOIN item i ON i.id = r.item_id
		WHERE r.job_id = $1 AND r.state = 'pending' AND i.app_id = $2 ORDER BY i.bucket, i.name`, job, app)
}

// findLastRequested returns the name that bulk jobs queried a provider for last; "": none.
func findLastRequested(t *db.Tx, provider string, app int32) (name string, err error) {
	err = t.QueryRow(`SELECT value FROM setting WHERE name = $1`, lastRequested(provider, app)).Scan(&name)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return name, err
}

// noteUnitRequested stores the last name of a unit of a bulk job, whether its provider
// responded or failed. In both cases the names after it are next.
func noteUnitRequested(t *db.Tx, u Unit) error {
	if len(u.Names) == 0 || u.State != UnitDone && u.State != UnitFailed {
		return nil
	}
	_, err := t.Exec(`
		INSERT INTO setting (name, value) SELECT $1, $2 FROM refresh_job WHERE id = $3 AND kind = 'bulk'
		ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
		lastRequested(u.Provider, u.AppID), u.Names[len(u.Names)-1], u.JobID)
	return err
}

func lastRequested(provider string, app int32) string {
	return "asked_last:" + provider + ":" + strconv.Itoa(int(app))
}
