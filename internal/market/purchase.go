package market

import (
	"context"

	"assay/internal/db"
	"assay/internal/fault"
	"assay/internal/user"
	"assay/internal/wallet"
	"assay/internal/wallet/fee"
)

// Purchase is a buyer's request.
type Purchase struct {
	ListingID     int64
	Buyer         string // the platform's id
	PaymentMethod string // fee rules may depend on it; empty: unknown
	Country       string // the same
	Scope, Key    string // of the Idempotency-Key, under which the money moves once; empty: none was given
}

// Purchase sells a listing to a buyer: money, fee, listing and trade change in one
// transaction, or nothing does. seal is called last in it. One of several buyers
// succeeds; the others get a fault.Conflict.
func (s *Service) Purchase(ctx context.Context, p Purchase, seal func(*db.Tx, Trade) error) error {
	if err := user.Check(p.Buyer); err != nil {
		return err
	}
	return s.o.InTx(ctx, func(tx *db.Tx) error {
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
		return Trade{}, notFound("listing", p.ListingID)
	case l.Seller == p.Buyer:
		return Trade{}, fault.New(fault.Conflict, "own_listing", "You cannot buy your own listing.")
	case l.State != Active:
		return Trade{}, ended409(l)
	}
	rules, err := fee.Active(tx) // first: the sale is not before their activation
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
	if err := MoveAsset(tx, l.SellerKey, l.Place); err != nil {
		return Trade{}, err
	}
	item, price, id, err := sellListing(tx, l.ID)
	if err != nil {
		return Trade{}, err
	}
	if item != 0 && price != l.Price {
		return Trade{}, fault.New(fault.Conflict, "price_changed", "The price of the listing changed during the purchase. Nothing was bought.")
	}
	if item != l.ItemID { // it ended meanwhile, or a sync found its phase
		if l, err = findListing(tx, l.ID); err != nil {
			return Trade{}, err
		}
		if item == 0 {
			return Trade{}, ended409(l)
		}
		t.ItemID, t.Item = l.ItemID, l.Item
	}
	t.ID = id
	if err := s.pay(tx, &t, rules, wallet.Request{Scope: p.Scope, Key: p.Key}); err != nil {
		return Trade{}, err
	}
	s.seal(&t)
	return t, insertTrade(tx, t)
}

// pay moves the money of a trade: the buyer pays the price, the house keeps the
// fee by the rules in force, and the seller gets the rest, held until the trade
// settles.
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
