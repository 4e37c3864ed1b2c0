// Package view is what the API and the operator page both read: jobs, items, providers,
// users, listings, trades, wallets and health. Its types are the JSON that clients see:
// amounts are decimal numbers of the base currency, times are RFC 3339 in UTC.
package view

import (
	"context"
	"log/slog"
	"time"

	"assay/internal/admission"
	"assay/internal/db"
	"assay/internal/exchange"
	"assay/internal/money"
	"assay/internal/provider"
	"assay/internal/view/prices"
	"assay/internal/view/ranking"
	"assay/internal/wallet"
)

// Options configure Readers.
type Options struct {
	Store        *db.DB
	Gate         *admission.Gate // admits expensive reads; nil: all are admitted
	Providers    []provider.Provider
	Clients      map[string]provider.Clients // by provider; one without has no record of calls
	Unconfigured []Unconfigured
	ScopeAll     bool
	Currency     money.Currency
	Ledger       *wallet.Ring     // verifies balances; nil: they are not verified
	Rates        *exchange.Keeper // nil: there are none
	RatesClient  *provider.Client // fetches exchange rates; nil: none are fetched
	Inventories  *provider.Client // pulls inventories from Steam; nil: none are pulled
	SteamHost    provider.Host
	Scheduled    func() map[string]time.Time
	Owner        string // names this process in claims
	Version      string
	Started      time.Time
	Now          func() time.Time
	Logger       *slog.Logger // nil: nothing is logged
}

// Readers read the state of the service, each of one subject. They change nothing and
// send no request to a provider. Their methods may be called concurrently. An expensive
// read is a fault.Busy if the gate has no slot for it in time.
type Readers struct {
	Jobs      *JobReader
	Items     *ItemReader
	Providers *ProviderReader
	Users     *UserReader
	Market    *MarketReader
	Wallets   *WalletReader
	Traders   *TraderReader
	Health    *HealthReader
}

// The readers. Each has the methods of one subject.
type (
	// JobReader reads refreshes.
	JobReader struct {
		o      *Options
		fresh  freshness
		status *admission.Coalescer[counted]
	}
	// ItemReader reads items and their prices.
	ItemReader struct {
		o      *Options
		prices *prices.Table
		sets   sets
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
)

// New returns the readers of a database.
func New(options Options) *Readers {
	o := &options
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Readers{
		Jobs:      &JobReader{o: o, status: admission.NewCoalescer[counted](false)},
		Items:     &ItemReader{o: o, prices: prices.New(o.Store)},
		Providers: &ProviderReader{o},
		Users:     &UserReader{o},
		Market:    &MarketReader{o},
		Wallets:   &WalletReader{o},
		Traders:   &TraderReader{o, ranking.New(ranking.Options{Store: o.Store, Now: o.Now, Logger: o.Logger})},
		Health:    &HealthReader{o},
	}
}

// enter waits for a slot for an expensive read. The caller calls leave when the read has
// ended.
func (o *Options) enter(ctx context.Context, c admission.Class) (leave func(), err error) {
	if o.Gate == nil {
		return func() {}, nil
	}
	return o.Gate.Enter(ctx, c)
}
