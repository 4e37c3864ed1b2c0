package market

import (
	"context"

	"assay/internal/db"
	"assay/internal/fault"
	"assay/internal/user"
	"assay/internal/wallet"
	"assay/internal/wallet/fee"
)

// Purchase is the request of a buyer.
type Purchase struct {
	ListingID     int64
	Buyer         string // user id of the platform
	PaymentMethod string // input of the fee rules; empty: unknown
	Country       string // input of the fee rules; empty: unknown
	Scope, Key    string // scope and value of the Idempotency-Key; empty: the request had none
}

// Purchase sells a listing to a buyer. It changes money, fee, listing and trade in one
// transaction and calls seal at the end of it. If several buyers compete, one succeeds and
// the others get a fault.Conflict.
func (s *Service) Purchase(ctx context.Context, p Purchase, seal func(*db.Tx, Trade) error) error {
	if err := user.Check(p.Buyer); err != nil {
		return err
	}
	return s.o.Store.InSmallTx(ctx, func(tx *db.Tx) error {
		t, err := s.sell(tx, &p)
		if err != nil {
			return wrap("purchase", err)
		}
		return seal(tx, t)
	})
}

func (s *Service) sell(tx *db.Tx, p *Purchase) (Trade, error) {
	l, err := findListing(tx, p.ListingID)
	switch {
	case err != nil:
		return Trade{}, err
	case l == nil:
		return Trade{}, NotFound("listing", p.ListingID)
	case l.Seller == p.Buyer:
		return Trade{}, fault.New(fault.Conflict, "own_listing", "You cannot buy your own listing.")
	case l.State != Active:
		return Trade{}, endedFault(l)
	}
	rules, err := fee.Active(tx) // first, so that tx.Now() is not before the activation of the rules
	if err != nil {
		return Trade{}, err
	}
	t := Trade{
		ListingID: l.ID, SellerKey: l.SellerKey, Seller: l.Seller, Buyer: p.Buyer, Place: l.Place, ItemID: l.ItemID, Item: l.Item,
		Amount: l.Amount, Price: l.Price, Currency: l.Currency, PaymentMethod: p.PaymentMethod, Country: p.Country,
		State: Pending, CreatedAt: tx.Now(),
	}
	if t.BuyerKey, err = user.Ensure(tx, p.Buyer); err != nil {
		return Trade{}, err
	}
	if err := setInTransfer(tx, l.SellerKey, l.Place); err != nil {
		return Trade{}, err
	}
	item, price, id, err := sellListing(tx, l.ID)
	if err != nil {
		return Trade{}, err
	}
	if item != 0 && price != l.Price {
		return Trade{}, fault.New(fault.Conflict, "price_changed", "The price of the listing changed during the purchase. Nothing was bought. Check the new price, then retry.")
	}
	if item != l.ItemID { // the listing ended meanwhile, or a sync found the phase of its asset
		if l, err = findListing(tx, l.ID); err != nil {
			return Trade{}, err
		}
		if item == 0 {
			return Trade{}, endedFault(l)
		}
		t.ItemID, t.Item = l.ItemID, l.Item
	}
	t.ID = id
	if err := s.pay(tx, &t, rules, wallet.Request{Scope: p.Scope, Key: p.Key}); err != nil {
		return Trade{}, err
	}
	s.seal(&t)
	if err := insertTrade(tx, t); err != nil {
		return Trade{}, err
	}
	return t, reportSale(tx, &t)
}

// pay posts the money of a trade. The buyer pays the price and the house gets the fee.
// The seller gets the rest, which is held until the trade settles.
func (s *Service) pay(tx *db.Tx, t *Trade, rules fee.Activation, r wallet.Request) error {
	if err := s.o.Ledger.Keys.CheckRules(rules.Sealed()); err != nil {
		return err
	}
	payment := fee.Payment{
		Kind: fee.Sale, Amount: t.Price, Currency: t.Currency, Method: t.PaymentMethod, Country: t.Country, At: t.CreatedAt,
	}
	quote, err := fee.Compute(rules.Set, payment)
	if err != nil {
		return err
	}
	t.Fee, t.Net, t.FeeRule, t.FeeVersion = quote.Fee, quote.Net, quote.Rule, quote.Version
	r.Note = payment.Note()
	posted, err := s.o.Ledger.Sell(tx, t.sealed(), r)
	if err != nil {
		return err
	}
	t.TransactionID = posted.Transaction.ID
	return nil
}
