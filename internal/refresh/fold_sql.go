package refresh

import (
	"context"
	"database/sql"
	"time"

	"assay/internal/db"
	"assay/internal/money"
)

const (
	// foldItems and foldPoints limit the items and the points that one transaction folds. A point
	// has the quotes of all markets.
	foldItems  = 500
	foldPoints = 2_000

	day = 24 * time.Hour
)

// daySeries identifies the prices of an item, or those of a market.
type daySeries struct {
	item, market int64 // market 0: the price of the item
}

// priceDay is a row of price_day.
type priceDay struct {
	day                    int64
	open, high, low, close money.Micro
	changes                int64
	currency               money.Currency // empty: the base currency
}

// addPrice adds a price change to a day. If the currency changes, the day starts again.
func (d *priceDay) addPrice(p money.Micro, currency money.Currency) {
	if d.currency != currency {
		d.open, d.high, d.low, d.currency = p, p, p, currency
	}
	d.high, d.low, d.close = max(d.high, p), min(d.low, p), p
	d.changes++
}

const (
	priceDayColumns  = "item_id bigint, market_id bigint, day bigint, open bigint, high bigint, low bigint, close bigint, changes bigint, currency text"
	priceDaySQL      = `INSERT INTO price_day (item_id, market_id, day, open, high, low, close, changes, currency) `
	priceDayConflict = `
ON CONFLICT (item_id, market_id, day) DO UPDATE SET
	open = CASE WHEN excluded.currency <> price_day.currency THEN excluded.open ELSE price_day.open END,
	high = CASE WHEN excluded.currency <> price_day.currency OR excluded.high > price_day.high THEN excluded.high ELSE price_day.high END,
	low = CASE WHEN excluded.currency <> price_day.currency OR excluded.low < price_day.low THEN excluded.low ELSE price_day.low END,
	close = excluded.close, changes = price_day.changes + excluded.changes, currency = excluded.currency`
)

var priceDaysBulk = db.NewBulk(priceDaySQL, priceDayColumns, priceDayConflict)

// folder builds the days of folded points.
type folder struct {
	last map[daySeries]*priceDay // the newest day; a day that is already stored has only close and currency
	days []foldedDay
}

type foldedDay struct {
	daySeries
	*priceDay
}

// add adds a price to the day that begins at a time. A price that equals the last one is no change.
func (f *folder) add(s daySeries, at int64, p money.Micro, currency money.Currency) {
	last := f.last[s]
	if p <= 0 || last != nil && last.close == p && last.currency == currency {
		return
	}
	d := last
	if last == nil || last.day != at {
		d = &priceDay{day: at, open: p, high: p, low: p, close: p, currency: currency}
		if last != nil && last.currency == currency {
			d.open, d.high, d.low = last.close, last.close, last.close
		}
		f.last[s], f.days = d, append(f.days, foldedDay{s, d})
	}
	if last != nil {
		d.addPrice(p, currency)
	}
}

// foldable selects the price points of the items $1 to $2 before the time $3. It omits the last
// of these points of each item, because its price is still valid at $3.
const foldable = `FROM price_point p WHERE p.item_id >= $1 AND p.item_id <= $2 AND p.at < $3
	AND p.at < (SELECT max(m.at) FROM price_point m WHERE m.item_id = p.item_id AND m.at < $3)`

// foldStep folds the price points of the next items after the id after. It replaces the points
// of a day by one row. It returns the id after which to continue, and whether there may be more
// points. If another process folds the same items, it waits and then finds no points.
func foldStep(t *db.Tx, after int64, before time.Time) (next int64, more bool, err error) {
	if err := t.ByIndex(); err != nil {
		return 0, false, err
	}
	items, err := db.Collect(t.Context(), t, func(r *sql.Rows, id *int64) error { return r.Scan(id) },
		`SELECT id FROM item WHERE id > $1 ORDER BY id LIMIT $2`, after, foldItems)
	if err != nil || len(items) == 0 {
		return 0, false, err
	}
	first, last := items[0], items[len(items)-1]
	type point struct {
		item, at int64
		price    money.Micro
		quotes   string
	}
	points, err := db.Collect(t.Context(), t, func(r *sql.Rows, p *point) error { return r.Scan(&p.item, &p.at, &p.price, &p.quotes) },
		`SELECT p.item_id, p.at, p.price, p.quotes `+foldable+` ORDER BY p.item_id, p.at LIMIT $4`+t.Dialect.LockOf("p"), first, last, db.Micros(before), foldPoints)
	if err != nil || len(points) == 0 {
		return last, true, err
	}
	end := points[len(points)-1]
	f, err := newFolder(t, points[0].item, end.item)
	if err != nil {
		return 0, false, err
	}
	for _, p := range points {
		at := p.at - p.at%day.Microseconds()
		f.add(daySeries{item: p.item}, at, p.price, "")
		quotes, err := DecodeQuotes(p.quotes)
		if err != nil {
			return 0, false, err
		}
		for i := range quotes {
			f.add(daySeries{p.item, quotes[i].MarketID}, at, quotes[i].Price(), quotes[i].Currency)
		}
	}
	if err := f.store(t); err != nil {
		return 0, false, err
	}
	_, err = t.Exec(`DELETE FROM price_point WHERE item_id >= $1 AND (item_id, at) <= ($4, $5) AND at < $3
		AND at < (SELECT max(m.at) FROM price_point m WHERE m.item_id = price_point.item_id AND m.at < $3) AND item_id <= $2`,
		first, last, db.Micros(before), end.item, end.at)
	if len(points) == foldPoints {
		last = after // these items may have more points
	}
	return last, true, err
}

// newFolder reads the last stored prices of the items from first to last.
func newFolder(t *db.Tx, first, last int64) (*folder, error) {
	f := &folder{last: map[daySeries]*priceDay{}}
	return f, db.Each(t.Context(), t, func(r *sql.Rows) error {
		var s daySeries
		d := &priceDay{day: -1}
		err := r.Scan(&s.item, &s.market, &d.close, &d.currency)
		if d.close > 0 {
			f.last[s] = d
		}
		return err
	}, `SELECT i.id, m.id,
			coalesce((SELECT d.close FROM price_day d WHERE d.item_id = i.id AND d.market_id = m.id ORDER BY d.day DESC LIMIT 1), 0),
			coalesce((SELECT d.currency FROM price_day d WHERE d.item_id = i.id AND d.market_id = m.id ORDER BY d.day DESC LIMIT 1), '')
		FROM item i CROSS JOIN (SELECT 0 AS id UNION ALL SELECT id FROM market) m WHERE i.id >= $1 AND i.id <= $2`, first, last)
}

// store writes the days.
func (f *folder) store(t *db.Tx) error {
	if len(f.days) == 0 {
		return nil
	}
	rows := db.NewTable(priceDayColumns, len(f.days))
	for _, d := range f.days {
		rows.Int(d.item, d.market, d.day, int64(d.open), int64(d.high), int64(d.low), int64(d.close), d.changes)
		rows.Text(string(d.currency))
	}
	_, err := t.WriteRows(priceDaysBulk, rows)
	return err
}

// Fold folds the price points of all items before a time, in small transactions.
func Fold(ctx context.Context, s *db.DB, before time.Time) error {
	after, more := int64(0), true
	for more && ctx.Err() == nil {
		err := s.InTx(ctx, func(t *db.Tx) (err error) {
			after, more, err = foldStep(t, after, before)
			return err
		})
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}
