package refresh

import (
	"context"
	"database/sql"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"assay/internal/db"
)

const (
	unitFacts = `id, job_id, provider, app_id, file, batch_from, batch_to, state, token, attempts,
	not_before, fetched_at, stated_at, blob_unit, requests, bytes, size, detached, silent, error_kind, error`
	unitColumns = unitFacts + `, names`
)

// DetachedBackgroundSQL is DetachedBackground as text for SQL.
const DetachedBackgroundSQL = "3"

func scanUnit(r *sql.Rows, u *FetchUnit) error {
	var notBefore, fetched, stated, detached int64
	var silent, names sql.RawBytes
	err := r.Scan(&u.ID, &u.JobID, &u.Provider, &u.AppID, &u.File, &u.BatchFrom, &u.BatchTo, &u.State, &u.Token, &u.Attempts,
		&notBefore, &fetched, &stated, &u.ResponseUnitID, &u.Requests, &u.Bytes, &u.Size, &detached, &silent, &u.ErrorKind, &u.Error, &names)
	if err != nil {
		return err
	}
	u.NotBefore, u.FetchedAt, u.StatedAt = db.Moment(notBefore), db.Moment(fetched), db.Moment(stated)
	u.Detached, u.Background = detached != 0, detached == int64(DetachedBackground)
	if len(silent) > 0 {
		if err := json.Unmarshal(silent, &u.Silent); err != nil {
			return err
		}
	}
	if len(names) == 0 {
		return nil
	}
	return json.Unmarshal(names, &u.Names)
}

// jobUnits returns a job's units, without their names.
func jobUnits(ctx context.Context, s *db.DB, job int64) ([]FetchUnit, error) {
	return db.Collect(ctx, s.Read, scanUnit, `SELECT `+unitFacts+`, NULL FROM fetch_unit WHERE job_id = $1 ORDER BY id`, job)
}

// batchUnits returns the units that a batch waited for.
func batchUnits(ctx context.Context, s *db.DB, b Batch) ([]FetchUnit, error) {
	return db.Collect(ctx, s.Read, scanUnit, `
		SELECT `+unitColumns+` FROM fetch_unit
		WHERE job_id = $1 AND batch_from <= $2 AND batch_to >= $2 ORDER BY id`, b.JobID, b.Batch)
}

// newestUnit returns the last completed unit of a file that still has a stored response, or
// nil. The response is not deleted before the transaction ends.
func newestUnit(t *db.Tx, provider string, app int32, file string) (*FetchUnit, error) {
	if err := keepBlobs(t); err != nil {
		return nil, err
	}
	units, err := db.Collect(t.Context(), t, scanUnit, `
		SELECT `+unitColumns+` FROM fetch_unit u
		WHERE provider = $1 AND app_id = $2 AND file = $3 AND file <> '' AND state = 'done'
		AND EXISTS (SELECT 1 FROM fetch_blob b WHERE b.unit_id = u.blob_unit)
		ORDER BY fetched_at DESC, id DESC LIMIT 1`, provider, app, file)
	if err != nil || len(units) == 0 {
		return nil, err
	}
	return &units[0], nil
}

const (
	insertUnits = `
INSERT INTO fetch_unit (job_id, app_id, batch_from, batch_to, size, not_before, fetched_at, stated_at, blob_unit,
	provider, file, state, error_kind, error, names) `
	insertUnitColumns = "job_id bigint, app_id bigint, batch_from bigint, batch_to bigint, size bigint, not_before bigint, fetched_at bigint, " +
		"stated_at bigint, blob_unit bigint, provider text, file text, state text, error_kind text, error text, names bytea"
)

// cancelDetached cancels the pending units that earlier jobs no longer wait for, because the new
// job requests the same files and names.
func cancelDetached(t *db.Tx) error {
	_, err := t.Exec(`UPDATE fetch_unit SET state = 'cancelled', token = token + 1
		WHERE detached NOT IN (0, ` + DetachedBackgroundSQL + `) AND state IN ('pending', 'running') AND state = 'pending'`)
	return err
}

var unitsBulk = db.NewBulk(insertUnits, insertUnitColumns, "")

