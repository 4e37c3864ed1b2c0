package refresh

import (
	"context"
	"database/sql"
	"time"

	"assay/internal/db"
	"assay/internal/money"
)

const (
	// foldItems and foldPoints limit the items and the points that one transaction folds.
	foldItems  = 500
	foldPoints = 20_000

	day = 24 * time.Hour
)

// priceDay is a row of price_day.
type priceDay struct {
	item, day              int64
	open, high, low, close money.Micro
	changes                int64
}

// addPrice adds a price change to a day.
func (d *priceDay) addPrice(p money.Micro) {
	d.high, d.low, d.close = max(d.high, p), min(d.low, p), p
	d.changes++
}

const (
	priceDayColumns  = "item_id bigint, day bigint, open bigint, high bigint, low bigint, close bigint, changes bigint"
	priceDaySQL      = `INSERT INTO price_day (item_id, day, open, high, low, close, changes) `
	priceDayConflict = `
ON CONFLICT (item_id, day) DO UPDATE SET
	high = CASE WHEN excluded.high > price_day.high THEN excluded.high ELSE price_day.high END,
	low = CASE WHEN excluded.low < price_day.low THEN excluded.low ELSE price_day.low END,
	close = excluded.close, changes = price_day.changes + excluded.changes`
)

var priceDaysBulk = db.NewBulk(priceDaySQL, priceDayColumns, priceDayConflict)

// foldable selects the price points of the items $1 to $2 before the time $3. It omits the last
// of these points of each item, because its price is still valid at $3.
const foldable = `FROM price_point p WHERE p.item_id >= $1 AND p.item_id <= $2 AND p.at < $3
	AND p.at < (SELECT max(m.at) FROM price_point m WHERE m.item_id = p.item_id AND m.at < $3)`

// foldStep folds the price points of the next items after the id after. It replaces the points
// of a day by one row. It returns the id of the last item, or 0 if there are no more items. If
// another process folds the same items, it waits and then finds no points.
func foldStep(t *db.Tx, after int64, before time.Time) (last int64, err error) {
	if err := t.ByIndex(); err != nil {
		return 0, err
	}
	items, err := db.Collect(t.Context(), t, func(r *sql.Rows, id *int64) error { return r.Scan(id) },
		`SELECT id FROM item WHERE id > $1 ORDER BY id LIMIT $2`, after, foldItems)
	if err != nil || len(items) == 0 {
		return 0, err
	}
	first, last := items[0], items[len(items)-1]
	type point struct {
		item, at int64
		price    money.Micro
	}
	points, err := db.Collect(t.Context(), t, func(r *sql.Rows, p *point) error { return r.Scan(&p.item, &p.at, &p.price) },
		`SELECT p.item_id, p.at, p.price `+foldable+` ORDER BY p.item_id, p.at LIMIT $4`+t.Dialect.LockOf("p"), first, last, db.Micros(before), foldPoints)
	if err != nil || len(points) == 0 {
		return last, err
	}
	closes := map[int64]money.Micro{}
	err = db.Each(t.Context(), t, func(r *sql.Rows) error {
		var id int64
		var price money.Micro
		err := r.Scan(&id, &price)
		closes[id] = price
		return err
	}, `SELECT i.id, coalesce((SELECT d.close FROM price_day d WHERE d.item_id = i.id ORDER BY d.day DESC LIMIT 1), 0)
		FROM item i WHERE i.id >= $1 AND i.id <= $2`, first, last)
	if err != nil {
		return 0, err
	}
	var days []priceDay
	for _, p := range points {
		at, price := p.at-p.at%day.Microseconds(), closes[p.item]
		if p.price <= 0 || p.price == price {
			continue // only the status or a quote changed
		}
		if len(days) == 0 || days[len(days)-1].item != p.item || days[len(days)-1].day != at {
			open := price
			if open == 0 {
				open = p.price
			}
			days = append(days, priceDay{item: p.item, day: at, open: open, high: open, low: open, close: open})
		}
		if price > 0 {
			days[len(days)-1].addPrice(p.price)
		}
		closes[p.item] = p.price
	}
	rows := db.NewTable(priceDayColumns, len(days))
	for _, d := range days {
		rows.Int(d.item, d.day, int64(d.open), int64(d.high), int64(d.low), int64(d.close), d.changes)
	}
	if rows.Rows > 0 {
		if _, err := t.WriteRows(priceDaysBulk, rows); err != nil {
			return 0, err
		}
	}
	end := points[len(points)-1]
	_, err = t.Exec(`DELETE FROM price_point WHERE item_id >= $1 AND (item_id, at) <= ($4, $5) AND at < $3
		AND at < (SELECT max(m.at) FROM price_point m WHERE m.item_id = price_point.item_id AND m.at < $3) AND item_id <= $2`,
		first, last, db.Micros(before), end.item, end.at)
	if len(points) == foldPoints {
		last = after // these items may have more points
	}
	return last, err
}

// Fold folds the price points of all items before a time, in small transactions.
func Fold(ctx context.Context, s *db.DB, before time.Time) error {
	for after := int64(0); ctx.Err() == nil; {
		err := s.InTx(ctx, func(t *db.Tx) (err error) {
			after, err = foldStep(t, after, before)
			return err
		})
		if err != nil || after == 0 {
			return err
		}
	}
	return ctx.Err()
}
