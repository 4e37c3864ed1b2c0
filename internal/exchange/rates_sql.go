package exchange

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"assay/internal/db"
	"assay/internal/money"
	"assay/internal/pricing"
)

// storedRate is an element of the JSON array in rate_set.rates.
type storedRate struct {
	Currency money.Currency `json:"currency"`
	Rate     money.Rate     `json:"rate"`
	Date     string         `json:"date"`
}

// RateSet returns the id of a set of rates. It stores the set if it is new. The id of the
// empty set is 0.
func RateSet(t *db.Tx, rates pricing.Rates) (int64, error) {
	if len(rates) == 0 {
		return 0, nil
	}
	stored := make([]storedRate, 0, len(rates))
	for _, c := range rates.Currencies() {
		stored = append(stored, storedRate{c, rates[c].Value, rates[c].Date.Format(time.DateOnly)})
	}
	text, err := json.Marshal(stored)
	if err != nil {
		return 0, err
	}
	sum := sha256.Sum256(text)
	digest := hex.EncodeToString(sum[:])
	var id int64
	err = t.QueryRow(`SELECT id FROM rate_set WHERE digest = $1`, digest).Scan(&id)
	if found, err := db.Found(err); found || err != nil { // usual case: avoids the row lock of the upsert below
		return id, err
	}
	err = t.QueryRow(`
		INSERT INTO rate_set (digest, rates) VALUES ($1, $2)
		ON CONFLICT (digest) DO UPDATE SET rates = excluded.rates RETURNING id`, digest, string(text)).Scan(&id)
	return id, err
}

// ReadRates returns the set of rates with the given id. The set with id 0 is empty.
func ReadRates(ctx context.Context, s *db.DB, set int64) (pricing.Rates, error) {
	out := pricing.Rates{}
	if set == 0 {
		return out, nil
	}
	var text string
	if err := s.Reserved.QueryRowContext(ctx, `SELECT rates FROM rate_set WHERE id = $1`, set).Scan(&text); err != nil {
		return nil, err
	}
	var stored []storedRate
	if err := json.Unmarshal([]byte(text), &stored); err != nil {
		return nil, fmt.Errorf("decode rate set %d: %w", set, err)
	}
	for _, r := range stored {
		date, err := time.Parse(time.DateOnly, r.Date)
		if err != nil {
			return nil, fmt.Errorf("decode rate set %d: %w", set, err)
		}
		out[r.Currency] = pricing.Rate{Value: r.Rate, Date: date}
	}
	return out, nil
}

// storedRates returns the stored state of a source, or the zero value before the first query.
func storedRates(ctx context.Context, s *db.DB, source string) (State, error) {
	var out State
	var set, read, due, failed int64
	err := s.Reserved.QueryRowContext(ctx, `SELECT rate_set, read_at, due_at, last_error, last_error_at FROM rate_source WHERE source = $1`,
		source).Scan(&set, &read, &due, &out.LastError, &failed)
	if found, err := db.Found(err); !found {
		return out, err
	}
	out.ReadAt, out.DueAt, out.LastErrorAt = db.Moment(read), db.Moment(due), db.Moment(failed)
	out.Rates, err = ReadRates(ctx, s, set)
	return out, err
}

// claimRateSource changes the due time of a source from was to next. It returns false if another
// process has changed the due time before.
func claimRateSource(ctx context.Context, s *db.DB, source string, was, next time.Time) (claimed bool, err error) {
	err = s.InTx(ctx, func(t *db.Tx) error {
		n, err := t.Exec(`
			INSERT INTO rate_source (source, rate_set, read_at, due_at, last_error, last_error_at) VALUES ($1, 0, 0, $3, '', 0)
			ON CONFLICT (source) DO UPDATE SET due_at = excluded.due_at WHERE rate_source.due_at = $2`,
			source, db.Micros(was), db.Micros(next))
		claimed = n == 1
		return err
	})
	return claimed, err
}

// putRateSource stores the state of a source.
func putRateSource(ctx context.Context, s *db.DB, source string, p State) error {
	return s.InTx(ctx, func(t *db.Tx) error {
		set, err := RateSet(t, p.Rates)
		if err != nil {
			return err
		}
		_, err = t.Exec(`
			INSERT INTO rate_source (source, rate_set, read_at, due_at, last_error, last_error_at) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (source) DO UPDATE SET rate_set = excluded.rate_set, read_at = excluded.read_at, due_at = excluded.due_at,
				last_error = excluded.last_error, last_error_at = excluded.last_error_at`,
			source, set, db.Micros(p.ReadAt), db.Micros(p.DueAt), p.LastError, db.Micros(p.LastErrorAt))
		return err
	})
}
