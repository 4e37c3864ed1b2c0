package view

import (
	"context"
	"database/sql"
	"time"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/refresh"
)

// storedQuotes is an item with the quotes of all markets.
type storedQuotes struct {
	price            money.Micro
	status           pricing.Status
	updated, checked time.Time
	quotes           []refresh.MarketSnapshot
	quotesAt         time.Time // fetch time of quotes that are stored without one
}

// readQuotes returns items of one game with their quotes. The result has no entry for an
// unknown item.
func readQuotes(ctx context.Context, s *db.DB, app int32, keys []catalog.Key) (map[catalog.Key]storedQuotes, error) {
	out := make(map[catalog.Key]storedQuotes, len(keys))
	_, err := db.Collect(ctx, s.Read, func(r *sql.Rows, _ *struct{}) error {
		key := catalog.Key{AppID: app}
		var v storedQuotes
		var updated, checked, quotesAt int64
		var quotes string
		err := r.Scan(&key.Name, &key.Phase, &v.price, &v.status, &updated, &checked, &quotesAt, &quotes)
		if err != nil {
			return err
		}
		v.updated, v.checked, v.quotesAt = db.Moment(updated), db.Moment(checked), db.Moment(quotesAt)
		v.quotes, err = refresh.DecodeQuotes(quotes)
		out[key] = v
		return err
	}, `SELECT i.name, i.phase, i.price, i.status, i.price_updated_at, i.price_checked_at, i.quotes_at, coalesce(q.quotes, '')
		FROM `+s.Dialect.Rows(1, catalog.KeyColumns)+` k`+
		s.Dialect.Lookup(`item i ON i.app_id = k.app_id AND i.name = k.name AND i.phase = k.phase`)+`
		LEFT JOIN item_quotes q ON q.item_id = i.id`,
		catalog.KeyTable(app, keys).Params(s.Dialect)...)
	return out, err
}
