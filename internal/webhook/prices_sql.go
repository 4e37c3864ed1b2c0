package webhook

import (
	"context"
	"database/sql"
	"maps"
	"slices"
	"time"

	"assay/internal/db"
	"assay/internal/money"
)

// moved is a price change of an item.
type moved struct {
	id            int64
	name, phase   string
	before, after money.Micro // 0: no price
	app           int32

	// For alerts: prices at the start of two windows. The first window ends at this change, and
	// the second one at the previous change. If the item had no price yet, its first price is
	// used. 0 means unknown.
	reference, referenceBefore money.Micro
}

// moves returns the price changes of items at a time, by item id.
func moves(ctx context.Context, s *db.DB, at int64, items []int64) (map[int64]*moved, error) {
	out := make(map[int64]*moved, len(items))
	_, err := db.CollectByIndex(ctx, s, func(r *sql.Rows, _ *struct{}) error {
		var m moved
		err := r.Scan(&m.id, &m.name, &m.phase, &m.after, &m.before, &m.app)
		out[m.id] = &m
		return err
	}, `SELECT p.item_id, i.name, i.phase, p.price, coalesce((
			SELECT b.price FROM price_point b WHERE b.item_id = p.item_id AND b.at < p.at ORDER BY b.at DESC LIMIT 1), 0), i.app_id
		FROM price_point p JOIN item i ON i.id = p.item_id WHERE p.at = $1 AND p.item_id `+s.Dialect.OneOf(2), at, s.Dialect.EncodeIDs(items))
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
		WHERE u.user_id IN `+s.Dialect.Texts(1), s.Dialect.EncodeTexts(users))
	return out, err
}

// Parts of queries for the price at a given time. This is the last price up to that time, or the
// first price after it if there is none.
const (
	lastPrice  = `(SELECT r.price FROM price_point r WHERE r.item_id = q.item_id AND r.at <= `
	firstPrice = `(SELECT r.price FROM price_point r WHERE r.item_id = q.item_id AND r.at > `
)

// readReferences adds the references of alerts to price changes.
func readReferences(ctx context.Context, s *db.DB, at int64, window time.Duration, changes map[int64]*moved) error {
	_, err := db.CollectByIndex(ctx, s, func(r *sql.Rows, _ *struct{}) error {
		var item int64
		var now, before money.Micro
		err := r.Scan(&item, &now, &before)
		if m := changes[item]; m != nil {
			m.reference, m.referenceBefore = now, before
		}
		return err
	}, `SELECT q.item_id,
			coalesce(`+lastPrice+`q.at - $2 ORDER BY r.at DESC LIMIT 1), `+firstPrice+`q.at - $2 ORDER BY r.at LIMIT 1), 0),
			coalesce(`+lastPrice+`q.prev - $2 ORDER BY r.at DESC LIMIT 1), `+firstPrice+`q.prev - $2 ORDER BY r.at LIMIT 1), 0)
		FROM (SELECT p.item_id, p.at, (SELECT max(b.at) FROM price_point b WHERE b.item_id = p.item_id AND b.at < p.at) AS prev
			FROM price_point p WHERE p.at = $1 AND p.item_id `+s.Dialect.OneOf(3)+`) q`,
		at, window.Microseconds(), s.Dialect.EncodeIDs(slices.Collect(maps.Keys(changes))))
	return err
}
