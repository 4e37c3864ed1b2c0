package app

import (
	"context"
	"errors"
	"time"

	"assay/internal/db"
	"assay/internal/fault"
	"assay/internal/idempotency"
	"assay/internal/inventory"
	"assay/internal/inventory/steaminv"
	"assay/internal/market"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/user"
	"assay/internal/view"
	"assay/internal/wallet"
)

// settlePace is the interval of settling trades.
const settlePace = 10 * time.Second

// buildMarket creates the service of listings and trades.
func (a *App) buildMarket() *market.Service {
	return market.New(market.Options{
		InTx:        a.store.InSmallTx,
		Ledger:      a.ledger.Ledger,
		Inventories: sellers{a.syncs, a.store},
		Due: func(ctx context.Context, now, after time.Time, afterID int64, limit int) ([]market.Due, error) {
			return market.ReadDue(ctx, a.store, now, after, afterID, limit)
		},
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

// sellers updates the inventories of sellers for listings.
type sellers struct {
	*syncs
	store *db.DB
}

func (s sellers) Pull(ctx context.Context, userID string, appID int32, contextID string) error {
	_, err := s.pull(ctx, userID, steaminv.Place{AppID: appID, ContextID: contextID}, inventory.Listing)
	return err
}

func (s sellers) Push(ctx context.Context, userID string, push inventory.Push) error {
	_, err := s.push(ctx, userID, push, inventory.Listing)
	return err
}

func (s sellers) Renew(ctx context.Context, userID string, appID int32, contextID string, notBefore time.Time) (bool, error) {
	return s.renew(ctx, userID, appID, contextID, notBefore)
}

func (s sellers) SteamID(ctx context.Context, userID string) (steamID string, known bool, err error) {
	u, err := user.Read(ctx, s.store, userID)
	if f := fault.Of(err); f != nil && f.Kind == fault.NotFound {
		return "", false, nil
	}
	return u.SteamID, err == nil, err
}

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
