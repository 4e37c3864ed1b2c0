package refresh

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"assay/internal/db"
	"assay/internal/event"
	"assay/internal/fault"
)

// JobColumns are the columns that ScanJob reads: a job with the sums of its batches.
const JobColumns = `
	j.id, j.kind, j.forced, j.state, j.stage, j.cancel_requested, j.requested_by, j.retry_of,
	j.created_at, j.started_at, j.finished_at, j.batches, j.apply_cursor, j.rate_set, j.last_error, j.outcome, j.market_gaps,
	j.total, j.skipped_ttl, j.skipped_no_sales,
	coalesce(sum(b.pending), 0), coalesce(sum(b.updated), 0), coalesce(sum(b.no_quote), 0), coalesce(sum(b.failed), 0),
	coalesce(sum(b.cancelled), 0), coalesce(sum(b.changed), 0),
	coalesce(sum(b.skipped_budget), 0), coalesce(sum(b.skipped_paused), 0), coalesce(sum(b.skipped_backoff), 0)`

// ScanJob reads a row of JobColumns.
func ScanJob(r *sql.Rows, j *Job) error { return ScanJobAnd(r, j) }

// ScanJobAnd reads a row of JobColumns and further columns.
func ScanJobAnd(r *sql.Rows, j *Job, further ...any) error {
	var created, started, finished int64
	var gaps sql.RawBytes
	c := &j.Counts
	err := r.Scan(append([]any{
		&j.ID, &j.Kind, &j.Forced, &j.State, &j.Stage, &j.CancelRequested, &j.RequestedBy, &j.RetryOf,
		&created, &started, &finished, &j.Batches, &j.ApplyCursor, &j.RateSet, &j.LastError, &j.Outcome, &gaps,
		&c.Total, &c.SkippedTTL, &c.SkippedNoSales,
		&c.Pending, &c.Updated, &c.NoQuote, &c.Failed, &c.Cancelled, &c.Changed,
		&c.SkippedBudget, &c.SkippedPaused, &c.SkippedBackoff,
	}, further...)...)
	j.CreatedAt, j.StartedAt, j.FinishedAt = db.Moment(created), db.Moment(started), db.Moment(finished)
	if err != nil || len(gaps) == 0 {
		return err
	}
	return json.Unmarshal(gaps, &j.MarketGaps)
}

const jobByID = `
SELECT` + JobColumns + `
FROM refresh_job j LEFT JOIN refresh_batch b ON b.job_id = j.id
WHERE j.id = $1
GROUP BY j.id`

// ReadJob returns a job, or an error of the kind fault.NotFound.
func ReadJob(ctx context.Context, s *db.DB, id int64) (Job, error) {
	jobs, err := db.Collect(ctx, s.Read, ScanJob, jobByID, id)
	if err != nil {
		return Job{}, fmt.Errorf("read job %d: %w", id, err)
	}
	if len(jobs) == 0 {
		return Job{}, fault.New(fault.NotFound, "job_not_found", "Unknown job %d. Ended jobs are deleted after some days.", id)
	}
	return jobs[0], nil
}

// oldestJob returns the job that a query selects, or nil.
func oldestJob(ctx context.Context, s *db.DB, query string) (*Job, error) {
	jobs, err := db.Collect(ctx, s.Read, ScanJob, query)
	if err != nil || len(jobs) == 0 {
		return nil, err
	}
	return &jobs[0], nil
}

const queuedJob = `
SELECT` + JobColumns + `
FROM refresh_job j LEFT JOIN refresh_batch b ON b.job_id = j.id
WHERE j.id = (SELECT min(id) FROM refresh_job WHERE state IN ('queued', 'running') AND state = 'queued')
GROUP BY j.id`

// readQueuedJob returns the oldest queued job, or nil.
func readQueuedJob(ctx context.Context, s *db.DB) (*Job, error) {
	return oldestJob(ctx, s, queuedJob)
}

const isFetched = `
SELECT NOT EXISTS (SELECT 1 FROM fetch_unit u WHERE u.job_id = $1 AND u.state IN ('pending', 'running') AND u.detached = 0) OR NOT EXISTS (
	SELECT 1 FROM fetch_unit u WHERE u.job_id = $1 AND u.file <> '' AND u.state = 'done' AND u.detached = 0 AND NOT EXISTS (
		SELECT 1 FROM market m JOIN market_file f ON f.market_id = m.id
		WHERE m.provider = u.provider AND f.app_id = u.app_id AND f.file = u.file AND f.unit_id <> 0))`

