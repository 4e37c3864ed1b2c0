package prices

import (
	"context"
	"database/sql"
	"time"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/money"
	"assay/internal/pricing"
)

// Price is the current price of an item.
type Price struct {
	Amount    money.Micro // 0: unknown
	Status    pricing.Status
	UpdatedAt time.Time // last change of the amount
	CheckedAt time.Time // last confirmation by an estimate
	Held      bool      // a suspicious new price is held until it is confirmed
	Figures
	Queued    bool      // in the missing-price queue
	DueAt     time.Time // next attempt of a queued item; zero: immediately, or in progress
	SoonestAt time.Time // next attempt of a queued item if it is queued again
}

// Figures holds figures of the last estimate. They are zero if there was no estimate or no
// usable quote.
type Figures struct {
	Interval    pricing.Interval // around the consensus
	Average     money.Micro
	UsedMarkets int32
}

// Prices returns the prices of items of one game. The result has no entry for an unknown item.
func Prices(ctx context.Context, s *db.DB, app int32, keys []catalog.Key) (map[catalog.Key]Price, error) {
	type row struct {
		key   catalog.Key
		price Price
	}
	found, err := db.Collect(ctx, s.Read, func(r *sql.Rows, v *row) error {
		var updated, checked, due, soonest int64
		err := r.Scan(&v.key.Name, &v.key.Phase, &v.price.Amount, &v.price.Status, &updated, &checked, &v.price.Held,
			&v.price.Interval.Low, &v.price.Interval.High, &v.price.Average, &v.price.UsedMarkets, &v.price.Queued, &due, &soonest)
		v.key.AppID, v.price.UpdatedAt, v.price.CheckedAt = app, db.Moment(updated), db.Moment(checked)
		v.price.DueAt, v.price.SoonestAt = db.Moment(due), db.Moment(soonest)
		return err
	}, `SELECT i.name, i.phase, i.price, i.status, i.price_updated_at, i.price_checked_at, i.candidate > 0,
			i.interval_low, i.interval_high, i.average, i.used_markets,
			m.item_id IS NOT NULL, CASE WHEN m.job_id = 0 THEN m.due_at ELSE 0 END, coalesce(m.soonest_at, 0)
		FROM `+s.Dialect.Rows(1, catalog.KeyColumns)+` k`+
		s.Dialect.Lookup(`item i ON i.app_id = k.app_id AND i.name = k.name AND i.phase = k.phase`)+`
		LEFT JOIN missing_price m ON m.item_id = i.id`,
		catalog.KeyTable(app, keys).Params(s.Dialect)...)
	if err != nil {
		return nil, err
	}
	out := make(map[catalog.Key]Price, len(found))
	for _, v := range found {
		out[v.key] = v.price
	}
	return out, nil
}

// firstIDs returns the lowest possible item ID of each bucket.
func firstIDs(buckets []int) []int64 {
	ids := make([]int64, len(buckets))
	for i, n := range buckets {
		ids[i] = int64(n) << 32
	}
	return ids
}

// BucketPrices calls fn for up to limit items with a price in name buckets. The high bits of
// an item's ID are its bucket.
func BucketPrices(ctx context.Context, s *db.DB, buckets []int, limit int, fn func(id int64, key catalog.Key, p Price)) error {
	err := db.Each(ctx, s.Read, func(r *sql.Rows) error {
		var key catalog.Key
		var p Price
		var id, updated, checked int64
		err := r.Scan(&id, &key.AppID, &key.Name, &key.Phase, &p.Amount, &p.Status, &updated, &checked, &p.Held,
			&p.Interval.Low, &p.Interval.High, &p.Average, &p.UsedMarkets)
		p.UpdatedAt, p.CheckedAt = db.Moment(updated), db.Moment(checked)
		fn(id, key, p)
		return err
	}, `SELECT i.id, i.app_id, i.name, i.phase, i.price, i.status, i.price_updated_at, i.price_checked_at, i.candidate > 0,
			i.interval_low, i.interval_high, i.average, i.used_markets
		FROM `+s.Dialect.Rows(1, "first bigint")+` b`+
		s.Dialect.Lookup(`item i ON i.id >= b.first AND i.id < b.first + 4294967296 AND i.price > 0`)+`
		LIMIT $2`, s.Dialect.EncodeIDs(firstIDs(buckets)), limit)
	return err
}
