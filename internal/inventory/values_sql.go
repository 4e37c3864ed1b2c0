package inventory

import (
	"context"
	"database/sql"
	"strconv"
	"time"

	"assay/internal/db"
	"assay/internal/money"
)

// recordedDay returns the last day for which all values are recorded.
func recordedDay(ctx context.Context, s *db.DB) (time.Time, error) {
	var at int64
	err := db.Each(ctx, s.Read, func(r *sql.Rows) error {
		var text string
		if err := r.Scan(&text); err != nil {
			return err
		}
		at, _ = strconv.ParseInt(text, 10, 64) // 0 if the text was changed by hand, so that the day is recorded again
		return nil
	}, `SELECT value FROM setting WHERE name = 'inventory_values_day'`)
	return db.Moment(at), err
}

func setRecordedDay(t *db.Tx, at time.Time) error {
	_, err := t.Exec(`INSERT INTO setting (name, value) VALUES ('inventory_values_day', $1) ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
		strconv.FormatInt(db.Micros(at), 10))
	return err
}

const valueColumns = "user_key bigint, day bigint, value text, assets bigint, unpriced bigint"

var valuesBulk = db.NewBulk(`INSERT INTO inventory_value (user_key, day, value, assets, unpriced) `, valueColumns, `
	ON CONFLICT (user_key, day) DO UPDATE SET value = excluded.value, assets = excluded.assets, unpriced = excluded.unpriced`)

// recordValues records the values of the next users with an inventory. It returns the last of these
// users, and whether there may be more. It computes sums in Go, because a sum can exceed 64 bits.
func recordValues(t *db.Tx, after int64, at time.Time) (last int64, more bool, err error) {
	if err := t.ByIndex(); err != nil {
		return after, false, err
	}
	users, err := db.Collect(t.Context(), t, func(r *sql.Rows, key *int64) error { return r.Scan(key) },
		`SELECT DISTINCT user_key FROM inventory_snapshot WHERE user_key > $1 ORDER BY user_key LIMIT $2`, after, usersAtOnce)
	if err != nil || len(users) == 0 {
		return after, false, err
	}
	last = users[len(users)-1]
	values := make(map[int64]*Value, len(users))
	for _, key := range users {
		values[key] = &Value{}
	}
	err = db.Each(t.Context(), t, func(r *sql.Rows) error {
		var key, amount, rows int64
		var value money.Micro
		if err := r.Scan(&key, &value, &amount, &rows); err != nil {
			return err
		}
		if v := values[key]; v != nil {
			v.add(value, amount, rows)
		}
		return nil
	}, `SELECT user_key, coalesce(value, 0), CAST(sum(amount) AS BIGINT), count(*) FROM inventory
		WHERE user_key > $1 AND user_key <= $2 GROUP BY user_key, coalesce(value, 0)`, after, last)
	if err != nil {
		return after, false, err
	}
	out := db.NewTable(valueColumns, len(users))
	for _, key := range users {
		v := values[key]
		out.Int(key, db.Micros(at))
		out.Text(v.Value.String())
		out.Int(v.Assets, v.Unpriced)
	}
	_, err = t.WriteRows(valuesBulk, out)
	return last, len(users) == usersAtOnce, err
}

// Values returns up to limit values of a user, oldest first, for the days that start at or
// after from and before to.
func Values(ctx context.Context, s *db.DB, user int64, from, to time.Time, limit int) ([]Value, error) {
	return db.Collect(ctx, s.Read, func(r *sql.Rows, v *Value) error {
		var at int64
		var value string
		if err := r.Scan(&at, &value, &v.Assets, &v.Unpriced); err != nil {
			return err
		}
		v.User, v.Day = user, db.Moment(at).UTC()
		return v.Value.UnmarshalJSON([]byte(value))
	}, `SELECT day, value, assets, unpriced FROM inventory_value WHERE user_key = $1 AND day >= $2 AND day < $3 ORDER BY day LIMIT $4`,
		user, db.Micros(from), db.Micros(to), limit)
}

// RemoveUser deletes the values of a user, and the rows of the user's waiting inventories.
func RemoveUser(t *db.Tx, user int64) error {
	if _, err := t.Exec(`DELETE FROM inventory_value WHERE user_key = $1`, user); err != nil {
		return err
	}
	_, err := t.Exec(`DELETE FROM inventory_waiting WHERE user_key = $1`, user)
	return err
}
