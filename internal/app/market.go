package app

import (
	"context"
	"errors"
	"time"

	"assay/internal/market"
	"assay/internal/pricing"
)

// settlePace is the interval at which due trades are settled.
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
