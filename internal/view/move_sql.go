package view

import (
	"context"
	"database/sql"
	"time"

	"assay/internal/db"
	"assay/internal/money"
)

// moveChunk is the maximum number of items in one call of pricesAt.
const moveChunk = 5000

// pricesAt adds to out, by item ID, the prices that items had at a given time. The price of an item
// without a price at that time is 0.
func pricesAt(ctx context.Context, s *db.DB, items []int64, at time.Time, out map[int64]money.Micro) error {
	_, err := db.CollectByIndex(ctx, s, func(r *sql.Rows, _ *struct{}) error {
		var id int64
		var price money.Micro
		err := r.Scan(&id, &price)
		out[id] = price
		return err
	}, `SELECT i.id, coalesce((SELECT p.price FROM price_point p WHERE p.item_id = i.id AND p.at <= $2 ORDER BY p.at DESC LIMIT 1), 0)
		FROM item i WHERE i.id `+s.Dialect.OneOf(1), s.Dialect.EncodeIDs(items), db.Micros(at))
	return err
}
