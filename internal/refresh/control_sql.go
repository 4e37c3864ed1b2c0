package refresh

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/event"
	"assay/internal/inventory"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/provider/allowance"
)

// MarketIDs returns the ids of markets. It inserts markets that are not stored yet.
func MarketIDs(t *db.Tx, markets []MarketName) (map[MarketName]int64, error) {
	out := make(map[MarketName]int64, len(markets))
	sorted := slices.SortedFunc(slices.Values(markets), func(a, b MarketName) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Key, b.Key))
	})
	for _, m := range sorted {
		var id int64
		err := t.QueryRow(`SELECT id FROM market WHERE provider = $1 AND key = $2 AND title = $3`, m.Provider, m.Key, m.Title).Scan(&id)
		if err == nil {
			out[m] = id
			continue
		}
		if found, err := db.Found(err); found || err != nil {
			return nil, err
		}
		err = t.QueryRow(`
			INSERT INTO market (provider, key, title) VALUES ($1, $2, $3)
			ON CONFLICT (provider, key) DO UPDATE SET title = excluded.title RETURNING id`, m.Provider, m.Key, m.Title).Scan(&id)
		if err != nil {
			return nil, err
		}
		out[m] = id
	}
	return out, nil
}

// pausedProviders returns the names of the paused providers.
func pausedProviders(ctx context.Context, s *db.DB) (map[string]bool, error) {
	names, err := db.Collect(ctx, s.Read, func(r *sql.Rows, name *string) error { return r.Scan(name) },
		`SELECT provider FROM provider_state WHERE paused`)
	out := make(map[string]bool, len(names))
	for _, n := range names {
		out[n] = true
	}
	return out, err
}

// pauseProvider pauses or resumes a provider. A pause defers the pending units of the
// provider, so that jobs continue without them. Units of the background fetch stay pending,
// because no job waits for them. A resume deletes the reported quota, because it may have been
// wrong.
func pauseProvider(t *db.Tx, provider string, paused bool) error {
	if _, err := t.Exec(`INSERT INTO provider_state (provider, paused) VALUES ($1, $2)
		ON CONFLICT (provider) DO UPDATE SET paused = excluded.paused`, provider, paused); err != nil {
		return err
	}
	if !paused {
		return allowance.DropReported(t, provider)
	}
	_, err := t.Exec(`UPDATE fetch_unit SET state = 'deferred', error_kind = 'paused', error = $2
		WHERE provider = $1 AND state = 'pending' AND detached <> `+DetachedBackgroundSQL,
		provider, provider+": paused by an operator")
	return err
}

// acceptProvider ends the quarantine of one or all markets of a provider, and returns the
// number of files that were in quarantine. For 48 hours, validation accepts responses that
// resemble the refused ones; see pricing.ValidationState.
func acceptProvider(t *db.Tx, provider, market string) (int64, error) {
	ended, err := db.Collect(t.Context(), t, func(r *sql.Rows, e *event.ProviderUp) error {
		e.Provider, e.Why, e.Detail = provider, event.WhyQuarantine, "accepted by an operator"
		return r.Scan(&e.Market, &e.AppID, &e.File)
	}, `
		UPDATE market_file SET quarantine = '', quarantined_since = 0, refused = '', accepted_at = $2
		WHERE quarantine <> '' AND market_id IN (SELECT id FROM market WHERE provider = $1 AND ($3 = '' OR key = $3))
		RETURNING (SELECT key FROM market WHERE id = market_id), app_id, file`, provider, db.Micros(t.Now()), market)
	for _, e := range ended {
		err = errors.Join(err, event.Add(t, e))
	}
	return int64(len(ended)), err
}

