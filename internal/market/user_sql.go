package market

import (
	"database/sql"
	"slices"

	"assay/internal/db"
	"assay/internal/inventory"
)

// openDeals reports whether a user has active listings, and whether the user has trades
// that are neither settled nor reversed. It uses one statement, because a concurrent
// purchase changes a listing to a trade.
func openDeals(t *db.Tx, key int64) (listings, trades bool, err error) {
	err = t.QueryRow(`
		SELECT EXISTS (SELECT 1 FROM listing WHERE seller_key = $1 AND state = 'active'),
			EXISTS (SELECT 1 FROM trade WHERE seller_key = $1 AND state IN ('pending', 'completed'))
			OR EXISTS (SELECT 1 FROM trade WHERE buyer_key = $1 AND state IN ('pending', 'completed'))`, key).Scan(&listings, &trades)
	return listings, trades, err
}

// DeleteUser deletes the Steam id, display name and inventories of a user. The id stays,
// because other rows refer to it. The caller must have locked the user with user.Lock.
func DeleteUser(t *db.Tx, key int64) error {
	if err := t.ByIndex(); err != nil {
		return err
	}
	rows, err := db.Collect(t.Context(), t, func(r *sql.Rows, id *int64) error { return r.Scan(id) },
		`SELECT id FROM inventory WHERE user_key = $1 ORDER BY id`+t.Dialect.Lock(), key)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(rows, db.RowsAtOnce) {
		if err := inventory.RemoveInventory(t, part); err != nil {
			return err
		}
	}
	if _, err := t.Exec(`DELETE FROM inventory_snapshot WHERE user_key = $1`, key); err != nil {
		return err
	}
	if err := inventory.RemoveUser(t, key); err != nil {
		return err
	}
	if _, err := t.Exec(`UPDATE platform_user SET steam_id = '', display_name = '', leaderboard = FALSE, deleted_at = $2 WHERE id = $1`,
		key, db.Micros(t.Now())); err != nil {
		return err
	}
	return removeFromRanking(t, key)
}