// validator is the condition that $1 can validate the responses of a job: no other registered
// instance has claimed that. After a takeover the row of the instance is gone.
const validator = `(owner IN ('', $1) OR NOT EXISTS (SELECT 1 FROM instance i WHERE i.owner = refresh_job.owner))`

// openFile is the condition that the unit u is a file that the validation of its job waits for.
const openFile = `u.file <> '' AND u.state IN ('pending', 'running') AND u.detached = 0`

const jobsToEstimateSQL = `
SELECT id, stage FROM refresh_job
WHERE state IN ('queued', 'running') AND (stage = 'estimate' OR stage = 'fetch' AND ` + validator + ` AND NOT EXISTS (
	SELECT 1 FROM fetch_unit u WHERE u.job_id = refresh_job.id AND ` + openFile + `))
ORDER BY id`

// jobsToEstimate returns the ids of the active jobs in the estimate stage, and of those in the
// fetch stage without open files. It omits jobs whose responses another instance validates.
func jobsToEstimate(ctx context.Context, s *db.DB, owner string) (fetching, estimating []int64, err error) {
	err = db.Each(ctx, s.Read, func(r *sql.Rows) error {
		var id int64
		var stage string
		err := r.Scan(&id, &stage)
		if stage == "fetch" {
			fetching = append(fetching, id)
		} else {
			estimating = append(estimating, id)
		}
		return err
	}, jobsToEstimateSQL, owner)
	return fetching, estimating, err
}

// readFetchedJob returns the first of the given jobs that can be validated, or nil. If a job has
// the first response of a file, its units of names must have ended too, because validation
// compares a first response with the responses of all providers.
//
// It checks one job at a time. In one query for all jobs, PostgreSQL reads the units of ended
// jobs too.
func readFetchedJob(ctx context.Context, s *db.DB, fetching []int64) (*Job, error) {
	for _, id := range fetching {
		var fetched bool
		if err := s.Read.QueryRowContext(ctx, isFetched, id).Scan(&fetched); err != nil {
			return nil, err
		}
		if fetched {
			job, err := ReadJob(ctx, s, id)
			return &job, err
		}
	}
	return nil, nil
}

// claimValidation claims the validation of a job. It returns false if another instance has
// claimed it. The claim saves work and protects nothing: the first result that is stored counts.
func claimValidation(t *db.Tx, id int64, owner string) (bool, error) {
	n, err := t.Exec(`UPDATE refresh_job SET owner = $1 WHERE id = $2 AND stage = 'fetch' AND `+validator, owner, id)
	return n == 1, err
}

// releaseValidation lets another instance validate a job.
func releaseValidation(t *db.Tx, id int64, owner string) error {
	_, err := t.Exec(`UPDATE refresh_job SET owner = '' WHERE id = $1 AND owner = $2`, id, owner)
	return err
}

const estimatedJob = `
SELECT` + JobColumns + `
FROM refresh_job j LEFT JOIN refresh_batch b ON b.job_id = j.id
WHERE j.id = (
	SELECT min(id) FROM refresh_job c
	WHERE c.state IN ('queued', 'running') AND c.stage = 'estimate' AND NOT EXISTS (
		SELECT 1 FROM refresh_batch o WHERE o.job_id = c.id AND o.state IN ('pending', 'running')))
GROUP BY j.id`

// readEstimatedJob returns a job in its estimate stage with no open batches, or nil.
func readEstimatedJob(ctx context.Context, s *db.DB) (*Job, error) {
	return oldestJob(ctx, s, estimatedJob)
}

const applyingJob = `
SELECT` + JobColumns + `
FROM refresh_job j LEFT JOIN refresh_batch b ON b.job_id = j.id
WHERE j.id = (SELECT min(id) FROM refresh_job WHERE state IN ('queued', 'running') AND stage = 'apply')
GROUP BY j.id`

// readApplyingJob returns a job in its apply stage, or nil.
func readApplyingJob(ctx context.Context, s *db.DB) (*Job, error) {
	return oldestJob(ctx, s, applyingJob)
}

