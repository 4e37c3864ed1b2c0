// Package view reads the data for the API and the operator page: jobs, items, providers,
// users, listings, trades, wallets and health. Its types define the JSON of the API. Amounts are
// decimal numbers in the base currency. Times are RFC 3339 in UTC.
package view

import (
	"context"
	"log/slog"
	"time"

	"assay/internal/admission"
	"assay/internal/db"
	"assay/internal/event"
	"assay/internal/exchange"
	"assay/internal/money"
	"assay/internal/provider"
	"assay/internal/refresh"
	"assay/internal/view/metadata"
	"assay/internal/view/prices"
	"assay/internal/view/ranking"
	"assay/internal/wallet"
)

// Options configure Readers.
type Options struct {
	Store        *db.DB
	Gate         *admission.Gate // limits expensive reads; nil: no limit
	Providers    []provider.Provider
	Clients      map[string]provider.Clients // by provider; a missing client has no recorded calls
	Unconfigured []Unconfigured
	ScopeAll     bool
	PricesOnly   bool // the market, the wallet and fees are off
	Currency     money.Currency
	Ledger       *wallet.Ring     // verifies balances; nil: balances are not verified
	Rates        *exchange.Keeper // nil: no exchange rates
	RatesClient  *provider.Client // fetches exchange rates; nil: rates are not fetched
	Metadata     metadata.Items   // descriptions of items; nil: none
	MarketFees   map[string]int64 // fees in basis points, by market key or provider/key
	Inventories  *provider.Client // pulls inventories from Steam; nil: inventories are not pulled
	SteamHost    provider.Host
	Scheduled    func() map[string]time.Time
	Feed         *event.Feed     // numbers price changes; nil: New creates a feed without background work
	Engine       *refresh.Engine // forecasts refreshes; nil: no forecasts
	Owner        string          // name of this process in claims
	Version      string
	Started      time.Time
	Now          func() time.Time
	Logger       *slog.Logger // nil: no logs
}

// Readers read the state of the service. Each reader covers one subject. They change nothing
// and send no requests to providers. Their methods may be called concurrently. An expensive
// read returns a fault.Busy if the gate has no free slot in time.
type Readers struct {
	Jobs      *JobReader
	Items     *ItemReader
	History   *HistoryReader
	Feeds     *FeedReader
	Providers *ProviderReader
	Users     *UserReader
	Market    *MarketReader
	Wallets   *WalletReader
	Traders   *TraderReader
	Health    *HealthReader
	Access    *AccessReader
	Overview  *OverviewReader
}

type (
	// JobReader reads refreshes.
	JobReader struct {
		o        *Options
		prices   *prices.Table
		fresh    freshness
		status   *admission.Coalescer[counted]
		progress progress
		dryRuns  map[bool]*admission.Coalescer[DryRun] // by forced
		recent   map[bool]*kept[DryRun]                // by forced
	}
	// ItemReader reads items and their current prices.
	ItemReader struct {
		o        *Options
		prices   *prices.Table
		ids      *itemIDs
		days     dayPrices
		explains *explanations
	}
	// HistoryReader reads the past prices of items.
	HistoryReader struct {
		o        *Options
		ids      *itemIDs
		explains *explanations
	}
	// FeedReader reads events and price changes by number, and exports of all prices that name the
	// number of their last change.
	FeedReader struct {
		o       *Options
		recents recents
	}
	// ProviderReader reads the state of providers and markets.
	ProviderReader struct{ o *Options }
	// UserReader reads users and their inventories.
	UserReader struct{ o *Options }
	// MarketReader reads listings and trades.
	MarketReader struct{ o *Options }
	// WalletReader reads balances and entries of the ledger.
	WalletReader struct{ o *Options }
	// TraderReader reads the leaderboard.
	TraderReader struct {
		o       *Options
		ranking *ranking.Ranking
	}
	// HealthReader reads the health of the service.
	HealthReader struct{ o *Options }
	// AccessReader reads API keys and the audit log.
	AccessReader struct{ o *Options }
)

// New returns the readers of a database.
func New(options Options) *Readers {
	o := &options
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Feed == nil {
		o.Feed = event.NewFeed(o.Store, o.Logger)
	}
	explains, cached := &explanations{o: o}, prices.New(o.Store)
	ids := &itemIDs{o.Store, cached}
	all := &Readers{
		Jobs: &JobReader{o: o, prices: cached, status: admission.NewCoalescer[counted](false), dryRuns: map[bool]*admission.Coalescer[DryRun]{
			false: admission.NewCoalescer[DryRun](true), true: admission.NewCoalescer[DryRun](true),
		}, recent: map[bool]*kept[DryRun]{false: {}, true: {}}},
		Items:     &ItemReader{o: o, prices: cached, ids: ids, explains: explains},
		History:   &HistoryReader{o: o, ids: ids, explains: explains},
		Feeds:     &FeedReader{o: o, recents: recents{forms: map[EventForm]*recent{}, limit: recentBytes}},
		Providers: &ProviderReader{o},
		Users:     &UserReader{o},
		Market:    &MarketReader{o},
		Wallets:   &WalletReader{o},
		Traders:   &TraderReader{o, ranking.New(ranking.Options{Store: o.Store, Now: o.Now, Logger: o.Logger})},
		Health:    &HealthReader{o},
		Access:    &AccessReader{o},
	}
	all.Overview = &OverviewReader{o: o, all: all}
	return all
}

// enter waits for the admission gate before an expensive read. The caller must call leave after the
// read.
func (o *Options) enter(ctx context.Context, c admission.Class) (leave func(), err error) {
	if o.Gate == nil {
		return func() {}, nil
	}
	return o.Gate.Enter(ctx, c)
}
