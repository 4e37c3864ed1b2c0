package market

import (
	"context"
	"slices"

	"assay/internal/db"
	"assay/internal/fault"
	"assay/internal/user"
	"assay/internal/wallet"
)

// DeleteUser deletes all data of a user except the id, which the ledger, trades and
// listings refer to. It returns a fault.Conflict and changes nothing if the user has
// active listings, open trades or money. Deleting a deleted user changes nothing.
func (s *Service) DeleteUser(ctx context.Context, userID string) error {
	if err := user.Check(userID); err != nil {
		return err
	}
	return s.o.Store.InSmallTx(ctx, func(tx *db.Tx) error {
		u, err := user.Lock(tx, userID)
		switch {
		case err != nil:
			return wrap("user", err)
		case u.Key == 0:
			return user.NotFound()
		case u.Deleted:
			return nil
		}
		if err := s.checkDeletable(tx, userID, u.Key); err != nil {
			return wrap("check user", err)
		}
		return wrap("delete user", DeleteUser(tx, u.Key))
	})
}

// checkDeletable returns a fault.Conflict if the user has listings, open trades or money.
//
// The order of the checks matters. While the user is locked, a listing can become a trade
// and a trade can become money, but not the reverse. Checking in this order therefore
// misses nothing that changes between two statements. The wallets are not locked. A
// posting is possible for a deleted user too, so a concurrent posting has the same effect
// as one after the deletion.
func (s *Service) checkDeletable(tx *db.Tx, userID string, key int64) error {
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
		return fault.New(fault.Conflict, "user_has_money", "The user's wallet is not empty. Withdraw the available amounts, then delete the user.")
	}
	return nil
}
