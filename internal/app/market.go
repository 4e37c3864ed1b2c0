package app

import (
	"context"
	"errors"
	"time"

	"assay/internal/db"
	"assay/internal/idempotency"
	"assay/internal/market"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/view"
	"assay/internal/wallet"
)

// settlePace is the interval of settling trades.
const settlePace = 10 * time.Second

// buildMarket creates the service of listings and trades.
func (a *App) buildMarket() *market.Service {
	return market.New(market.Options{
		Store: a.store, Ledger: a.ledger.Ledger, Syncs: a.syncs,
		Rates: func(ctx context.Context) (pricing.Rates, error) {
			if a.rates == nil {
				return nil, nil
			}
			rates, _, err := a.rates.Known(ctx)
			return rates, err
		},
		Base: a.cfg.Currency, Hold: a.cfg.TradeHold, MaxAge: a.cfg.InventoryMaxAge, Now: a.now,
	})
}

// keepTrades settles due trades and reports overdue trades.
func (a *App) keepTrades(ctx context.Context) error {
	return errors.Join(a.market.SettleDue(ctx), a.market.ReportOverdue(ctx))
}

func nextSettling(t time.Time) time.Time { return t.UTC().Truncate(settlePace).Add(settlePace) }

// trading implements api.Trading.
type trading struct {
	*market.Service
	*view.MarketReader
	base money.Currency
	keys *wallet.Ring
}

func (t trading) List(ctx context.Context, offers market.Offers, seal func(idempotency.ResponseStore, []view.Offered) error) error {
	return t.Create(ctx, offers, func(tx *db.Tx, created []market.Created) error {
		out := make([]view.Offered, len(created))
		for i := range created {
			out[i] = view.OfferedOf(&created[i], t.base, tx.Now())
		}
		return seal(sealingTx{tx, t.keys}, out)
	})
}

func (t trading) CancelListing(ctx context.Context, id int64) (view.Listing, error) {
	l, err := t.Cancel(ctx, id)
	return view.ListingOf(&l), err
}

func (t trading) CancelListings(ctx context.Context, ids []int64) ([]view.Withdrawn, error) {
	results, err := t.CancelAll(ctx, ids)
	out := make([]view.Withdrawn, len(results))
	for i := range results {
		out[i] = view.WithdrawnOf(ids[i], &results[i])
	}
	return out, err
}

func (t trading) RepriceListing(ctx context.Context, id, price int64) (view.Listing, error) {
	l, err := t.Reprice(ctx, id, price)
	return view.ListingOf(&l), err
}

func (t trading) Purchase(ctx context.Context, p market.Purchase, seal func(idempotency.ResponseStore, view.Trade) error) error {
	return t.Service.Purchase(ctx, p, func(tx *db.Tx, trade market.Trade) error {
		return seal(sealingTx{tx, t.keys}, view.TradeOf(&trade))
	})
}

func (t trading) CompleteTrade(ctx context.Context, id int64) (view.Trade, error) {
	trade, err := t.Complete(ctx, id)
	return view.TradeOf(&trade), err
}

func (t trading) ReverseTrade(ctx context.Context, id int64) (view.Trade, error) {
	trade, err := t.Reverse(ctx, id)
	return view.TradeOf(&trade), err
}
