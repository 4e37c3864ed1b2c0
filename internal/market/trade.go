package market

import (
	"context"
	"errors"
	"fmt"
	"time"

	"assay/internal/db"
	"assay/internal/fault"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/user"
	"assay/internal/wallet"
)

// RankedTrades is how many trades of a day between the same two users count for
// ranks, so that trading the same asset back and forth does not raise a rank.
const RankedTrades = 5

// MaxVolume is the most that one trade counts for in the figures of its users, in
// micro-units of the base currency: ten million.
const MaxVolume = 10_000_000 * money.Scale

// Day numbers the days of the epoch in UTC.
func Day(t time.Time) int64 { return t.Unix() / (24 * 60 * 60) }

// Complete notes that the asset was handed over, and returns the trade. Completing
// it again changes nothing; a reversed one is a fault.Conflict.
func (s *Service) Complete(ctx context.Context, id int64) (Trade, error) {
	rates, err := s.o.Rates(ctx)
	if err != nil {
		return Trade{}, wrap("rates", err)
	}
	return s.move(ctx, id, func(tx *db.Tx, t *Trade) (bool, error) {
		switch t.State {
		case Completed, Settled:
			return false, nil
		case Reversed:
			return false, conflict("trade_reversed", "The trade was reversed at %s.", t.ReversedAt)
		}
		t.State, t.CompletedAt, t.SettleAt = Completed, tx.Now(), tx.Now().Add(s.o.Hold)
		t.Volume = volume(t.Price, t.Currency, s.o.Base, rates)
		before, err := pairTrades(tx, Day(t.CompletedAt), t.SellerKey, t.BuyerKey)
		if err != nil {
			return false, err
		}
		if before < RankedTrades {
			t.Ranked = t.Volume
		}
		if err := countTrade(tx, Day(t.CompletedAt), *t, Counts{Trades: 1, Volume: t.Volume, Ranked: t.Ranked}); err != nil {
			return false, err
		}
		_, err = s.o.Ledger.Complete(tx, t.sealed(), wallet.Request{})
		return true, err
	})
}

// Reverse reverses a trade and returns it. The buyer is refunded from the seller's held
// credit. An asset that was not handed over is no longer in transfer; a later sync
// finds one that was. Reversing again changes nothing. A settled trade is a
// fault.Conflict, because its money is no longer held.
func (s *Service) Reverse(ctx context.Context, id int64) (Trade, error) {
	return s.move(ctx, id, func(tx *db.Tx, t *Trade) (bool, error) {
		day, counts := Day(tx.Now()), Counts{Reversed: 1}
		switch t.State {
		case Reversed:
			return false, nil
		case Pending:
			if err := keep(tx, t); err != nil {
				return false, err
			}
		case Settled:
			return false, conflict("trade_settled", "The trade was settled at %s; its money is no longer held.", t.SettledAt)
		case Completed:
			day = Day(t.CompletedAt)
			counts = Counts{Trades: -1, Reversed: 1, Volume: -t.Volume, Ranked: -t.Ranked}
		}
		t.State, t.ReversedAt = Reversed, tx.Now()
		if err := countTrade(tx, day, *t, counts); err != nil {
			return false, err
		}
		_, err := s.o.Ledger.Reverse(tx, t.sealed(), wallet.Request{})
		return true, err
	})
}

// keep ends the transfer of an asset that stays the seller's.
func keep(tx *db.Tx, t *Trade) error {
	if _, err := user.Hold(tx, t.Seller); err != nil { // a sync could find the trade pending
		return err
	}
	return keepAsset(tx, t.SellerKey, t.Place)
}

// settle releases the seller's credit if its hold has ended.
func (s *Service) settle(ctx context.Context, id int64) error {
	_, err := s.move(ctx, id, func(tx *db.Tx, t *Trade) (bool, error) {
		if t.State != Completed || t.SettleAt.After(tx.Now()) {
			return false, nil // another process settled it
		}
		t.State, t.SettledAt = Settled, tx.Now()
		_, err := s.o.Ledger.Settle(tx, t.sealed(), wallet.Request{})
		return true, err
	})
	return err
}

