package view

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"time"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/provider"
	"assay/internal/refresh"
	"assay/internal/view/prices"
)

// StoredItem is an item row with its price and the figures of its last estimate.
type StoredItem struct {
	ID                                int64
	Key                               catalog.Key
	Price                             money.Micro
	Status                            pricing.Status
	Method                            string
	MethodVersion                     int64
	Average, Median, Consensus        money.Micro
	Min, Max                          money.Micro
	Interval                          pricing.Interval
	Markets, UsedMarkets              int64
	Candidate                         money.Micro
	CandidateAt                       time.Time
	Guard                             string // decoded by pricing.DecodeGuard
	UpdatedAt, CheckedAt, EstimatedAt time.Time
	QuotesAt, NoSalesSince, RetryAt   time.Time
	Failures                          int64
	RateSet                           int64 // rate set of the last estimate; see exchange.ReadRates
	LevelSet                          int64 // level set of the last estimate; 0: none learned yet
	Queued                            bool
	DueAt                             time.Time // next attempt of a queued item; zero: immediately, or in progress
}

const itemColumns = `i.id, i.app_id, i.name, i.phase, i.price, i.status, i.method, i.method_version,
	i.average, i.median, i.consensus, i.low, i.high, i.interval_low, i.interval_high, i.markets, i.used_markets,
	i.candidate, i.candidate_at, i.guard,
	i.price_updated_at, i.price_checked_at, i.estimated_at, i.quotes_at, i.no_sales_since, i.retry_at, i.failures, i.rate_set, i.level_set,
	EXISTS (SELECT 1 FROM missing_price m WHERE m.item_id = i.id),
	coalesce((SELECT m.due_at FROM missing_price m WHERE m.item_id = i.id AND m.job_id = 0), 0)`

func scanItem(r *sql.Rows, i *StoredItem) error {
	var candidate, updated, checked, estimated, quotes, noSales, retry, due int64
	err := r.Scan(&i.ID, &i.Key.AppID, &i.Key.Name, &i.Key.Phase, &i.Price, &i.Status, &i.Method, &i.MethodVersion,
		&i.Average, &i.Median, &i.Consensus, &i.Min, &i.Max, &i.Interval.Low, &i.Interval.High, &i.Markets, &i.UsedMarkets,
		&i.Candidate, &candidate, &i.Guard,
		&updated, &checked, &estimated, &quotes, &noSales, &retry, &i.Failures, &i.RateSet, &i.LevelSet, &i.Queued, &due)
	i.CandidateAt, i.UpdatedAt, i.CheckedAt, i.EstimatedAt = db.Moment(candidate), db.Moment(updated), db.Moment(checked), db.Moment(estimated)
	i.QuotesAt, i.NoSalesSince, i.RetryAt, i.DueAt = db.Moment(quotes), db.Moment(noSales), db.Moment(retry), db.Moment(due)
	return err
}

// UnpricedItem is an item without a price.
type UnpricedItem struct {
	ID  int64
	Key catalog.Key
}

// UnpricedItems returns items of a game without a price, sorted by name and phase in byte
// order. It starts after the given name and phase.
func UnpricedItems(ctx context.Context, s *db.DB, app int32, afterName, afterPhase string, limit int) ([]UnpricedItem, error) {
	return unpricedItems(ctx, s, unpricedItemsSQL, app, afterName, afterPhase, limit)
}

// unpricedItemsBackward is like UnpricedItems, in reverse order. An empty name is the end of the list.
func unpricedItemsBackward(ctx context.Context, s *db.DB, app int32, beforeName, beforePhase string, limit int) ([]UnpricedItem, error) {
	if beforeName == "" {
		beforeName = strings.Repeat("\U0010FFFF", catalog.MaxName/4+1) // sorts after all names
	}
	return unpricedItems(ctx, s, unpricedItemsBackwardSQL, app, beforeName, beforePhase, limit)
}

func unpricedItems(ctx context.Context, s *db.DB, query string, app int32, name, phase string, limit int) ([]UnpricedItem, error) {
	return db.Collect(ctx, s.Read, func(r *sql.Rows, i *UnpricedItem) error {
		i.Key.AppID = app
		return r.Scan(&i.ID, &i.Key.Name, &i.Key.Phase)
	}, query, app, name, phase, limit)
}

// unpricedCount counts the items of all games without a price.
func unpricedCount(ctx context.Context, s *db.DB) (n int64, err error) {
	err = s.Read.QueryRowContext(ctx, `SELECT count(*) FROM item WHERE `+refresh.Unpriced).Scan(&n)
	return n, err
}

// unpricedItemsSQL lists items of a game without a price, sorted by name.
const unpricedItemsSQL = `SELECT id, name, phase FROM item WHERE ` + refresh.Unpriced + ` AND app_id = $1 AND (name, phase) > ($2, $3)
	ORDER BY name, phase LIMIT $4`

// unpricedItemsBackwardSQL is like unpricedItemsSQL, in reverse order.
const unpricedItemsBackwardSQL = `SELECT id, name, phase FROM item WHERE ` + refresh.Unpriced + ` AND app_id = $1 AND (name, phase) < ($2, $3)
	ORDER BY name DESC, phase DESC LIMIT $4`