// itemIDs returns the ids of items, without repetitions. If an item is unknown, it returns an
// error of the kind fault.NotFound.
func itemIDs(ctx context.Context, s *db.DB, keys []catalog.Key) ([]int64, error) {
	var ids []int64
	for _, key := range keys {
		var id int64
		err := s.Read.QueryRowContext(ctx, `SELECT id FROM item WHERE app_id = $1 AND name = $2 AND phase = $3`, key.AppID, key.Name, key.Phase).Scan(&id)
		if found, err := db.Found(err); err != nil {
			return nil, err
		} else if !found {
			return nil, key.NotFound()
		}
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// failedWith reports whether an item of a job failed with the error cause.
func failedWith(ctx context.Context, s *db.DB, job int64, cause string) (found bool, err error) {
	err = db.Each(ctx, s.Read, func(r *sql.Rows) error {
		var text []byte
		var failures []Failure
		if err := r.Scan(&text); err != nil {
			return err
		}
		err := json.Unmarshal(text, &failures)
		found = found || slices.ContainsFunc(failures, func(f Failure) bool { return f.Error == cause })
		return err
	}, `SELECT failures FROM refresh_batch_items WHERE job_id = $1 AND failures <> '[]' ORDER BY batch`, job)
	return found, err
}

// acceptItems publishes the held prices of items, with their price points and inventory rows. It
// returns how many it accepted, and ignores items without a held price.
func acceptItems(t *db.Tx, items []int64) (int, error) {
	if err := lockByID(t, items); err != nil {
		return 0, err
	}
	accepted := pricing.State{ReleasedAt: t.Now()} // the guard ignores older reference prices
	guard := pricing.EncodeGuard(&accepted, &pricing.Move{})
	ids, err := db.Collect(t.Context(), t, func(r *sql.Rows, id *int64) error { return r.Scan(id) }, `
		UPDATE item SET price = candidate, candidate = 0, candidate_at = 0, guard = $3, price_updated_at = $2, price_checked_at = $2, rev = rev + 1,
			range_low = CASE WHEN candidate < range_low THEN candidate ELSE range_low END,
			range_high = CASE WHEN candidate > range_high THEN candidate ELSE range_high END
		WHERE id `+t.Dialect.OneOf(1)+` AND candidate > 0 RETURNING id`,
		t.Dialect.EncodeIDs(items), db.Micros(t.Now()), guard)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	slices.Sort(ids)
	if err := dropPointsAhead(t, ids); err != nil {
		return 0, err
	}
	if _, err := t.Exec(writePointsSQL+`
		SELECT id, CAST($2 AS BIGINT), price_updated_at, price_checked_at, quotes_at, price, status,
			average, median, consensus, interval_low, interval_high, candidate, candidate_at, rate_set, level_set, method_version,
			coalesce((SELECT p.used FROM price_point p WHERE p.item_id = item.id ORDER BY p.at DESC LIMIT 1), ''), method, guard,
			coalesce((SELECT quotes FROM item_quotes WHERE item_id = id), '[]')
		FROM item WHERE id `+t.Dialect.OneOf(1),
		t.Dialect.EncodeIDs(ids), db.Micros(t.Now())); err != nil {
		return 0, err
	}
	if err := event.Add(t, event.PricesChanged{Items: ids}); err != nil {
		return 0, err
	}
	if err := inventory.ApplyToItems(t, ids); err != nil {
		return 0, err
	}
	if _, err := t.Exec(`DELETE FROM missing_price WHERE item_id `+t.Dialect.OneOf(1), t.Dialect.EncodeIDs(ids)); err != nil {
		return 0, err
	}
	var buckets []int64
	for _, id := range ids {
		buckets = append(buckets, id>>32)
	}
	return len(ids), catalog.PricesChanged(t, slices.Compact(buckets))
}

// heldItems returns the ids of items with a held price.
func heldItems(t *db.Tx, limit int) ([]int64, error) {
	return db.Collect(t.Context(), t, func(r *sql.Rows, id *int64) error { return r.Scan(id) },
		`SELECT id FROM item WHERE candidate > 0 ORDER BY id LIMIT $1`, limit)
}

// SetCurrency stores the currency of all prices in a new database. In an existing database it
// returns an error for any other currency, because stored amounts cannot be converted.
func SetCurrency(ctx context.Context, s *db.DB, c money.Currency) error {
	var have money.Currency
	err := s.InTx(ctx, func(t *db.Tx) error {
		err := t.QueryRow(`SELECT value FROM setting WHERE name = 'currency'`).Scan(&have)
		if found, err := db.Found(err); found || err != nil {
			return err // no write, so that a start on a full disk succeeds
		}
		if _, err := t.Exec(`INSERT INTO setting (name, value) VALUES ('currency', $1) ON CONFLICT (name) DO NOTHING`, string(c)); err != nil {
			return err
		}
		return t.QueryRow(`SELECT value FROM setting WHERE name = 'currency'`).Scan(&have)
	})
	if err == nil && have != c {
		return fmt.Errorf("the database holds prices in %s and MARKET_PRICE_CURRENCY is %s: restore the setting, or use another database", have, c)
	}
	return err
}
