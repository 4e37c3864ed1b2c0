package market

import (
	"context"
	"slices"

	"assay/internal/db"
	"assay/internal/fault"
	"assay/internal/user"
	"assay/internal/wallet"
)

// DeleteUser deletes what is stored of a user but the id, which the ledger, trades and
// listings keep. A user with active listings, open trades or money is a
// fault.Conflict, and nothing changes. Deleting a deleted user changes nothing.
func (s *Service) DeleteUser(ctx context.Context, userID string) error {
	if err := user.Check(userID); err != nil {
		return err
	}
	return s.o.InTx(ctx, func(tx *db.Tx) error {
		u, err := user.Hold(tx, userID)
		switch {
		case err != nil:
			return wrap("user", err)
		case u.Key == 0:
			return user.NotFound()
		case u.Deleted:
			return nil
		}
		if err := s.checkLeaving(tx, userID, u.Key); err != nil {
			return wrap("what the user has", err)
		}
		return wrap("delete user", DeleteUser(tx, u.Key))
	})
}

// checkLeaving refuses the deletion of a user with listings, open trades or money.
// Listings turn into trades and trades into money, never the other way round while the
// user is held, so they are looked at in this order: nothing is missed between two
// statements. The wallets are not locked, since a posting does not depend on the user:
// one beside the deletion counts as one after it.
func (s *Service) checkLeaving(tx *db.Tx, userID string, key int64) error {
	listings, trades, err := openDeals(tx, key)
	switch {
	case err != nil:
		return err
	case listings:
		return fault.New(fault.Conflict, "user_has_listings", "The user has active listings. Cancel them, then delete the user.")
	case trades:
		return fault.New(fault.Conflict, "user_has_trades",
			"The user is the seller or buyer of trades that are pending or completed. Wait until they are settled, or reverse them, then delete the user.")
	}
	accounts, err := wallet.StatesOf(tx, userID)
	if err != nil {
		return err
	}
	if err := s.o.Ledger.Keys.CheckAccounts(accounts); err != nil {
		return err
	}
	if slices.ContainsFunc(accounts, func(a wallet.State) bool { return a.Head.Balance != 0 || a.Head.Held != 0 }) {
		return fault.New(fault.Conflict, "user_has_money", "The user's wallet is not empty. Post withdrawals of what is available, then delete the user.")
	}
	return nil
}