// recoverClaims releases all claims and deletes all instances. The lock beside the SQLite
// file ensures that no other process uses the database.
func recoverClaims(ctx context.Context, s *db.DB) error {
	return s.InTx(ctx, func(t *db.Tx) error {
		for _, query := range []string{
			`UPDATE fetch_unit SET state = 'pending' WHERE state = 'running'`,
			`UPDATE refresh_batch SET state = 'pending' WHERE state = 'running'`,
			`DELETE FROM instance`,
		} {
			if _, err := t.Exec(query); err != nil {
				return err
			}
		}
		return nil
	})
}

const batchColumns = "job_id bigint, batch bigint"

// reclaim releases the claims of an owner, except for the given units and batches.
func reclaim(t *db.Tx, owner string, units []int64, batches []Batch) error {
	_, err := t.Exec(`
		UPDATE fetch_unit SET state = 'pending'
		WHERE state IN ('pending', 'running') AND state = 'running' AND owner = $1
		AND id NOT IN `+t.Dialect.IDs(2), owner, t.Dialect.EncodeIDs(units))
	if err != nil {
		return err
	}
	held := db.NewTable(batchColumns, len(batches))
	for _, b := range batches {
		held.Int(b.JobID, int64(b.Batch))
	}
	_, err = t.Exec(`
		UPDATE refresh_batch SET state = 'pending'
		WHERE state IN ('pending', 'running') AND state = 'running' AND owner = $1
		AND (job_id, batch) NOT IN `+t.Dialect.Rows(2, batchColumns), held.Params(t.Dialect, owner)...)
	return err
}

// InsertJob inserts a queued job, unless a job of the same kind is live. It retries if a job
// begins or ends between its two statements.
func InsertJob(t *db.Tx, j Job) (id int64, made bool, err error) {
	const attempts = 3
	chosen := ""
	if j.Kind == Chosen {
		text, err := json.Marshal(j.Items)
		if err != nil {
			return 0, false, err
		}
		chosen = string(text)
	}
	for range attempts {
		err = t.QueryRow(`SELECT id FROM refresh_job WHERE kind = $1 AND state IN ('queued', 'running')`, j.Kind).Scan(&id)
		if found, err := db.Found(err); found || err != nil {
			return id, false, err
		}
		err = t.QueryRow(`
			INSERT INTO refresh_job (kind, forced, state, stage, requested_by, retry_of, created_at, retry_cause, chosen)
			VALUES ($1, $2, 'queued', 'plan', $3, $4, $5, $6, $7)
			ON CONFLICT (kind) WHERE state IN ('queued', 'running') DO NOTHING RETURNING id`,
			j.Kind, j.Forced, j.RequestedBy, j.RetryOf, db.Micros(t.Now()), j.RetryCause, chosen).Scan(&id)
		if found, err := db.Found(err); found || err != nil {
			return id, err == nil, err
		}
	}
	return 0, false, err
}

// claimQueued locks a queued job for its plan. It returns false if the job is not queued or
// another process has locked it. Without this lock, all processes would plan each job.
func claimQueued(t *db.Tx, id int64) (bool, error) {
	return db.Found(t.QueryRow(`SELECT id FROM refresh_job WHERE id = $1 AND state = 'queued'`+t.Dialect.SkipLocked("refresh_job"), id).Scan(&id))
}

// keepRetried prevents the deletion of the job whose items a job retries. It returns false if that
// job is deleted already.
func keepRetried(t *db.Tx, j *Job) (bool, error) {
	if j.RetryOf == 0 {
		return true, nil
	}
	var id int64
	return db.Found(t.QueryRow(`SELECT id FROM refresh_job WHERE id = $1`+t.Dialect.Share("refresh_job"), j.RetryOf).Scan(&id))
}

// StartJob moves a queued job to its fetch stage.
func StartJob(t *db.Tx, id int64, batches int, rateSet int64) (bool, error) {
	n, err := t.Exec(`
		UPDATE refresh_job SET state = 'running', stage = 'fetch', started_at = $2, batches = $3, rate_set = $4
		WHERE id = $1 AND state = 'queued'`, id, db.Micros(t.Now()), batches, rateSet)
	return n == 1, err
}

// EndEstimating moves a job without open batches to its apply stage.
func EndEstimating(t *db.Tx, id int64) error {
	_, err := t.Exec(`
		UPDATE refresh_job SET stage = 'apply', estimated_at = $2
		WHERE id = $1 AND stage = 'estimate' AND NOT EXISTS (
			SELECT 1 FROM refresh_batch b WHERE b.job_id = $1 AND b.state IN ('pending', 'running'))`, id, db.Micros(t.Now()))
	return err
}

