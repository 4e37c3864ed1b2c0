package inventory

import (
	"context"
	"database/sql"

	"assay/internal/db"
	"assay/internal/money"
)

// unansweredItem returns one of the items for which the markets have not answered any
// attempt of the missing-price queue, or 0. Failed attempts do not count as answered.
func unansweredItem(t *db.Tx, items []int64) (item int64, err error) {
	if len(items) == 0 {
		return 0, nil
	}
	err = t.QueryRow(`SELECT item_id FROM missing_price WHERE attempts = 0 AND item_id `+t.Dialect.OneOf(1)+` LIMIT 1`, t.Dialect.EncodeIDs(items)).Scan(&item)
	_, err = db.Found(err)
	return item, err
}

// lockWaiting locks the wait of an inventory and reads it. It returns false if there is none.
func lockWaiting(t *db.Tx, w *waiting) (bool, error) {
	var since, item int64
	err := t.QueryRow(`SELECT since, item_id FROM inventory_waiting WHERE user_key = $1 AND app_id = $2 AND context_id = $3`+t.Dialect.Lock(),
		w.user, w.app, w.contextID).Scan(&since, &item)
	found, err := db.Found(err)
	if found {
		w.since, w.item = db.Moment(since), item
	}
	return found, err
}

func addWaiting(t *db.Tx, w *waiting) error {
	_, err := t.Exec(`INSERT INTO inventory_waiting (user_key, app_id, context_id, since, item_id) VALUES ($1, $2, $3, $4, $5)`,
		w.user, w.app, w.contextID, db.Micros(w.since), w.item)
	return err
}

func setAwaited(t *db.Tx, w *waiting, item int64) error {
	_, err := t.Exec(`UPDATE inventory_waiting SET item_id = $4 WHERE user_key = $1 AND app_id = $2 AND context_id = $3`, w.user, w.app, w.contextID, item)
	return err
}

func removeWaiting(t *db.Tx, w *waiting) error {
	_, err := t.Exec(`DELETE FROM inventory_waiting WHERE user_key = $1 AND app_id = $2 AND context_id = $3`, w.user, w.app, w.contextID)
	return err
}

// answered returns the next inventories whose wait may end, in order of their key and starting
// after the key of after. Either the markets have answered for the item that the wait stores,
// or the wait has lasted for maxWaiting. The query reads only that one item per inventory.
func answered(ctx context.Context, s *db.DB, after *waiting, limit int) ([]waiting, error) {
	return db.CollectByIndex(ctx, s, func(r *sql.Rows, w *waiting) error { return r.Scan(&w.user, &w.app, &w.contextID) }, `
		SELECT w.user_key, w.app_id, w.context_id FROM inventory_waiting w
		WHERE (w.user_key, w.app_id, w.context_id) > ($1, $2, $3)
			AND (w.since <= $4 OR NOT EXISTS (SELECT 1 FROM missing_price m WHERE m.item_id = w.item_id AND m.attempts = 0))
		ORDER BY w.user_key, w.app_id, w.context_id LIMIT $5`,
		after.user, after.app, after.contextID, db.Micros(s.Clock().Add(-maxWaiting)), limit)
}

// awaitedItem returns the item of a row that has no value but may get one soon, or 0. Either the
// item has a price that is not applied yet, or the markets have not answered the first attempt to
// price it.
func awaitedItem(t *db.Tx, w *waiting) (item int64, err error) {
	err = t.QueryRow(`
		SELECT v.item_id FROM inventory v
		WHERE v.user_key = $1 AND v.app_id = $2 AND v.context_id = $3 AND v.value IS NULL
			AND (EXISTS (SELECT 1 FROM missing_price m WHERE m.item_id = v.item_id AND m.attempts = 0)
				OR EXISTS (SELECT 1 FROM item i WHERE i.id = v.item_id AND i.price > 0))
		LIMIT 1`, w.user, w.app, w.contextID).Scan(&item)
	_, err = db.Found(err)
	return item, err
}

// totalOf returns the total value of an inventory. It computes the sum in Go, because it can
// exceed 64 bits.
func totalOf(t *db.Tx, w *waiting) (total Value, err error) {
	err = db.Each(t.Context(), t, func(r *sql.Rows) error {
		var value money.Micro
		var amount, rows int64
		err := r.Scan(&value, &amount, &rows)
		total.add(value, amount, rows)
		return err
	}, `SELECT coalesce(value, 0), CAST(sum(amount) AS BIGINT), count(*) FROM inventory
		WHERE user_key = $1 AND app_id = $2 AND context_id = $3 GROUP BY coalesce(value, 0)`, w.user, w.app, w.contextID)
	return total, err
}

// names returns the id of a user, and the currency of all values.
func names(t *db.Tx, user int64) (userID, currency string, err error) {
	err = t.QueryRow(`SELECT user_id, coalesce((SELECT value FROM setting WHERE name = 'currency'), '') FROM platform_user WHERE id = $1`, user).
		Scan(&userID, &currency)
	return userID, currency, err
}

// placesOf returns the inventories that contain the rows with the given ids.
func placesOf(t *db.Tx, rows []int64) ([]waiting, error) {
	return db.Collect(t.Context(), t, func(r *sql.Rows, w *waiting) error { return r.Scan(&w.user, &w.app, &w.contextID) }, `
		SELECT DISTINCT user_key, app_id, context_id FROM inventory WHERE id `+t.Dialect.OneOf(1)+` ORDER BY user_key, app_id, context_id`, t.Dialect.EncodeIDs(rows))
}
