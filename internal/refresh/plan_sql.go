package refresh

import (
	"context"
	"database/sql"
	"encoding/json"
	"strconv"

	"assay/internal/db"
)

// planState computes the state of an item in a plan. Parameters: $1 now, $2 forced, $3 TTL
// with its tolerance, $4 length of a no-sales pause, all in microseconds. An item without a
// price is never skipped. A time in the future was stored before the clock was set back, and
// causes no skip.
const planState = `
	CASE WHEN i.price <= 0 OR $2 THEN ''
	     WHEN i.retry_at > $1 AND i.retry_at <= $1 + $4 THEN 'noSales'
	     WHEN i.quotes_at > $1 - $3 AND i.quotes_at <= $1 THEN 'ttl'
	     ELSE '' END`

// InScope is the condition that item i is in an inventory or in an active listing. LIMIT
// makes PostgreSQL look up each item by index. For EXISTS it would read all inventories.
const InScope = `((SELECT true FROM inventory v WHERE v.item_id = i.id LIMIT 1)
	OR (SELECT true FROM listing l WHERE l.item_id = i.id AND l.state = 'active' LIMIT 1))`

// These constants select the items of a plan:
//
//   - planScope: the items in scope, or all items if $5 is true;
//   - planRetry: the failed items of job $5, joined as in dueNames. Unless $6 is empty, only those with the error $6;
//   - planChosen: the items in the list $5;
//   - planMissing: the first $5 due entries of the missing-price queue. It includes entries
//     that are due later than the longest pause, because the clock has then been set back.
const (
	planScope = `
FROM item i WHERE $5 OR ` + InScope
	planRetry = `
FROM refresh_item f CROSS JOIN item i
WHERE i.id = f.item_id AND f.job_id = $5 AND ($6 = '' AND (f.state = 'failed' OR f.state = 'skipped' AND f.reason IN ('budget', 'paused', 'backoff'))
	OR $6 <> '' AND f.state = 'failed' AND f.error = $6)`
	planChosen = `
FROM item i WHERE i.id `
	planMissing = `
FROM item i JOIN (
	SELECT item_id FROM missing_price
	WHERE job_id = 0 AND (due_at <= $1 OR due_at > $1 + ` + maxMissingRetryMicros + `)
	ORDER BY due_at, item_id LIMIT $5) m ON m.item_id = i.id`
)

// These constants repeat constants of other packages as SQL. A test compares both.
const (
	maxMissingRetryMicros = "259200000000" // pricing.MaxMissingRetry in microseconds
	awaiting              = "'awaiting'"   // pricing.Awaiting, quoted
	Unpriced              = "status = 5"   // pricing.NoPrice; the condition of the index item_unpriced
)

// tolerancePercent makes an item due after 95 % of its TTL. Otherwise, if refreshes are scheduled
// once per TTL, a refresh that starts a little early would skip the item.
const tolerancePercent = 95

// planOf returns the FROM clause and its parameters, which select the items of a plan.
func planOf(d db.Dialect, r Rules) (from string, args []any) {
	forced := r.Forced || r.Missing || r.RetryOf != 0 || r.Items != nil
	args = []any{
		db.Micros(r.Now), forced,
		r.TTL.Microseconds() * tolerancePercent / 100, r.NoSalesRetry.Microseconds(),
	}
	switch {
	case r.Missing:
		return planMissing, append(args, r.Limit)
	case r.RetryOf != 0:
		return planRetry, append(args, r.RetryOf, r.RetryCause)
	case r.Items != nil:
		return planChosen + d.OneOf(5), append(args, d.EncodeIDs(r.Items))
	default:
		return planScope, append(args, r.ScopeAll)
	}
}

// ReadDue counts the items that a plan with these rules would include, by game. Almost every name
// has one item, and only names with phases have several. So only those are counted distinctly,
// which is much faster than a distinct count of all names.
func ReadDue(ctx context.Context, s *db.DB, r Rules) (map[int32]DueNames, error) {
	type row struct {
		app   int32
		skip  string
		items int64
		names int64
	}
	from, args := planOf(s.Dialect, r)
	rows, err := db.Collect(ctx, s.Read, func(rows *sql.Rows, v *row) error {
		return rows.Scan(&v.app, &v.skip, &v.items, &v.names)
	}, `SELECT app_id, skip, count(*), count(*) FILTER (WHERE single) + count(DISTINCT CASE WHEN NOT single THEN name END)
		FROM (SELECT i.app_id, i.name, i.phase = '' AND i.name NOT IN (SELECT o.name FROM item o WHERE o.phase <> '') AS single,
			`+planState+` AS skip `+from+`) p GROUP BY app_id, skip`, args...)
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

// hasDueMissing reports whether an entry of the missing-price queue is due.
func hasDueMissing(ctx context.Context, s *db.DB, r Rules) (bool, error) {
	var due bool
	err := s.Read.QueryRowContext(ctx, `
		SELECT EXISTS (SELECT 1 FROM missing_price WHERE job_id = 0 AND (due_at <= $1 OR due_at > $1 + $2))`,
		db.Micros(r.Now), MaxMissingRetry.Microseconds()).Scan(&due)
	return due, err
}

// chooseItems adds the choice of a job to its rules: the error of the items to retry, or the
// chosen items.
func chooseItems(t *db.Tx, job *Job, r *Rules) error {
	var items string
	err := t.QueryRow(`SELECT retry_cause, chosen FROM refresh_job WHERE id = $1`, job.ID).Scan(&r.RetryCause, &items)
	if err != nil || job.Kind != Chosen {
		return err
	}
	r.Items = []int64{}
	return json.Unmarshal([]byte(items), &r.Items)
}

// dueNames joins with CROSS JOIN, so SQLite looks up each pending item by id. Otherwise it may read the
// view refresh_item again for each item of the game, which takes minutes with 20,000 pending items.
const dueNames = `SELECT DISTINCT i.name, r.batch, i.bucket FROM refresh_item r CROSS JOIN item i
	WHERE i.id = r.item_id AND r.job_id = $1 AND r.state = 'pending' AND i.app_id = $2 ORDER BY i.bucket, i.name`

// dueNamesOf lists the distinct names of a job's pending items of a game, by bucket. All
// phases of a name are in the same bucket, and so in the same batch.
func dueNamesOf(t *db.Tx, job int64, app int32) ([]PlannedName, error) {
	return db.Collect(t.Context(), t, func(rows *sql.Rows, n *PlannedName) error {
		var bucket int
		return rows.Scan(&n.Name, &n.Batch, &bucket)
	}, dueNames, job, app)
}

// findLastRequested returns the name that bulk jobs requested last from a provider, or "".
func findLastRequested(t *db.Tx, provider string, app int32) (name string, err error) {
	err = t.QueryRow(`SELECT value FROM setting WHERE name = $1`, lastRequested(provider, app)).Scan(&name)
	_, err = db.Found(err)
	return name, err
}

// noteUnitRequested stores the last name of a unit of a bulk job, after a success or a
// failure. The next job continues after this name.
func noteUnitRequested(t *db.Tx, u FetchUnit) error {
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
	return "requested_last:" + provider + ":" + strconv.Itoa(int(app))
}