// move changes a trade, and writes it if fn returns true.
func (s *Service) move(ctx context.Context, id int64, fn func(*db.Tx, *Trade) (changed bool, err error)) (out Trade, err error) {
	err = s.o.InTx(ctx, func(tx *db.Tx) error {
		t, err := lockTrade(tx, id)
		switch {
		case err != nil:
			return wrap("trade", err)
		case t == nil:
			return notFound("trade", id)
		}
		if err := s.o.Ledger.Keys.CheckTrade(t.sealed()); err != nil {
			return err
		}
		changed, err := fn(tx, t)
		if err == nil && changed {
			s.seal(t)
			err = updateTrade(tx, *t)
		}
		out = *t
		return wrap("trade", err)
	})
	return out, err
}

// seal seals a trade as it is.
func (s *Service) seal(t *Trade) {
	sealed := t.sealed()
	s.o.Ledger.Keys.Sealer().Seal(sealed)
	t.Seal = sealed.Seal
}

// sealed is the trade as it is sealed.
func (t *Trade) sealed() *wallet.Trade {
	return &wallet.Trade{
		ID: t.ID, Listing: t.ListingID, Seller: t.Seller, Buyer: t.Buyer, AppID: int64(t.AppID), ContextID: t.ContextID, AssetID: t.AssetID,
		Item: t.ItemID, Amount: t.Amount, Price: t.Price, Currency: t.Currency, PaymentMethod: t.PaymentMethod, Country: t.Country,
		Fee: t.Fee, Net: t.Net, FeeRule: t.FeeRule, FeeVersion: t.FeeVersion, Transaction: t.TransactionID, State: string(t.State),
		CreatedAt: t.CreatedAt, CompletedAt: t.CompletedAt, SettleAt: t.SettleAt, SettledAt: t.SettledAt, ReversedAt: t.ReversedAt,
		Volume: int64(t.Volume), Ranked: int64(t.Ranked), Seal: t.Seal,
	}
}

func conflict(code, format string, at time.Time) error {
	return fault.New(fault.Conflict, code, format, at.UTC().Format(time.RFC3339))
}

// volume is what a price counts for, in the base currency. A currency without a
// rate counts for nothing.
func volume(price int64, currency, base money.Currency, rates pricing.Rates) money.Micro {
	micro := currency.FromMinor(price)
	if currency != base {
		rate, ok := rates.Of(currency)
		if !ok {
			return 0
		}
		if micro, ok = money.Convert(micro, rate.Value); !ok {
			return MaxVolume
		}
	}
	return min(micro, MaxVolume)
}

// Due is a trade that is to be settled.
type Due struct {
	ID       int64
	SettleAt time.Time
}

// dueAtOnce is how many trades to be settled are looked up at once.
const dueAtOnce = 100

// SettleDue settles all trades whose time has come, each in a transaction of its
// own. A failure does not stop the others and is retried in the next run. Several
// processes may run it at once.
func (s *Service) SettleDue(ctx context.Context) error {
	var after Due
	var failed []error
	for {
		due, err := s.o.Due(ctx, s.o.Now(), after.SettleAt, after.ID, dueAtOnce)
		if err != nil {
			return fmt.Errorf("trades that are due: %w", err)
		}
		for _, after = range due {
			if err := s.settle(ctx, after.ID); err != nil {
				failed = append(failed, fmt.Errorf("settle trade %d: %w", after.ID, err))
			}
			if ctx.Err() != nil || len(failed) == dueAtOnce {
				return errors.Join(failed...)
			}
		}
		if len(due) < dueAtOnce {
			return errors.Join(failed...)
		}
	}
}