// quoted reports which of the items are offered or have sales on a market, according to
// its last valid response.
func quoted(ctx context.Context, s *db.DB, items []int64, market int64) (map[int64]bool, error) {
	out := make(map[int64]bool, len(items))
	_, err := db.CollectByIndex(ctx, s, func(r *sql.Rows, _ *struct{}) error {
		var id int64
		var quotes string
		if err := r.Scan(&id, &quotes); err != nil {
			return err
		}
		all, err := refresh.DecodeQuotes(quotes)
		out[id] = slices.ContainsFunc(all, func(q refresh.MarketSnapshot) bool {
			return q.Reason != pricing.NotOffered && q.Reason != pricing.NotConfigured && q.MarketID == market
		})
		return err
	}, `SELECT item_id, quotes FROM item_quotes WHERE item_id `+s.Dialect.OneOf(1), s.Dialect.EncodeIDs(items))
	return out, err
}

// ReadItem returns an item, or nil if it does not exist.
func ReadItem(ctx context.Context, s *db.DB, key catalog.Key) (*StoredItem, error) {
	items, err := db.Collect(ctx, s.Read, scanItem, `
		SELECT `+itemColumns+` FROM item i WHERE i.app_id = $1 AND i.name = $2 AND i.phase = $3`, key.AppID, key.Name, key.Phase)
	if err != nil || len(items) == 0 {
		return nil, err
	}
	return &items[0], nil
}

// itemIDs finds the IDs of items.
type itemIDs struct {
	store  *db.DB
	prices *prices.Table
}

// of returns the ID of an item, or a fault.NotFound.
func (f *itemIDs) of(ctx context.Context, key catalog.Key) (id int64, err error) {
	if id, known := f.prices.ID(key); known {
		return id, nil
	}
	found, err := db.Found(f.store.Read.QueryRowContext(ctx, `SELECT id FROM item WHERE app_id = $1 AND name = $2 AND phase = $3`, key.AppID, key.Name, key.Phase).Scan(&id))
	if err == nil && !found {
		err = key.NotFound()
	}
	return id, err
}

// StoredSnapshot is the last quote of an item on one market, with the names of the market.
type StoredSnapshot struct {
	refresh.MarketSnapshot
	Provider, Market, Title string
}

// Snapshots returns the last quotes of an item on all markets.
func Snapshots(ctx context.Context, s *db.DB, item int64) ([]StoredSnapshot, error) {
	var quotes string
	err := s.Read.QueryRowContext(ctx, `SELECT quotes FROM item_quotes WHERE item_id = $1`, item).Scan(&quotes)
	if found, err := db.Found(err); !found {
		return nil, err
	}
	snaps, err := refresh.DecodeQuotes(quotes)
	if err != nil {
		return nil, err
	}
	markets, err := Markets(ctx, s)
	if err != nil {
		return nil, err
	}
	return named(snaps, markets), nil
}

// Markets returns all markets that were ever configured, by ID.
func Markets(ctx context.Context, s *db.DB) (map[int64]refresh.MarketName, error) {
	type row struct {
		id   int64
		name refresh.MarketName
	}
	rows, err := db.Collect(ctx, s.Read, func(r *sql.Rows, v *row) error {
		return r.Scan(&v.id, &v.name.Provider, &v.name.Key, &v.name.Title)
	}, `SELECT id, provider, key, title FROM market`)
	out := make(map[int64]refresh.MarketName, len(rows))
	for _, v := range rows {
		out[v.id] = v.name
	}
	return out, err
}

// ProviderState is the stored state of a provider.
type ProviderState struct {
	Paused      bool
	LastSuccess time.Time
	LastError   string
	LastErrorAt time.Time
}

// ProviderStates returns the state of each provider that was ever requested or paused.
func ProviderStates(ctx context.Context, s *db.DB) (map[string]ProviderState, error) {
	type row struct {
		provider string
		state    ProviderState
	}
	rows, err := db.Collect(ctx, s.Read, func(r *sql.Rows, v *row) error {
		var success, failed int64
		err := r.Scan(&v.provider, &v.state.Paused, &success, &v.state.LastError, &failed)
		v.state.LastSuccess, v.state.LastErrorAt = db.Moment(success), db.Moment(failed)
		return err
	}, `SELECT provider, paused, last_success, last_error, last_error_at FROM provider_state`)
	out := make(map[string]ProviderState, len(rows))
	for _, v := range rows {
		out[v.provider] = v.state
	}
	return out, err
}

// ProviderFile is the result of the last fetches of one file of a provider.
type ProviderFile struct {
	LastSuccess time.Time
	LastError   string
	LastErrorAt time.Time
	Failures    int64 // consecutive failures
}

// Record returns the data from which health is computed.
func (f ProviderFile) Record() provider.Record {
	return provider.Record{Failures: f.Failures, Succeeded: !f.LastSuccess.IsZero()}
}

// ProviderFiles returns the result of the last fetches by provider and file. The file ""
// stands for requests by name.
func ProviderFiles(ctx context.Context, s *db.DB) (map[string]map[string]ProviderFile, error) {
	type row struct {
		provider, file string
		ProviderFile
	}
	rows, err := db.Collect(ctx, s.Read, func(r *sql.Rows, v *row) error {
		var success, failed int64
		err := r.Scan(&v.provider, &v.file, &success, &v.LastError, &failed, &v.Failures)
		v.LastSuccess, v.LastErrorAt = db.Moment(success), db.Moment(failed)
		return err
	}, `SELECT provider, file, last_success, last_error, last_error_at, failures FROM provider_file`)
	out := map[string]map[string]ProviderFile{}
	for _, v := range rows {
		if out[v.provider] == nil {
			out[v.provider] = map[string]ProviderFile{}
		}
		out[v.provider][v.file] = v.ProviderFile
	}
	return out, err
}
