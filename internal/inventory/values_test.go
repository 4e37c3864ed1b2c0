package inventory_test

import (
	"fmt"
	"testing"
	"time"

	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/inventory"
)

// TestRecordValues_RecordsEachDayOnce compares the recorded values with sums of the rows.
func TestRecordValues_RecordsEachDayOnce(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		const users = 450 // several transactions
		f.Tx(func(tx *db.Tx) error {
			for u := range int64(users) {
				if _, err := tx.Exec(`INSERT INTO inventory_snapshot (user_key, app_id, context_id, snapshot_at) VALUES ($1, 730, '2', 0)`, 2*u+1); err != nil {
					return err
				}
				for n := range u % 4 { // every fourth user has an empty inventory
					if _, err := tx.Exec(`
						INSERT INTO inventory (user_key, app_id, context_id, asset_id, item_id, class_id, instance_id, amount, tradable, marketable, inspect, value)
						VALUES ($1, 730, '2', $2, 1, '', '', $3, TRUE, TRUE, '', $4)`, 2*u+1, fmt.Sprint(n), 1+n, []any{nil, 1_250_000, 2_000_001}[n]); err != nil {
						return err
					}
				}
			}
			return nil
		})
		text := func(user int64) (all []string) {
			values, err := inventory.Values(f.Context(), f.DB, user, time.Time{}, f.Now, 100)
			f.Must(err)
			for _, v := range values {
				all = append(all, fmt.Sprintf("%s %s %d %d", v.Day.Format("01-02"), v.Value, v.Assets, v.Unpriced))
			}
			return all
		}
		f.Now = time.Date(2026, 3, 2, 0, 10, 0, 0, time.UTC)
		f.Must(inventory.RecordValues(f.Context(), f.DB))
		f.Is("values of an empty inventory", fmt.Sprint(text(1)), "[03-01 0 0 0]")
		f.Is("values of one row without a price", fmt.Sprint(text(3)), "[03-01 0 1 1]")
		f.Is("values of three rows in the second transaction", fmt.Sprint(text(2*403+1)), "[03-01 8.500003 3 1]")
		f.Is("values of the last user", fmt.Sprint(text(2*449+1)), "[03-01 0 1 1]")

		f.Tx(func(tx *db.Tx) error {
			_, err := tx.Exec(`UPDATE inventory SET value = 9000000000000000000, amount = 3`)
			return err
		})
		f.Must(inventory.RecordValues(f.Context(), f.DB))
		f.Is("values after another call on the same day", fmt.Sprint(text(3)), "[03-01 0 1 1]")
		f.Now = f.Now.Add(3 * 24 * time.Hour)
		f.Must(inventory.RecordValues(f.Context(), f.DB))
		f.Is("values after days without a call", fmt.Sprint(text(3)), "[03-01 0 1 1 03-04 27000000000000 1 0]")

		cut, err := inventory.Values(f.Context(), f.DB, 3, time.Date(2026, 3, 1, 0, 0, 0, 1_000, time.UTC), f.Now, 1)
		f.Must(err)
		f.Is("values from a time within the first day", len(cut), 1)
		f.Is("day of the first value", cut[0].Day, time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC))
		f.Tx(func(tx *db.Tx) error { return inventory.RemoveUser(tx, 3) })
		f.Is("values after their removal", len(text(3)), 0)
	})
}

// The clock is ahead during one call. A later call comes from a process with a slower clock.
func TestRecordValues_ContinuesAfterTheClockWasAhead(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		f.Tx(func(tx *db.Tx) error {
			_, err := tx.Exec(`INSERT INTO inventory_snapshot (user_key, app_id, context_id, snapshot_at) VALUES (1, 730, '2', 0)`)
			return err
		})
		days := func(at time.Time) (all []string) {
			f.Now = at
			f.Must(inventory.RecordValues(f.Context(), f.DB))
			values, err := inventory.Values(f.Context(), f.DB, 1, time.Time{}, at.AddDate(1, 0, 0), 100)
			f.Must(err)
			for _, v := range values {
				all = append(all, v.Day.Format("01-02"))
			}
			return all
		}
		morning := time.Date(2026, 3, 2, 0, 10, 0, 0, time.UTC)
		f.Is("days when the clock is ahead", fmt.Sprint(days(morning.AddDate(0, 1, 0))), "[04-01]")
		f.Is("days when the clock is right again", fmt.Sprint(days(morning)), "[03-01 04-01]")
		f.Is("days on the next day", fmt.Sprint(days(morning.AddDate(0, 0, 1))), "[03-01 03-02 04-01]")
		f.Tx(func(tx *db.Tx) error {
			_, err := tx.Exec(`DELETE FROM inventory_value WHERE day < $1`, db.Micros(morning.Add(-time.Hour)))
			return err
		})
		f.Is("days when a slower clock shows the evening before", fmt.Sprint(days(morning.Add(23*time.Hour))), "[03-02 04-01]")
	})
}

// The first call stops after some users. The next call records the others.
func TestRecordValues_CompletesAnInterruptedDay(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		f.Tx(func(tx *db.Tx) error {
			_, err := tx.Exec(`INSERT INTO inventory_snapshot (user_key, app_id, context_id, snapshot_at) VALUES (1, 730, '2', 0), (2, 730, '2', 0)`)
			if err == nil { // as left by a process that was killed
				_, err = tx.Exec(`INSERT INTO inventory_value (user_key, day, value, assets, unpriced) VALUES (1, $1, '1', 1, 0)`,
					db.Micros(f.Now.UTC().Truncate(24*time.Hour).Add(-24*time.Hour)))
			}
			return err
		})
		f.Must(inventory.RecordValues(f.Context(), f.DB))
		for user := int64(1); user <= 2; user++ {
			values, err := inventory.Values(f.Context(), f.DB, user, time.Time{}, f.Now, 10)
			f.Must(err)
			f.Is(fmt.Sprintf("number of values of user %d", user), len(values), 1)
		}
	})
}
