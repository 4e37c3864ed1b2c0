package refresh

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"assay/internal/db"
	"assay/internal/event"
)

// quarantine puts a market's file in quarantine after validation refused the response. It adds
// an event, unless the file was in quarantine already.
func quarantine(t *db.Tx, v ValidationResult) error {
	refused, err := json.Marshal(v.Refused)
	if err != nil {
		return err
	}
	began, err := t.Exec(`
		INSERT INTO market_file (market_id, app_id, file, quarantine, quarantined_since) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (market_id, app_id, file) DO UPDATE SET quarantine = excluded.quarantine, quarantined_since = excluded.quarantined_since
		WHERE market_file.quarantine = ''`, v.Fetch.MarketID, v.Unit.AppID, v.Unit.File, v.Quarantine, db.Micros(t.Now()))
	if err != nil {
		return err
	}
	if _, err := t.Exec(`
		UPDATE market_file SET quarantine = $4, refused = $5, accepted_at = 0
		WHERE market_id = $1 AND app_id = $2 AND file = $3`,
		v.Fetch.MarketID, v.Unit.AppID, v.Unit.File, v.Quarantine, string(refused)); err != nil || began == 0 {
		return err
	}
	down, err := quarantineEvent(t, v, v.Quarantine)
	if err != nil {
		return err
	}
	return event.Add(t, down)
}

// endQuarantine ends the quarantine of a market's file after a good response.
func endQuarantine(t *db.Tx, v ValidationResult) error {
	ended, err := t.Exec(`
		UPDATE market_file SET quarantine = '', quarantined_since = 0, refused = ''
		WHERE market_id = $1 AND app_id = $2 AND file = $3 AND quarantine <> ''`, v.Fetch.MarketID, v.Unit.AppID, v.Unit.File)
	if err != nil || ended == 0 {
		return err
	}
	up, err := quarantineEvent(t, v, "the response is accepted again")
	if err != nil {
		return err
	}
	return event.Add(t, event.ProviderUp(up))
}

func quarantineEvent(t *db.Tx, v ValidationResult, detail string) (e event.ProviderDown, err error) {
	e = event.ProviderDown{Provider: v.Unit.Provider, Why: event.WhyQuarantine, AppID: v.Unit.AppID, File: v.Unit.File, Detail: detail}
	err = t.QueryRow(`SELECT key FROM market WHERE id = $1`, v.Fetch.MarketID).Scan(&e.Market)
	return e, err
}

// Quarantine is a market's file whose last response was refused.
type Quarantine struct {
	Market  string
	AppID   int32
	File    string
	Reason  string
	Since   time.Time
	Refused *Comparison // nil: unknown
}

// Quarantines returns the quarantined files of a provider's markets.
func Quarantines(ctx context.Context, s *db.DB, provider string) ([]Quarantine, error) {
	return db.Collect(ctx, s.Read, func(r *sql.Rows, q *Quarantine) error {
		var since int64
		var refused []byte
		if err := r.Scan(&q.Market, &q.AppID, &q.File, &q.Reason, &since, &refused); err != nil {
			return err
		}
		q.Since = db.Moment(since)
		if len(refused) == 0 {
			return nil
		}
		return json.Unmarshal(refused, &q.Refused)
	}, `SELECT m.key, f.app_id, f.file, f.quarantine, f.quarantined_since, f.refused
		FROM market m JOIN market_file f ON f.market_id = m.id
		WHERE m.provider = $1 AND f.quarantine <> '' ORDER BY m.key, f.app_id, f.file`, provider)
}
