package refresh

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"assay/internal/db"
)

const (
	unitFacts = `id, job_id, provider, app_id, file, batch_from, batch_to, state, token, attempts,
	not_before, fetched_at, stated_at, blob_unit, requests, bytes, size, detached, error_kind, error`
	unitColumns = unitFacts + `, names`
)

func scanUnit(r *sql.Rows, u *Unit) error {
	var notBefore, fetched, stated, detached int64
	var names sql.RawBytes
	err := r.Scan(&u.ID, &u.JobID, &u.Provider, &u.AppID, &u.File, &u.BatchFrom, &u.BatchTo, &u.State, &u.Token, &u.Attempts,
		&notBefore, &fetched, &stated, &u.BlobUnit, &u.Requests, &u.Bytes, &u.Size, &detached, &u.ErrorKind, &u.Error, &names)
	if err != nil {
		return err
	}
	u.NotBefore, u.FetchedAt, u.StatedAt = db.Moment(notBefore), db.Moment(fetched), db.Moment(stated)
	u.Detached = detached != 0
	if len(names) == 0 {
		return nil
	}
	return json.Unmarshal(names, &u.Names)
}

// JobUnits returns a job's units, without names.
func JobUnits(ctx context.Context, s *db.DB, job int64) ([]Unit, error) {
	return db.Collect(ctx, s.Read, scanUnit, `SELECT `+unitFacts+`, NULL FROM fetch_unit WHERE job_id = $1 ORDER BY id`, job)
}

// BatchUnits returns the units that a batch waited for.
func BatchUnits(ctx context.Context, s *db.DB, b Batch) ([]Unit, error) {
	return db.Collect(ctx, s.Read, scanUnit, `
		SELECT `+unitColumns+` FROM fetch_unit
		WHERE job_id = $1 AND batch_from <= $2 AND batch_to >= $2 ORDER BY id`, b.JobID, b.Batch)
}

// NewestUnit returns the last done unit of a file whose answer is still stored,
// and stays stored for this transaction's plan.
func NewestUnit(t *db.Tx, provider string, app int32, file string) (*Unit, error) {
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
	insertBlobs = `INSERT INTO fetch_blob (unit_id, bucket, data) `
	blobColumns = "unit_id bigint, bucket bigint, data bytea"
)

// dropDetached cancels what ended jobs still mean to request, since a new one does.
func dropDetached(t *db.Tx) error {
	_, err := t.Exec(`UPDATE fetch_unit SET state = 'cancelled', token = token + 1
		WHERE detached <> 0 AND state IN ('pending', 'running') AND state = 'pending'`)
	return err
}

var unitsBulk = db.NewBulk(insertUnits, insertUnitColumns, "")

// InsertUnits adds units to a job's plan.
func InsertUnits(t *db.Tx, units []Unit) error {
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
		rows.Int(u.JobID, int64(u.AppID), int64(u.BatchFrom), int64(u.BatchTo), int64(max(u.Later, len(u.Names))),
			db.Micros(u.NotBefore), db.Micros(u.FetchedAt), db.Micros(u.StatedAt), u.BlobUnit)
		rows.Text(u.Provider, u.File, string(u.State), u.ErrorKind, u.Error)
		rows.Blob(names)
	}
	_, err := t.WriteRows(unitsBulk, rows)
	return err
}

// What is left to ask a paused provider is put off, however it came to be left:
// planned beside the pause, given back by a call under way, or by a restart.
const deferPaused = `
UPDATE fetch_unit SET state = 'deferred', error_kind = 'paused', error = provider || ': paused by an operator'
WHERE provider = $1 AND state IN ('pending', 'running') AND state = 'pending'
AND EXISTS (SELECT 1 FROM provider_state s WHERE s.provider = $1 AND s.paused)`

// A clock that is set back must not keep a unit from being requested for longer than
// anything is ever put off ($4); hence the second bound.
const claimUnit = `
UPDATE fetch_unit SET state = 'running', owner = $2, token = token + 1, attempts = attempts + 1, started_at = $3,
	requests = requests + reserved, reserved = $5
WHERE id = (
	SELECT u.id FROM fetch_unit u JOIN refresh_job j ON j.id = u.job_id
	WHERE u.provider = $1 AND u.state IN ('pending', 'running') AND u.state = 'pending'
	AND (u.not_before <= $3 OR u.not_before > $3 + $4)
	AND ($6 OR u.file IN `

