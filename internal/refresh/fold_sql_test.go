package refresh_test

import (
	"testing"
	"time"

	"assay/internal/db"
	"assay/internal/refresh"
)

// Items with more points than one transaction folds are folded to the end.
func TestFold_FoldsAllPoints(t *testing.T) {
	each(t, func(f *fixture) {
		ids := f.items("A", "B", "C")
		const perItem = refresh.FoldPoints + 10
		first := f.Now.Truncate(24 * time.Hour)
		f.Tx(func(tx *db.Tx) error {
			for _, id := range ids {
				_, err := tx.Exec(`
					INSERT INTO price_point (item_id, at, updated_at, checked_at, quotes_at, price, status, average, median, consensus,
						interval_low, interval_high, candidate, candidate_at, rate_set, level_set, method_version, used, method, guard, quotes)
					WITH RECURSIVE step(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM step WHERE n + 1 < $2)
					SELECT $1, CAST($3 AS BIGINT) + n * CAST(60000000 AS BIGINT), 0, 0, 0, 1000 + n, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, '', '', '', $4 FROM step`,
					id, perItem, db.Micros(first), refresh.EncodeQuotes(nil))
				if err != nil {
					return err
				}
			}
			return nil
		})
		f.Must(refresh.Fold(f.Context(), f.DB, first.Add(10*24*time.Hour)))
		var points, changes int
		f.Must(f.DB.Read.QueryRowContext(f.Context(), `SELECT count(*) FROM price_point`).Scan(&points))
		f.Must(f.DB.Read.QueryRowContext(f.Context(), `SELECT sum(changes) FROM price_day`).Scan(&changes))
		f.Is("points that are left, one of each item", points, len(ids))
		f.Is("changes in the days, after the first price of each item", changes, len(ids)*(perItem-2))
	})
}