// InsertUnits adds units to the plan of a job.
func InsertUnits(t *db.Tx, units []FetchUnit) error {
	rows := db.NewTable(insertUnitColumns, len(units))
	for i := range units {
		u := &units[i]
		var names []byte
		if len(u.Names) > 0 {
			var err error
			if names, err = json.Marshal(u.Names); err != nil {
				return err
			}
		}
		rows.Int(u.JobID, int64(u.AppID), int64(u.BatchFrom), int64(u.BatchTo), int64(max(u.DeferredNames, len(u.Names))),
			db.Micros(u.NotBefore), db.Micros(u.FetchedAt), db.Micros(u.StatedAt), u.ResponseUnitID)
		rows.Text(u.Provider, u.File, string(u.State), u.ErrorKind, u.Error)
		rows.Blob(names)
	}
	_, err := t.WriteRows(unitsBulk, rows)
	return err
}

// deferPaused defers the pending units of a paused provider. pauseProvider has deferred the
// earlier units, so these were planned or released after the pause began.
const deferPaused = `
UPDATE fetch_unit SET state = 'deferred', error_kind = 'paused', error = provider || ': paused by an operator'
WHERE provider = $1 AND state IN ('pending', 'running') AND state = 'pending'
AND detached <> ` + DetachedBackgroundSQL + `
AND EXISTS (SELECT 1 FROM provider_state s WHERE s.provider = $1 AND s.paused)`

// isDue is the condition that a unit does not wait at the time $2. It ignores a wait longer than
// $3, the longest valid wait, because the clock has then been set back.
const isDue = `(u.not_before <= $2 OR u.not_before > $2 + $3)`

// claimUnit claims the next unit.
const claimUnit = `
UPDATE fetch_unit SET state = 'running', owner = $4, token = token + 1, attempts = attempts + 1, started_at = $2,
	requests = requests + reserved, reserved = $5
WHERE id = (
	SELECT u.id FROM fetch_unit u JOIN refresh_job j ON j.id = u.job_id
	WHERE u.provider = $1 AND u.state IN ('pending', 'running') AND u.state = 'pending'
	AND ` + isDue + `
	AND NOT EXISTS (SELECT 1 FROM provider_state s WHERE s.provider = $1 AND s.paused)
	AND ($6 OR u.file IN `

// hasWork reports whether ClaimUnit may find or defer a unit. It costs one query instead of a
// transaction. All workers of all processes look for units at the same time, and most find none.
func hasWork(ctx context.Context, s *db.DB, c Claim) (found bool, err error) {
	if c.Background {
		return true, nil
	}
	err = s.Read.QueryRowContext(ctx, `
		SELECT EXISTS (
			SELECT 1 FROM fetch_unit u
			WHERE u.provider = $1 AND u.state IN ('pending', 'running') AND u.state = 'pending'
			AND (`+isDue+` OR u.detached <> `+DetachedBackgroundSQL+` AND EXISTS (SELECT 1 FROM provider_state s WHERE s.provider = $1 AND s.paused))
			AND ($4 OR u.file IN `+s.Dialect.Texts(5)+`))`,
		c.Provider, db.Micros(s.Clock()), Patience.Microseconds(), c.Files == nil, s.Dialect.EncodeTexts(c.Files)).Scan(&found)
	return found, err
}

// ClaimUnit claims a unit that can be requested now, or returns nil. Units of missing-price
// jobs come first. If there is no unit and Background is set, ClaimUnit creates a unit of the
// next name of the background fetch.
func ClaimUnit(t *db.Tx, c Claim) (*FetchUnit, error) {
	units, err := db.Collect(t.Context(), t, scanUnit,
		claimUnit+t.Dialect.Texts(7)+`)
	ORDER BY u.detached, j.kind DESC, u.id LIMIT 1`+t.Dialect.SkipLocked("u")+`)
RETURNING `+unitColumns,
		c.Provider, db.Micros(t.Now()), Patience.Microseconds(), c.Owner, c.Reserve, c.Files == nil, t.Dialect.EncodeTexts(c.Files))
	if err != nil {
		return nil, err
	}
	if len(units) == 0 {
		if _, err := t.Exec(deferPaused, c.Provider); err != nil || !c.Background {
			return nil, err
		}
		return claimName(t, c)
	}
	u := units[0]
	u.Requests, u.Bytes, u.Error, u.ErrorKind = 0, 0, "", "" // of this attempt
	u.Reserved = c.Reserve
	return &u, nil
}