// ClaimUnit takes a unit that may be requested now, those of missing prices
// first, or returns nil.
func ClaimUnit(t *db.Tx, c Claim) (*Unit, error) {
	if _, err := t.Exec(deferPaused, c.Provider); err != nil {
		return nil, err
	}
	units, err := db.Collect(t.Context(), t, scanUnit,
		claimUnit+t.Dialect.Texts(7)+`)
	ORDER BY u.detached, j.kind DESC, u.id LIMIT 1`+t.Dialect.SkipLocked("u")+`)
RETURNING `+unitColumns,
		c.Provider, c.Owner, db.Micros(t.Now()), Patience.Microseconds(), c.Reserve, c.Files == nil, t.Dialect.PackTexts(c.Files))
	if err != nil || len(units) == 0 {
		return nil, err
	}
	u := units[0]
	u.Requests, u.Bytes, u.Error, u.ErrorKind = 0, 0, "", "" // of this attempt
	u.Reserved = c.Reserve
	return &u, nil
}

// ReserveRequests notes more requests of a claimed unit, before they are sent, once
// those that were noted have been. So the count rises with what was sent, never falls,
// and after a kill it holds all that may have been.
func ReserveRequests(t *db.Tx, u Unit, more int64) (bool, error) {
	n, err := t.Exec(`UPDATE fetch_unit SET requests = requests + reserved, reserved = $3 WHERE id = $1 AND token = $2 AND state = 'running'`,
		u.ID, u.Token, more)
	return n == 1, err
}

// uncounted is how many requests of an attempt are not counted as sent yet.
func uncounted(u *Unit) int64 { return u.Requests - u.Counted }

// spend adds what an attempt cost to a unit that was taken from its owner: what was
// reserved counts as sent already. Where the token is still the owner's, its cost was
// stored with its end.
func spend(t *db.Tx, u Unit) error {
	_, err := t.Exec(`UPDATE fetch_unit SET requests = requests + $3, bytes = bytes + $4 WHERE id = $1 AND token <> $2`,
		u.ID, u.Token, max(0, uncounted(&u)-u.Reserved), u.Bytes)
	return err
}

const endUnit = `
UPDATE fetch_unit SET state = $3, fetched_at = $4, blob_unit = id, stated_at = $7,
	error_kind = CASE WHEN detached = 0 THEN $5 ELSE error_kind END, error = CASE WHEN detached = 0 THEN $6 ELSE error END,
	requests = requests + $8, reserved = 0, bytes = bytes + $9
WHERE id = $1 AND token = $2 AND state = 'running'
RETURNING detached`

var blobsBulk = db.NewBulk(insertBlobs, blobColumns, "")

// EndUnit stores how a unit ended and what it brought. Where the claim is no
// longer valid only what it cost is stored. To end a unit twice is the same as
// to end it once. Late reports that the unit's job went on without it.
func EndUnit(t *db.Tx, u Unit, markets []MarketFetch, blobs []Blob) (ended bool, late Late, err error) {
	if u.State != UnitDone {
		if err := lockJob(t, u.JobID); err != nil {
			return false, InTime, err
		}
	}
	err = t.QueryRow(endUnit, u.ID, u.Token, string(u.State), db.Micros(u.FetchedAt), u.ErrorKind, u.Error, db.Micros(u.StatedAt), uncounted(&u), u.Bytes).Scan(&late)
	if errors.Is(err, sql.ErrNoRows) {
		return false, InTime, spend(t, u)
	}
	if err != nil {
		return false, InTime, err
	}
	if u.State != UnitDone {
		if err := noteUnitRequested(t, u); err != nil || late != InTime {
			return err == nil, late, err
		}
		// That a provider was not asked is worth less than why it is not.
		return true, InTime, noteError(t, u.JobID, u)
	}
	rows := db.NewTable(blobColumns, len(blobs))
	for _, b := range blobs {
		rows.Int(u.ID, int64(b.Bucket))
		rows.Blob(b.Data)
	}
	if _, err := t.WriteRows(blobsBulk, rows); err != nil {
		return false, InTime, err
	}
	// From here on other units of the provider wait for the end of this one's.
	if err := noteUnitRequested(t, u); err != nil {
		return false, InTime, err
	}
	return true, late, addFetches(t, u, markets)
}

// A unit that ended a short while ago says that its host answers others. One that is
// running has failed to get a response so far.
const detachUnitsSQL = `
UPDATE fetch_unit SET detached = CASE WHEN state = 'running' THEN 2 ELSE 1 END, error_kind = $4, error = $5
WHERE job_id = $1 AND provider = $2 AND detached = 0 AND state IN ('pending', 'running')
AND NOT EXISTS (
	SELECT 1 FROM fetch_unit d WHERE d.job_id = $1 AND d.provider = $2 AND d.state = 'done' AND d.fetched_at >= $3
	AND ($6 OR d.file IN `

