package view

import (
	"context"
	"database/sql"
	"errors"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/event"
	"assay/internal/fault"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/view/prices"
)

// Manifest returns the metadata of an export of a game (0: all games) in the given currency ("":
// the base currency).
func (r *FeedReader) Manifest(ctx context.Context, app int32, to money.Currency) (Manifest, error) {
	now := r.o.Now()
	convert, err := r.o.converter(ctx, to, now)
	if err != nil {
		return Manifest{}, err
	}
	m := Manifest{Time: now, Currency: convert.to, Rates: convert.used()}
	err = r.inSnapshot(ctx, func(tx *sql.Tx, e Export) error {
		m.Change = id(e.Change)
		return tx.QueryRowContext(ctx, `SELECT count(*) FROM item WHERE price > 0 AND ($1 = 0 OR app_id = $1)`, app).Scan(&m.Items)
	})
	return m, err
}

// Export reads all prices of a game, or of all games if app is 0, sorted by app id, name and
// phase. It calls begin once. Then it calls the returned function with each item. If begin
// returns nil, Export reads no items. All prices come from one snapshot of the database, but
// only one of them is in memory at a time. The parameter to is the currency of the amounts ("":
// the base currency), converted at the rates in force.
func (r *FeedReader) Export(ctx context.Context, app int32, fields Fields, to money.Currency, begin func(Export) func(*PublishedPrice) error) error {
	convert, err := r.o.converter(ctx, to, r.o.Now())
	if err != nil {
		return err
	}
	return r.inSnapshot(ctx, func(tx *sql.Tx, e Export) error {
		e.Currency, e.Rates = convert.to, convert.used()
		use := begin(e)
		if use == nil {
			return nil
		}
		return db.Each(ctx, tx, func(rows *sql.Rows) error {
			var row publishedRow
			if err := row.scan(rows); err != nil {
				return err
			}
			p := row.price(fields)
			convert.published(p)
			return use(p)
		}, `SELECT app_id, name, phase, price, status, price_updated_at, price_checked_at, average, interval_low, interval_high, used_markets
			FROM item WHERE price > 0 AND ($1 = 0 OR app_id = $1) ORDER BY app_id, name, phase`, app)
	})
}

// publishedRow is a row with a price, from the table item or price_point.
type publishedRow struct {
	key              catalog.Key
	amount           money.Micro
	status           pricing.Status
	updated, checked int64
	figures          prices.Figures
}

func (p *publishedRow) scan(rows *sql.Rows, more ...any) error {
	f := &p.figures
	return rows.Scan(append([]any{
		&p.key.AppID, &p.key.Name, &p.key.Phase, &p.amount, &p.status, &p.updated, &p.checked,
		&f.Average, &f.Interval.Low, &f.Interval.High, &f.UsedMarkets,
	}, more...)...)
}

func (p *publishedRow) price(fields Fields) *PublishedPrice {
	return &PublishedPrice{
		AppID: p.key.AppID, MarketHashName: p.key.Name, Phase: p.key.Phase,
		CurrentPrice: p.amount, CurrentPriceDecimal: money.Decimal(p.amount), PriceStatus: p.status.String(),
		PriceUpdatedAt: when(db.Moment(p.updated)), PriceCheckedAt: when(db.Moment(p.checked)), Figures: fields.figures(&p.figures), selected: fields,
	}
}

// appendChanges appends the changes of a batch, in the order of the batch.
func (r *FeedReader) appendChanges(ctx context.Context, to []PriceChange, b *event.Batch, fields Fields) ([]PriceChange, error) {
	if len(b.Items) == 0 {
		return to, nil
	}
	found := make(map[int64]*PublishedPrice, len(b.Items))
	_, err := db.CollectByIndex(ctx, r.o.Store, func(rows *sql.Rows, _ *struct{}) error {
		var row publishedRow
		var item int64
		err := row.scan(rows, &item)
		found[item] = row.price(fields)
		return err
	}, `SELECT i.app_id, i.name, i.phase, p.price, p.status, p.updated_at, p.checked_at, p.average, p.interval_low, p.interval_high,
			CASE WHEN p.used = '' THEN 0 ELSE length(p.used) - length(replace(p.used, ',', '')) + 1 END, p.item_id
		FROM price_point p JOIN item i ON i.id = p.item_id WHERE p.at = $1 AND p.item_id `+r.o.Store.Dialect.OneOf(2), b.At, r.o.Store.Dialect.EncodeIDs(b.Items))
	if err != nil {
		return to, err
	}
	for i, item := range b.Items {
		if p := found[item]; p != nil { // nil if the clock was ahead and a later change replaced the point
			to = append(to, PriceChange{id(b.First() + int64(i)), *p})
		}
	}
	return to, nil
}

// numberAttempts is the maximum number of attempts to take a snapshot without unnumbered price
// changes. A second attempt is rare: a change must commit in the milliseconds between the
// numbering and the snapshot.
const numberAttempts = 20

// inSnapshot calls use with a snapshot of the database in which all price changes have
// numbers.
func (r *FeedReader) inSnapshot(ctx context.Context, use func(*sql.Tx, Export) error) error {
	for range numberAttempts {
		if err := r.o.Feed.Number(ctx); err != nil {
			return err
		}
		err := r.o.Store.Snapshot(ctx, func(_ *sql.Conn, tx *sql.Tx) error {
			change, err := event.LastChange(ctx, tx)
			if err != nil {
				return err
			}
			version, err := catalog.PriceVersionIn(ctx, tx)
			if err != nil {
				return err
			}
			return use(tx, Export{Change: change, Version: version})
		})
		if !errors.Is(err, event.ErrPending) {
			return err
		}
	}
	return fault.New(fault.Busy, "busy", "Prices change too fast for a consistent snapshot. Retry later.")
}