// reserveRequests counts further requests of a claimed unit before they are sent. So if the
// process is killed, the count includes all requests that may have been sent. reserveRequests
// returns false if the claim is no longer valid.
func reserveRequests(t *db.Tx, u FetchUnit, more int64) (bool, error) {
	n, err := t.Exec(`UPDATE fetch_unit SET requests = requests + reserved, reserved = $3 WHERE id = $1 AND token = $2 AND state = 'running'`,
		u.ID, u.Token, more)
	return n == 1, err
}

// uncounted returns how many requests of an attempt are not counted yet.
func uncounted(u *FetchUnit) int64 { return u.Requests - u.Counted }

// spend adds the cost of an attempt to a unit that another process has claimed since.
// Reserved requests are counted already. If the token is unchanged, the cost was stored when
// the unit ended.
func spend(t *db.Tx, u FetchUnit) error {
	_, err := t.Exec(`UPDATE fetch_unit SET requests = requests + $3, bytes = bytes + $4 WHERE id = $1 AND token <> $2`,
		u.ID, u.Token, max(0, uncounted(&u)-u.Reserved), u.Bytes)
	return err
}

const endUnitSQL = `
UPDATE fetch_unit SET state = $3, fetched_at = $4, blob_unit = id, stated_at = $7,
	error_kind = CASE WHEN detached = 0 THEN $5 ELSE error_kind END, error = CASE WHEN detached = 0 THEN $6 ELSE error END,
	requests = requests + $8, reserved = 0, bytes = bytes + $9, silent = $10
WHERE id = $1 AND token = $2 AND state = 'running'
RETURNING detached`

// endUnit stores the outcome and the response of a unit. If the claim is no longer valid, it
// stores only the cost. It is idempotent. The returned Detachment shows whether the unit's
// job has continued without it.
func endUnit(t *db.Tx, u FetchUnit, markets []MarketFetch, blobs []Blob) (ended bool, detachment Detachment, err error) {
	if u.State != UnitDone {
		if err := lockJob(t, u.JobID); err != nil {
			return false, NotDetached, err
		}
	}
	err = t.QueryRow(endUnitSQL, u.ID, u.Token, string(u.State), db.Micros(u.FetchedAt), u.ErrorKind, u.Error, db.Micros(u.StatedAt), uncounted(&u), u.Bytes, encodeSilent(markets)).Scan(&detachment)
	if found, err := db.Found(err); err != nil {
		return false, NotDetached, err
	} else if !found {
		return false, NotDetached, spend(t, u)
	}
	if u.State != UnitDone {
		if err := noteUnitRequested(t, u); err != nil || detachment != NotDetached {
			return err == nil, detachment, err
		}
		// A request that was not sent does not replace the error of another request.
		return true, NotDetached, noteError(t, u.JobID, u)
	}
	rows := db.NewTable(blobColumns, len(blobs))
	for _, b := range blobs {
		rows.Int(u.ID, int64(b.Bucket))
		rows.Blob(b.Data)
	}
	if _, err := t.WriteRows(blobsBulk, rows); err != nil {
		return false, NotDetached, err
	}
	// From here on, other units of the provider wait for the end of this transaction.
	if err := noteUnitRequested(t, u); err != nil {
		return false, NotDetached, err
	}
	return true, detachment, addFetches(t, u, markets)
}

// encodeSilent encodes the ids of the markets that a response lacks. It returns "" for none.
func encodeSilent(markets []MarketFetch) string {
	var b []byte
	for i := range markets {
		if markets[i].Outcome == OutcomeSilent {
			b = strconv.AppendInt(append(b, ','), markets[i].MarketID, 10)
		}
	}
	if b == nil {
		return ""
	}
	return "[" + string(b[1:]) + "]"
}