// detachUnits lets a job go on without what it still waits for of a silent host, and
// returns how many units that is. They remain open: their retries continue outside the
// job. A request that has no response until now is noted as a failure of its provider.
func detachUnits(t *db.Tx, s Silence) (int64, error) {
	if err := lockJob(t, s.JobID); err != nil {
		return 0, err
	}
	detached, err := db.Collect(t.Context(), t, scanDetached, detachUnitsSQL+t.Dialect.Texts(7)+`)) AND ($6 OR file IN `+t.Dialect.Texts(7)+`) RETURNING file, state`,
		s.JobID, s.Provider, db.Micros(t.Now().Add(-s.For)), s.Kind, s.Error, s.Files == nil, t.Dialect.PackTexts(s.Files))
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

func scanDetached(r *sql.Rows, u *Unit) error { return r.Scan(&u.File, &u.State) }

// waitingJobs returns the jobs that wait for what is not claimed of a provider's
// files; nil: any.
func waitingJobs(ctx context.Context, s *db.DB, provider string, files []string) ([]int64, error) {
	return db.Collect(ctx, s.Read, func(r *sql.Rows, id *int64) error { return r.Scan(id) }, `
		SELECT DISTINCT job_id FROM fetch_unit
		WHERE provider = $1 AND state IN ('pending', 'running') AND state = 'pending' AND detached = 0 AND ($2 OR file IN `+s.Dialect.Texts(3)+`)
		ORDER BY job_id`, provider, files == nil, s.Dialect.PackTexts(files))
}

const (
	addFetchesSQL = `
INSERT INTO market_fetch (job_id, unit_id, market_id, fetched_at, quotes, rejected, requests, bytes, outcome) `
	fetchColumns = "job_id bigint, unit_id bigint, market_id bigint, fetched_at bigint, quotes bigint, rejected bigint, " +
		"requests bigint, bytes bigint, outcome text"
	addFetchesConflict = `
ON CONFLICT (job_id, unit_id, market_id) DO UPDATE SET
	fetched_at = excluded.fetched_at, quotes = market_fetch.quotes + excluded.quotes,
	rejected = market_fetch.rejected + excluded.rejected, requests = market_fetch.requests + excluded.requests,
	bytes = market_fetch.bytes + excluded.bytes, outcome = excluded.outcome`
)

var fetchesBulk = db.NewBulk(addFetchesSQL, fetchColumns, addFetchesConflict)

// addFetches notes what a unit brought of each market: for itself if it is a
// file, else in the sum of its provider's units.
func addFetches(t *db.Tx, u Unit, markets []MarketFetch) error {
	unit := u.ID
	if u.File == "" {
		unit = 0
	}
	rows := db.NewTable(fetchColumns, len(markets))
	for _, m := range markets {
		rows.Int(u.JobID, unit, m.MarketID, db.Micros(u.FetchedAt), m.Quotes, m.Rejected, u.Requests, u.Bytes)
		rows.Text(string(m.Outcome))
	}
	if _, err := t.WriteRows(fetchesBulk, rows); err != nil {
		return fmt.Errorf("market fetch: %w", err)
	}
	if err := noteFetches(t, u, markets); err != nil {
		return fmt.Errorf("market state: %w", err)
	}
	return nil
}

// noteError notes why a unit failed as its job's last error. What was not asked
// does not hide why it was not.
func noteError(t *db.Tx, job int64, u Unit) error {
	_, err := t.Exec(`UPDATE refresh_job SET last_error = $2 WHERE id = $1 AND (last_error = '' OR $3)`, job, u.Error, u.ConcernsProvider())
	return err
}

// SplitUnit makes what is left of a unit that was just ended units of their own.
func SplitUnit(t *db.Tx, u Unit, rest []Unit) error {
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

// ReturnUnit gives a unit back.
func ReturnUnit(t *db.Tx, u Unit) error {
	n, err := t.Exec(`
		UPDATE fetch_unit SET state = 'pending', not_before = $3, requests = requests + $4, reserved = 0, bytes = bytes + $5
		WHERE id = $1 AND token = $2 AND state = 'running'`,
		u.ID, u.Token, db.Micros(u.NotBefore), uncounted(&u), u.Bytes)
	if err != nil || n == 1 {
		return err
	}
	return spend(t, u)
}

// NoteProvider notes that a fetch of a provider's file, or for "" a request for names,
// succeeded or, with a failure, why it did not.
func NoteProvider(t *db.Tx, provider, file, failure string) error {
	if failure != "" {
		return noteFailure(t, provider, file, failure)
	}
	if _, err := t.Exec(`INSERT INTO provider_state (provider, last_success) VALUES ($1, $2)
		ON CONFLICT (provider) DO UPDATE SET last_success = excluded.last_success`, provider, db.Micros(t.Now())); err != nil {
		return err
	}
	_, err := t.Exec(`INSERT INTO provider_file (provider, file, last_success) VALUES ($1, $2, $3)
		ON CONFLICT (provider, file) DO UPDATE SET last_success = excluded.last_success, failures = 0`, provider, file, db.Micros(t.Now()))
	return err
}

func noteFailure(t *db.Tx, provider, file, failure string) error {
	if _, err := t.Exec(`INSERT INTO provider_state (provider, last_error, last_error_at) VALUES ($1, $2, $3)
		ON CONFLICT (provider) DO UPDATE SET last_error = excluded.last_error, last_error_at = excluded.last_error_at`,
		provider, failure, db.Micros(t.Now())); err != nil {
		return err
	}
	_, err := t.Exec(`INSERT INTO provider_file (provider, file, last_error, last_error_at, failures) VALUES ($1, $2, $3, $4, 1)
		ON CONFLICT (provider, file) DO UPDATE SET
			last_error = excluded.last_error, last_error_at = excluded.last_error_at, failures = provider_file.failures + 1`,
		provider, file, failure, db.Micros(t.Now()))
	return err
}

// A file that is answered by an earlier unit's blobs brought what that unit did,
// until the job itself has validated it. The later row of a market counts.
const outcomes = `
SELECT unit_id, market_id, quotes, rejected, outcome FROM (
	SELECT 1 AS own, unit_id, market_id, quotes, rejected, outcome FROM market_fetch WHERE job_id = $1
	UNION ALL
	SELECT 0, u.id, f.market_id, f.quotes, f.rejected, f.outcome
	FROM fetch_unit u JOIN fetch_unit o ON o.id = u.blob_unit
		JOIN market_fetch f ON f.job_id = o.job_id AND f.unit_id = o.id
	WHERE u.job_id = $1 AND u.file <> '' AND u.blob_unit <> u.id) brought
ORDER BY own`

// ReadOutcomes returns what became of each market of each file of a job.
func ReadOutcomes(ctx context.Context, s *db.DB, job int64) (map[UnitMarket]MarketFetch, error) {
	type row struct {
		unit int64
		m    MarketFetch
	}
	rows, err := db.Collect(ctx, s.Read, func(r *sql.Rows, v *row) error {
		return r.Scan(&v.unit, &v.m.MarketID, &v.m.Quotes, &v.m.Rejected, &v.m.Outcome)
	}, outcomes, job)
	if err != nil {
		return nil, err
	}
	out := make(map[UnitMarket]MarketFetch, len(rows))
	for _, v := range rows {
		out[UnitMarket{Unit: v.unit, Market: v.m.MarketID}] = v.m
	}
	return out, nil
}

// MarketFiles returns the newest good answers of all markets' files.
func MarketFiles(ctx context.Context, s *db.DB) ([]MarketFile, error) {
	return db.Collect(ctx, s.Read, func(r *sql.Rows, f *MarketFile) error {
		var fetched, accepted int64
		err := r.Scan(&f.MarketID, &f.AppID, &f.File, &f.UnitID, &fetched, &f.Quotes, &f.Quarantine, &accepted)
		f.FetchedAt, f.AcceptedAt = db.Moment(fetched), db.Moment(accepted)
		return err
	}, `SELECT market_id, app_id, file, unit_id, fetched_at, quotes, quarantine, accepted_at FROM market_file
		ORDER BY market_id, app_id, file`)
}

// sameResponse reports whether two units brought the same bytes, in all parts.
func sameResponse(ctx context.Context, s *db.DB, a, b int64) (same bool, err error) {
	err = s.Read.QueryRowContext(ctx, `
		SELECT (SELECT count(*) FROM fetch_blob WHERE unit_id = $1) = (SELECT count(*) FROM fetch_blob WHERE unit_id = $2)
			AND NOT EXISTS (SELECT 1 FROM fetch_blob o WHERE o.unit_id = $1 AND NOT EXISTS (
				SELECT 1 FROM fetch_blob n WHERE n.unit_id = $2 AND n.bucket = o.bucket AND n.data = o.data))`, a, b).Scan(&same)
	return same, err
}

// Blobs calls fn for stored answers, ordered by bucket and unit.
func Blobs(ctx context.Context, s *db.DB, units, buckets []int64, fn func(Blob) error) (err error) {
	rows, err := s.Read.QueryContext(ctx, `
		SELECT unit_id, bucket, data FROM fetch_blob
		WHERE unit_id IN `+s.Dialect.IDs(1)+` AND bucket IN `+s.Dialect.IDs(2)+`
		ORDER BY bucket, unit_id`, s.Dialect.PackIDs(units), s.Dialect.PackIDs(buckets))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var b Blob
		var data sql.RawBytes
		if err := rows.Scan(&b.Unit, &b.Bucket, &data); err != nil {
			return err
		}
		b.Data = data
		if err := fn(b); err != nil {
			return err
		}
	}
	return rows.Err()
}

// StoreValidation stores what became of the markets of a job's files and what was learned of
// them, and lets the job go on to estimate.
func StoreValidation(t *db.Tx, job int64, verdicts []Verdict, learned []Learned) (bool, error) {
	n, err := t.Exec(`UPDATE refresh_job SET stage = 'estimate' WHERE id = $1 AND state = 'running' AND stage = 'fetch'`, job)
	if err != nil || n != 1 {
		return false, err
	}
	for _, v := range verdicts {
		if err := storeVerdict(t, job, v); err != nil {
			return false, err
		}
	}
	for _, l := range learned {
		if err := learn(t, job, l); err != nil {
			return false, fmt.Errorf("levels of game %d: %w", l.AppID, err)
		}
	}
	return true, nil
}

func storeVerdict(t *db.Tx, job int64, v Verdict) error {
	_, err := t.Exec(`
		INSERT INTO market_fetch (job_id, unit_id, market_id, fetched_at, quotes, rejected, requests, bytes, outcome)
		VALUES ($1, $2, $3, $4, $5, $6, 0, 0, $7)
		ON CONFLICT (job_id, unit_id, market_id) DO UPDATE SET outcome = excluded.outcome`,
		job, v.Unit.ID, v.Fetch.MarketID, db.Micros(v.Unit.FetchedAt), v.Fetch.Quotes, v.Fetch.Rejected, string(v.Fetch.Outcome))
	if err != nil || v.Reused {
		return err
	}
	if v.Quarantine != "" {
		if err := quarantine(t, v); err != nil {
			return err
		}
		if err := noteMarket(t, v.Fetch.MarketID, OutcomeQuarantined, v.Quarantine); err != nil {
			return err
		}
		_, err := t.Exec(`UPDATE refresh_job SET last_error = $2 WHERE id = $1`, job, v.Quarantine)
		return err
	}
	if v.Fetch.Outcome != OutcomeOK {
		return noteMarket(t, v.Fetch.MarketID, v.Fetch.Outcome, v.Unit.Provider+": "+v.Unit.File+" holds nothing of this market")
	}
	if _, err := t.Exec(`UPDATE market_state SET last_success = $2 WHERE market_id = $1`, v.Fetch.MarketID, db.Micros(v.Unit.FetchedAt)); err != nil {
		return err
	}
	if err := endQuarantine(t, v); err != nil {
		return err
	}
	_, err = t.Exec(`
		INSERT INTO market_file (market_id, app_id, file, unit_id, fetched_at, quotes) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (market_id, app_id, file) DO UPDATE SET unit_id = excluded.unit_id, fetched_at = excluded.fetched_at,
			quotes = excluded.quotes, accepted_at = 0`,
		v.Fetch.MarketID, v.Unit.AppID, v.Unit.File, v.Unit.BlobUnit, db.Micros(v.Unit.FetchedAt), v.Fetch.Quotes)
	return err
}

// blobLock is the number of an advisory lock.
const blobLock = 0x61737361<<32 + 2

// lockBlobs waits for the transactions that are about to use stored answers
// again, and keeps others from it.
func lockBlobs(t *db.Tx) error {
	return t.ExecPostgres(`SELECT pg_advisory_xact_lock($1)`, int64(blobLock))
}

// keepBlobs keeps stored answers from being dropped until the transaction ends.
func keepBlobs(t *db.Tx) error {
	return t.ExecPostgres(`SELECT pg_advisory_xact_lock_shared($1)`, int64(blobLock))
}
