package webhook

import (
	"context"
	"database/sql"

	"assay/internal/db"
	"assay/internal/money"
)

// moved is a price change of an item.
type moved struct {
	id            int64
	name, phase   string
	before, after money.Micro // 0: no price
}

// moves returns the price changes of items at a time, by item id.
func moves(ctx context.Context, s *db.DB, at int64, items []int64) (map[int64]*moved, error) {
	out := make(map[int64]*moved, len(items))
	_, err := db.CollectByIndex(ctx, s, func(r *sql.Rows, _ *struct{}) error {
		var m moved
		err := r.Scan(&m.id, &m.name, &m.phase, &m.after, &m.before)
		out[m.id] = &m
		return err
	}, `SELECT p.item_id, i.name, i.phase, p.price, coalesce((
			SELECT b.price FROM price_point b WHERE b.item_id = p.item_id AND b.at < p.at ORDER BY b.at DESC LIMIT 1), 0)
		FROM price_point p JOIN item i ON i.id = p.item_id WHERE p.at = $1 AND p.item_id `+s.Dialect.OneOf(2), at, s.Dialect.PackIDs(items))
	return out, err
}

// ownedItems returns the items in the inventories of users.
func ownedItems(ctx context.Context, s *db.DB, users []string) (map[int64]bool, error) {
	out := map[int64]bool{}
	_, err := db.CollectByIndex(ctx, s, func(r *sql.Rows, _ *struct{}) error {
		var item int64
		err := r.Scan(&item)
		out[item] = true
		return err
	}, `SELECT DISTINCT v.item_id FROM platform_user u`+s.Dialect.Lookup(`inventory v ON v.user_key = u.id`)+`
		WHERE u.user_id IN `+s.Dialect.Texts(1), s.Dialect.PackTexts(users))
	return out, err
}
