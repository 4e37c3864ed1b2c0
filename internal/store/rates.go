package store

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"assay/internal/money"
	"assay/internal/pricing"
)

// storedRate is a rate as an element of rate_set.rates.
type storedRate struct {
	Currency money.Currency `json:"currency"`
	Rate     int64          `json:"rate"` // micro-units
	Date     string         `json:"date"`
}

// RateSet returns the id of these rates, which are noted if they are new; 0 for
// none.
func (t *Tx) RateSet(rates pricing.Rates) (int64, error) {
	if len(rates) == 0 {
		return 0, nil
	}
	stored := make([]storedRate, 0, len(rates))
	for _, c := range slices.Sorted(maps.Keys(rates)) {
		stored = append(stored, storedRate{c, int64(rates[c].Micro), rates[c].Date.Format(time.DateOnly)})
	}
	text, err := json.Marshal(stored)
	if err != nil {
		return 0, err
	}
	var id int64
	err = t.queryRow(`
		INSERT INTO rate_set (rates) VALUES ($1)
		ON CONFLICT (rates) DO UPDATE SET rates = excluded.rates RETURNING id`, string(text)).Scan(&id)
	return id, err
}

// Rates returns a set of rates by its id, none for 0.
func (s *Store) Rates(ctx context.Context, set int64) (pricing.Rates, error) {
	out := pricing.Rates{}
	if set == 0 {
		return out, nil
	}
	var text string
	if err := s.read.QueryRowContext(ctx, `SELECT rates FROM rate_set WHERE id = $1`, set).Scan(&text); err != nil {
		return nil, err
	}
	var stored []storedRate
	if err := json.Unmarshal([]byte(text), &stored); err != nil {
		return nil, fmt.Errorf("rates %d: %w", set, err)
	}
	for _, r := range stored {
		date, err := time.Parse(time.DateOnly, r.Date)
		if err != nil {
			return nil, fmt.Errorf("rates %d: %w", set, err)
		}
		out[r.Currency] = pricing.Rate{Micro: money.Micro(r.Rate), Date: date}
	}
	return out, nil
}