// failJob ends a queued job that this process cannot plan. It changes nothing if another process
// has planned the job.
func failJob(t *db.Tx, id int64, lastError string) error {
	n, err := t.Exec(`
		UPDATE refresh_job SET state = 'failed', stage = 'done', finished_at = $2, last_error = $3
		WHERE id = $1 AND state = 'queued'`, id, db.Micros(t.Now()), lastError)
	if err != nil || n == 0 {
		return err
	}
	_, err = endJob(t, id, nil)
	return err
}

// pauseMissing postpones the entries of the missing-price queue that a cancelled job has
// taken. A queued job has taken none yet, so the entries that are due are postponed.
const pauseMissing = `
UPDATE missing_price SET due_at = $2, soonest_at = $2
WHERE job_id = $1 OR job_id = 0 AND (due_at <= $3 OR due_at > $3 + ` + maxMissingRetryMicros + `)
	AND EXISTS (SELECT 1 FROM refresh_job WHERE id = $1 AND kind = 'missing' AND state = 'queued')`

// cancelJob cancels the open batches, units and items of a live job, and revokes their
// claims. It postpones the job's entries of the missing-price queue, because the next job
// would otherwise begin immediately with the same items. If the job has ended, it changes nothing
// and returns a fault of the kind Conflict.
//
// It writes the row of the job first. So a transaction that plans, validates or finishes the
// job runs completely before or completely after the cancellation.
func cancelJob(t *db.Tx, id int64, pause time.Duration) error {
	n, err := t.Exec(`UPDATE refresh_job SET cancel_requested = true WHERE id = $1 AND state IN ('queued', 'running')`, id)
	if err != nil {
		return err
	}
	if n == 0 {
		var state State
		if err := t.QueryRow(`SELECT state FROM refresh_job WHERE id = $1`, id).Scan(&state); err != nil {
			return err
		}
		return fault.New(fault.Conflict, "job_ended", "Job %d is already %s.", id, state)
	}
	for _, query := range []string{
		`UPDATE fetch_unit SET state = 'cancelled', token = token + 1 WHERE job_id = $1 AND state IN ('pending', 'running')`,
		`UPDATE background_name SET rank = 0, missing_since = 0 WHERE (rank <> 0 OR missing_since <> 0) AND job_id = $1`,
		`UPDATE refresh_batch SET state = 'cancelled', token = token + 1, cancelled = pending, pending = 0
		 WHERE job_id = $1 AND state IN ('pending', 'running')`,
		`UPDATE refresh_job SET stage = 'apply' WHERE id = $1 AND state = 'running'`,
	} {
		if _, err := t.Exec(query, id); err != nil {
			return err
		}
	}
	if _, err := t.Exec(pauseMissing, id, db.Micros(t.Now().Add(pause)), db.Micros(t.Now())); err != nil {
		return err
	}
	_, err = t.Exec(`
		UPDATE refresh_job SET state = 'cancelled', stage = 'done', finished_at = $2, outcome = 'failed'
		WHERE id = $1 AND state = 'queued'`, id, db.Micros(t.Now()))
	return err
}

const finishJob = `
UPDATE refresh_job SET stage = 'done', finished_at = $2, state = CASE
	WHEN cancel_requested THEN 'cancelled'
	WHEN (SELECT coalesce(sum(updated), 0) FROM refresh_batch WHERE job_id = $1) = 0 AND (
		(SELECT coalesce(sum(failed), 0) FROM refresh_batch WHERE job_id = $1) > 0
		OR last_error <> '') THEN 'failed'
	ELSE 'finished' END,
	last_error = CASE
	WHEN last_error = '' AND (SELECT coalesce(sum(failed), 0) FROM refresh_batch WHERE job_id = $1) > 0
	THEN coalesce((SELECT error FROM refresh_item WHERE job_id = $1 AND state = 'failed' ORDER BY batch, item_id LIMIT 1), '')
	ELSE last_error END
WHERE id = $1 AND state = 'running' AND stage = 'apply'
RETURNING state`

