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

// RankedTrades is the maximum number of trades per day between the same two users that count
// for ranks. Trading an asset back and forth therefore does not raise a rank.
const RankedTrades = 5

// MaxVolume is the maximum volume that is counted for one trade: ten million units of the
// base currency.
const MaxVolume = 10_000_000 * money.Scale

// Day returns the number of the UTC day of t, counted from the Unix epoch.
func Day(t time.Time) int64 { return t.Unix() / (24 * 60 * 60) }

// Complete records that the asset was handed over, and returns the trade. It changes
// nothing if the trade is completed or settled. It returns a fault.Conflict if the trade
// was reversed.
func (s *Service) Complete(ctx context.Context, id int64) (Trade, error) {
	rates, err := s.o.Rates(ctx)
	if err != nil {
		return Trade{}, wrap("rates", err)
	}
	return s.update(ctx, id, func(tx *db.Tx, t *Trade) (bool, error) {
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

// Reverse reverses a trade and returns it. The buyer gets a refund from the held credit of
// the seller. If the asset was not handed over, its transfer ends immediately. Otherwise a
// later sync shows which inventory has the asset. Reversing a reversed trade changes
// nothing. Reverse returns a fault.Conflict if the trade is settled, because its credit is
// no longer held.
func (s *Service) Reverse(ctx context.Context, id int64) (Trade, error) {
	return s.update(ctx, id, func(tx *db.Tx, t *Trade) (bool, error) {
		day, counts := Day(tx.Now()), Counts{Reversed: 1}
		switch t.State {
		case Reversed:
			return false, nil
		case Pending:
			if err := endTransfer(tx, t); err != nil {
				return false, err
			}
		case Settled:
			return false, conflict("trade_settled", "The trade was settled at %s, so its money is no longer held.", t.SettledAt)
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

// endTransfer ends the transfer of the asset of a pending trade.
func endTransfer(tx *db.Tx, t *Trade) error {
	// Lock the seller to prevent a concurrent sync, which would still read a pending trade
	// and mark the asset again.
	if _, err := user.Lock(tx, t.Seller); err != nil {
		return err
	}
	return clearInTransfer(tx, t.SellerKey, t.Place)
}

// settle releases the seller's credit if its hold has ended.
func (s *Service) settle(ctx context.Context, id int64) error {
	_, err := s.update(ctx, id, func(tx *db.Tx, t *Trade) (bool, error) {
		if t.State != Completed || t.SettleAt.After(tx.Now()) {
			return false, nil // another process settled the trade, or it was reversed
		}
		t.State, t.SettledAt = Settled, tx.Now()
		_, err := s.o.Ledger.Settle(tx, t.sealed(), wallet.Request{})
		return true, err
	})
	return err
}

// update locks a trade, checks its seal and calls fn. It writes the trade if fn returns
// true.
func (s *Service) update(ctx context.Context, id int64, fn func(*db.Tx, *Trade) (changed bool, err error)) (out Trade, err error) {
	err = s.o.Store.InSmallTx(ctx, func(tx *db.Tx) error {
		t, err := lockTrade(tx, id)
		switch {
		case err != nil:
			return wrap("trade", err)
		case t == nil:
			return NotFound("trade", id)
		}
		if err := s.o.Ledger.Keys.CheckTrade(t.sealed()); err != nil {
			return err
		}
		changed, err := fn(tx, t)
		if err == nil && changed {
			s.seal(t)
			if err = updateTrade(tx, *t); err == nil {
				err = reportMove(tx, t)
			}
		}
		out = *t
		return wrap("trade", err)
	})
	return out, err
}

// seal computes the seal of a trade.
func (s *Service) seal(t *Trade) {
	sealed := t.sealed()
	s.o.Ledger.Keys.Sealer().Seal(sealed)
	t.Seal = sealed.Seal
}

// sealed returns the fields of a trade that the seal covers.
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

// volume converts a price to the base currency, limited to MaxVolume. It returns 0 for a
// currency without a rate.
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

// Due is a trade with a hold that has ended.
type Due struct {
	ID       int64
	SettleAt time.Time
}

// dueBatch is the number of trades that one query of SettleDue returns.
const dueBatch = 100

// SettleDue settles all trades with a hold that has ended, each in a separate transaction.
// After a failure it continues with the next trade. The next run retries the failed one.
// SettleDue stops after 100 failures. Several processes may run it at the same time.
func (s *Service) SettleDue(ctx context.Context) error {
	var after Due
	var failed []error
	for {
		due, err := ReadDue(ctx, s.o.Store, s.o.Now(), after.SettleAt, after.ID, dueBatch)
		if err != nil {
			return fmt.Errorf("read trades to settle: %w", err)
		}
		for _, after = range due {
			if err := s.settle(ctx, after.ID); err != nil {
				failed = append(failed, fmt.Errorf("settle trade %d: %w", after.ID, err))
			}
			if ctx.Err() != nil || len(failed) == dueBatch {
				return errors.Join(failed...)
			}
		}
		if len(due) < dueBatch {
			return errors.Join(failed...)
		}
	}
}
