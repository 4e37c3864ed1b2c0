package refresh

import (
	"context"
	"database/sql"
	"time"

	"assay/internal/db"
)

const (
	noteFetchesSQL = `
INSERT INTO market_state (market_id, job_id, fetched_at, quotes, rejected, last_success, outcome) `
	fetchedColumns      = "market_id bigint, job_id bigint, fetched_at bigint, quotes bigint, rejected bigint, last_success bigint, outcome text"
	noteFetchesConflict = `
ON CONFLICT (market_id) DO UPDATE SET job_id = excluded.job_id, fetched_at = excluded.fetched_at, outcome = excluded.outcome,
	quotes = excluded.quotes + CASE WHEN market_state.job_id = excluded.job_id THEN market_state.quotes ELSE 0 END,
	rejected = excluded.rejected + CASE WHEN market_state.job_id = excluded.job_id THEN market_state.rejected ELSE 0 END,
	last_success = CASE WHEN excluded.last_success > 0 THEN excluded.last_success ELSE market_state.last_success END`
)

var fetchedBulk = db.NewBulk(noteFetchesSQL, fetchedColumns, noteFetchesConflict)

// noteFetches adds the counts of a unit to the state of its markets. The counts of all units of
// a job are added up. For a file, only validation decides whether the response is good.
func noteFetches(t *db.Tx, u FetchUnit, markets []MarketFetch) error {
	rows := db.NewTable(fetchedColumns, len(markets))
	for _, m := range markets {
		success := int64(0)
		if u.File == "" && m.Outcome == OutcomeOK {
			success = db.Micros(u.FetchedAt)
		}
		rows.Int(m.MarketID, u.JobID, db.Micros(u.FetchedAt), m.Quotes, m.Rejected, success)
		rows.Text(string(m.Outcome))
	}
	_, err := t.WriteRows(fetchedBulk, rows)
	return err
}

// noteMarkets stores why markets have no response.
func noteMarkets(t *db.Tx, markets []int64, failure string) error {
	for _, id := range markets {
		if _, err := t.Exec(`
			INSERT INTO market_state (market_id, last_error, last_error_at) VALUES ($1, $2, $3)
			ON CONFLICT (market_id) DO UPDATE SET last_error = excluded.last_error, last_error_at = excluded.last_error_at`,
			id, failure, db.Micros(t.Now())); err != nil {
			return err
		}
	}
	return nil
}

// noteMarket stores the outcome of a market's unusable response.
func noteMarket(t *db.Tx, id int64, outcome Outcome, failure string) error {
	if err := noteMarkets(t, []int64{id}, failure); err != nil {
		return err
	}
	_, err := t.Exec(`UPDATE market_state SET outcome = $2 WHERE market_id = $1`, id, string(outcome))
	return err
}

// MarketState is the state of a market's last responses. It remains when the jobs that
// requested them are deleted.
type MarketState struct {
	MarketID         int64
	FetchedAt        time.Time
	Quotes, Rejected int64  // of the last job that requested the market
	Outcome          string // of the last response
	LastSuccess      time.Time
	LastError        string
	LastErrorAt      time.Time
	Quarantine       string
	QuarantinedSince time.Time
}

// MarketStates returns the state and the quarantine of each market.
func MarketStates(ctx context.Context, s *db.DB) (map[int64]MarketState, error) {
	states, err := db.Collect(ctx, s.Read, func(r *sql.Rows, m *MarketState) error {
		var fetched, success, failed, since int64
		err := r.Scan(&m.MarketID, &fetched, &m.Quotes, &m.Rejected, &m.Outcome, &success, &m.LastError, &failed, &m.Quarantine, &since)
		m.FetchedAt, m.LastSuccess, m.LastErrorAt, m.QuarantinedSince = db.Moment(fetched), db.Moment(success), db.Moment(failed), db.Moment(since)
		return err
	}, `SELECT m.market_id, m.fetched_at, m.quotes, m.rejected, m.outcome, m.last_success, m.last_error, m.last_error_at,
			coalesce(f.quarantine, ''), coalesce(f.quarantined_since, 0)
		FROM market_state m LEFT JOIN market_file f ON f.market_id = m.market_id AND f.quarantine <> ''
		ORDER BY m.market_id, f.quarantined_since DESC`)
	out := make(map[int64]MarketState, len(states))
	for _, m := range states {
		out[m.MarketID] = m
	}
	return out, err
}