// FinishJob ends a job in its apply stage, and deletes its responses except the newest good
// ones of each file. A job without prices has failed if an error occurred. If no request
// failed, the error of the first failed item is the job's last error. FinishJob returns nil,
// and writes nothing, if the job is not in StageApply.
func FinishJob(t *db.Tx, id int64, markets []event.MarketGap) (*Job, error) {
	if err := lockBlobs(t); err != nil {
		return nil, err
	}
	var state State
	if err := t.QueryRow(finishJob, id, db.Micros(t.Now())).Scan(&state); err != nil {
		_, err = db.Found(err)
		return nil, err
	}
	if _, err := t.Exec(`DELETE FROM apply_shard WHERE job_id = $1`, id); err != nil {
		return nil, err
	}
	if _, err := t.Exec(`UPDATE fetch_unit SET names = NULL WHERE job_id = $1 AND names IS NOT NULL AND NOT (detached <> 0 AND state IN ('pending', 'running'))`, id); err != nil {
		return nil, err
	}
	// Entries that the job has not estimated are left to the next job.
	if _, err := t.Exec(`UPDATE missing_price SET job_id = 0 WHERE job_id = $1`, id); err != nil {
		return nil, err
	}
	if err := dropBlobs(t); err != nil {
		return nil, err
	}
	return endJob(t, id, markets)
}

// dropBlobsSQL reads the units of running jobs once. The CROSS JOIN makes SQLite begin with these
// jobs. Otherwise it searches the units of all jobs for each response.
const dropBlobsSQL = `
DELETE FROM fetch_blob WHERE unit_id IN (
	SELECT b.unit_id FROM (SELECT DISTINCT unit_id FROM fetch_blob) b
	WHERE b.unit_id NOT IN (SELECT unit_id FROM market_file)
	AND b.unit_id NOT IN (
		SELECT u.blob_unit FROM refresh_job j CROSS JOIN fetch_unit u
		WHERE u.job_id = j.id AND j.state IN ('queued', 'running'))
	AND NOT EXISTS (
		SELECT 1 FROM fetch_unit late WHERE late.id = b.unit_id AND late.detached <> 0 AND late.file <> '' AND NOT EXISTS (
			SELECT 1 FROM fetch_unit n JOIN refresh_job j ON j.id = n.job_id
			WHERE n.provider = late.provider AND n.app_id = late.app_id AND n.file = late.file AND n.file <> '' AND n.id > late.id AND j.kind = 'bulk')))`

// dropBlobs deletes the responses that no live job uses. It keeps the newest good response of
// each market's file, and late responses until a bulk job has planned the file again.
func dropBlobs(t *db.Tx) error {
	_, err := t.Exec(dropBlobsSQL)
	return err
}

// lockJob prevents other transactions from changing the state of a job.
func lockJob(t *db.Tx, id int64) error {
	return t.ExecPostgres(`SELECT id FROM refresh_job WHERE id = $1 FOR NO KEY UPDATE`, id)
}

// endJob stores the outcome of an ended job, adds its event, and returns the job.
func endJob(t *db.Tx, id int64, markets []event.MarketGap) (*Job, error) {
	jobs, err := db.Collect(t.Context(), t, ScanJob, jobByID, id)
	if err != nil {
		return nil, err
	}
	if len(jobs) == 0 {
		return nil, errors.New("ended job not found")
	}
	j := &jobs[0]
	j.Outcome, j.MarketGaps = j.outcomeWithGaps(markets), markets
	var gaps []byte
	if len(markets) > 0 {
		if gaps, err = json.Marshal(markets); err != nil {
			return nil, err
		}
	}
	if _, err := t.Exec(`UPDATE refresh_job SET outcome = $2, market_gaps = $3 WHERE id = $1`, id, string(j.Outcome), string(gaps)); err != nil {
		return nil, err
	}
	if j.State == Cancelled {
		return j, nil
	}
	return j, event.Add(t, jobEnded(j))
}

func jobEnded(j *Job) event.JobEnded {
	e := event.JobEnded{
		JobID: strconv.FormatInt(j.ID, 10), JobKind: string(j.Kind), Forced: j.Forced, RequestedBy: j.RequestedBy,
		TotalItems: j.Counts.Total, UpdatedItems: j.Counts.Updated, ChangedItems: j.Counts.Changed,
		NoQuoteItems: j.Counts.NoQuote, FailedItems: j.Counts.Failed, Outcome: string(j.Outcome),
		Gaps: j.Gaps(),
	}
	if !j.StartedAt.IsZero() {
		e.StartedAt = &j.StartedAt
	}
	if j.LastError != "" {
		e.LastError = &j.LastError
	}
	return e
}