// detachUnitsSQL detaches a job from its open units of a host. It changes nothing if a unit of
// the host succeeded recently, because the host then responds. Detachment defines the stored
// values.
const detachUnitsSQL = `
UPDATE fetch_unit SET detached = CASE WHEN state = 'running' THEN 2 ELSE 1 END, error_kind = $4, error = $5
WHERE job_id = $1 AND provider = $2 AND detached = 0 AND state IN ('pending', 'running')
AND NOT EXISTS (
	SELECT 1 FROM fetch_unit d WHERE d.job_id = $1 AND d.provider = $2 AND d.state = 'done' AND d.fetched_at >= $3
	AND ($6 OR d.file IN `

// detachUnits detaches a job from the open units of an unresponsive host, and returns their
// number. The units stay open, and their retries continue without the job. Each file with a
// running unit counts as a failure of the provider.
func detachUnits(t *db.Tx, s UnresponsiveHost) (int64, error) {
	if err := lockJob(t, s.JobID); err != nil {
		return 0, err
	}
	detached, err := db.Collect(t.Context(), t, scanDetached, detachUnitsSQL+t.Dialect.Texts(7)+`)) AND ($6 OR file IN `+t.Dialect.Texts(7)+`) RETURNING file, state`,
		s.JobID, s.Provider, db.Micros(t.Now().Add(-s.For)), s.Kind, s.Error, s.Files == nil, t.Dialect.EncodeTexts(s.Files))
	if err != nil || len(detached) == 0 {
		return 0, err
	}
	requested := map[string]bool{}
	for i := range detached {
		if detached[i].State == UnitRunning {
			requested[detached[i].File] = true
		}
	}
	for _, file := range slices.Sorted(maps.Keys(requested)) {
		if err := noteFailure(t, s.Provider, file, s.Error); err != nil {
			return 0, err
		}
	}
	_, err = t.Exec(`UPDATE refresh_job SET last_error = $2 WHERE id = $1`, s.JobID, s.Error)
	return int64(len(detached)), err
}

func scanDetached(r *sql.Rows, u *FetchUnit) error { return r.Scan(&u.File, &u.State) }

// waitingJobs returns the jobs with pending units of a provider's files. With nil files it
// considers all units of the provider.
func waitingJobs(ctx context.Context, s *db.DB, provider string, files []string) ([]int64, error) {
	return db.Collect(ctx, s.Read, func(r *sql.Rows, id *int64) error { return r.Scan(id) }, `
		SELECT DISTINCT job_id FROM fetch_unit
		WHERE provider = $1 AND state IN ('pending', 'running') AND state = 'pending' AND detached = 0 AND ($2 OR file IN `+s.Dialect.Texts(3)+`)
		ORDER BY job_id`, provider, files == nil, s.Dialect.EncodeTexts(files))
}

// splitUnit inserts further units for the names of an ended unit that had no response.
func splitUnit(t *db.Tx, u FetchUnit, rest []FetchUnit) error {
	if len(rest) == 0 {
		return nil
	}
	kept, err := json.Marshal(u.Names)
	if err != nil {
		return err
	}
	if _, err := t.Exec(`UPDATE fetch_unit SET names = $2, size = $3 WHERE id = $1`, u.ID, kept, len(u.Names)); err != nil {
		return err
	}
	for _, r := range rest {
		if r.State == UnitPending {
			continue
		}
		if err := noteError(t, u.JobID, r); err != nil {
			return err
		}
	}
	return InsertUnits(t, rest)
}

// returnUnit releases a claimed unit.
func returnUnit(t *db.Tx, u FetchUnit) error {
	n, err := t.Exec(`
		UPDATE fetch_unit SET state = 'pending', not_before = $3, requests = requests + $4, reserved = 0, bytes = bytes + $5
		WHERE id = $1 AND token = $2 AND state = 'running'`,
		u.ID, u.Token, db.Micros(u.NotBefore), uncounted(&u), u.Bytes)
	if err != nil || n == 1 {
		return err
	}
	return spend(t, u)
}
