package refresh

import (
	"context"
	"database/sql"
	"fmt"

	"assay/internal/db"
	"assay/internal/event"
)

var fetchesBulk = db.NewBulk(addFetchesSQL, fetchColumns, addFetchesConflict)

// addFetches stores the counts of each market in a unit's response. Each file has its own rows.
// The counts of all units of names of a job are added up in one row per market.
func addFetches(t *db.Tx, u FetchUnit, markets []MarketFetch) error {
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
		return fmt.Errorf("store market counts: %w", err)
	}
	if err := noteFetches(t, u, markets); err != nil {
		return fmt.Errorf("store market state: %w", err)
	}
	return nil
}

// noteError stores the error of a unit as its job's last error. The error of an unsent
// request does not replace another error.
func noteError(t *db.Tx, job int64, u FetchUnit) error {
	_, err := t.Exec(`UPDATE refresh_job SET last_error = $2 WHERE id = $1 AND (last_error = '' OR $3)`, job, u.Error, u.ConcernsProvider())
	return err
}

// noteProvider stores the outcome of a request for a file of a provider, or for names if file
// is "". If failure is "", the request succeeded.
func noteProvider(t *db.Tx, provider, file, failure string) error {
	if failure != "" {
		return noteFailure(t, provider, file, failure)
	}
	if _, err := t.Exec(`INSERT INTO provider_state (provider, last_success) VALUES ($1, $2)
		ON CONFLICT (provider) DO UPDATE SET last_success = excluded.last_success`, provider, db.Micros(t.Now())); err != nil {
		return err
	}
	if err := noteRecovery(t, provider, file); err != nil {
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
	var failures int64
	if err := t.QueryRow(`INSERT INTO provider_file (provider, file, last_error, last_error_at, failures) VALUES ($1, $2, $3, $4, 1)
		ON CONFLICT (provider, file) DO UPDATE SET
			last_error = excluded.last_error, last_error_at = excluded.last_error_at, failures = provider_file.failures + 1
		RETURNING failures`, provider, file, failure, db.Micros(t.Now())).Scan(&failures); err != nil {
		return err
	}
	if file == "" || failures != degradedAfter {
		return nil
	}
	return event.Add(t, event.ProviderDown{Provider: provider, Why: event.WhyFetch, File: file, Detail: failure})
}

// degradedAfter is the number of consecutive failures of a file after which an event reports
// them. Failed requests for names add no event, because single names often fail.
const degradedAfter = 2

// noteRecovery adds an event after a success of a file whose failures an event has reported.
func noteRecovery(t *db.Tx, provider, file string) error {
	if file == "" {
		return nil
	}
	n, err := t.Exec(`UPDATE provider_file SET failures = 0 WHERE provider = $1 AND file = $2 AND failures >= $3`, provider, file, degradedAfter)
	if err != nil || n == 0 {
		return err
	}
	return event.Add(t, event.ProviderUp{Provider: provider, Why: event.WhyFetch, File: file, Detail: "the file can be fetched again"})
}

// outcomes selects the outcome of each market in each file of a job. A file that reuses the
// response of an earlier unit has the counts of that unit until the job has validated it. If
// a market has two rows, the later one is used.
const outcomes = `
SELECT unit_id, market_id, quotes, rejected, outcome FROM (
	SELECT 1 AS own, unit_id, market_id, quotes, rejected, outcome FROM market_fetch WHERE job_id = $1
	UNION ALL
	SELECT 0, u.id, f.market_id, f.quotes, f.rejected, f.outcome
	FROM fetch_unit u JOIN fetch_unit o ON o.id = u.blob_unit
		JOIN market_fetch f ON f.job_id = o.job_id AND f.unit_id = o.id
	WHERE u.job_id = $1 AND u.file <> '' AND u.blob_unit <> u.id) brought
ORDER BY own`

// readOutcomes returns the outcome of each market in each file of a job.
func readOutcomes(ctx context.Context, s *db.DB, job int64) (map[UnitMarket]MarketFetch, error) {
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

// StoreValidation stores the result of validating a job's responses and moves the job on to
// the estimate stage. It returns false, and stores nothing, if the job is not in its fetch
// stage.
func StoreValidation(t *db.Tx, job int64, results []ValidationResult, learned []Learned) (bool, error) {
	n, err := t.Exec(`UPDATE refresh_job SET stage = 'estimate', fetched_at = $2 WHERE id = $1 AND state = 'running' AND stage = 'fetch'`, job, db.Micros(t.Now()))
	if err != nil || n != 1 {
		return false, err
	}
	for _, v := range results {
		if err := storeValidation(t, job, v); err != nil {
			return false, err
		}
	}
	for _, l := range learned {
		if err := learn(t, job, l); err != nil {
			return false, fmt.Errorf("store levels of game %d: %w", l.AppID, err)
		}
	}
	return true, nil
}

func storeValidation(t *db.Tx, job int64, v ValidationResult) error {
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
		return noteMarket(t, v.Fetch.MarketID, v.Fetch.Outcome, v.Unit.Provider+": "+v.Unit.File+" has no quotes of this market")
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
			quotes = excluded.quotes, accepted_at = 0
		WHERE market_file.fetched_at <= excluded.fetched_at OR market_file.fetched_at > $7`, // another job may have fetched it later
		v.Fetch.MarketID, v.Unit.AppID, v.Unit.File, v.Unit.ResponseUnitID, db.Micros(v.Unit.FetchedAt), v.Fetch.Quotes, db.Micros(t.Now()))
	return err
}
