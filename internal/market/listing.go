package market

import (
	"context"
	"errors"
	"slices"
	"time"

	"assay/internal/db"
	"assay/internal/fault"
	"assay/internal/inventory"
	"assay/internal/money"
	"assay/internal/user"
)

// Offer is an asset to be listed.
type Offer struct {
	AssetID  string
	Price    int64 // minor units, 1 to MaxPrice
	Currency money.Currency
}

// Offers are assets of one inventory that a user lists.
type Offers struct {
	UserID    string
	AppID     int32
	ContextID string
	Offers    []Offer
	// Inventory is the whole inventory as the platform sent it; nil: it sent none. It is
	// used for users without a Steam id only.
	Inventory *inventory.Push
}

// MostOffers is how many assets can be listed at once.
const MostOffers = 500

// Created is the result of an offer.
type Created struct {
	Offer     Offer
	Listing   Listing      // unless it was refused
	Price     money.Micro  // known of one of the item; 0: it is queued
	CheckedAt time.Time    // of that price
	Refused   *fault.Error // nil: it was not
}

// Create syncs the seller's inventory and lists each offer on its own: one refusal
// does not affect the others. seal is called last in the transaction, with the
// results in order. A listing never waits for a price.
func (s *Service) Create(ctx context.Context, o Offers, seal func(*db.Tx, []Created) error) error {
	if err := user.Check(o.UserID); err != nil {
		return err
	}
	if err := s.sync(ctx, &o); err != nil {
		return wrap("sync of the seller", err)
	}
	return s.o.InTx(ctx, func(tx *db.Tx) error {
		seller, err := user.Hold(tx, o.UserID)
		switch {
		case err != nil:
			return wrap("user", err)
		case !seller.Known():
			return user.NotFound()
		}
		created := make([]Created, len(o.Offers))
		for i, offer := range o.Offers {
			created[i] = Created{Offer: offer}
			err := list(tx, seller.Key, &o, &created[i])
			if refused := fault.Of(err); refused != nil && refused.Kind == fault.Conflict {
				created[i].Refused = refused
			} else if err != nil {
				return wrap("list", err)
			}
		}
		return seal(tx, created)
	})
}

// sync updates the seller's inventory. Its error is a fault with the reason.
func (s *Service) sync(ctx context.Context, o *Offers) error {
	steamID, known, err := s.o.Inventories.SteamID(ctx, o.UserID)
	if err != nil {
		return err
	}
	oldest := s.o.Now().Add(-s.o.MaxAge)
	switch {
	case steamID != "":
		if err := s.o.Inventories.Pull(ctx, o.UserID, o.AppID, o.ContextID); !inventory.Outdated(err) {
			return unavailable(err)
		}
	case o.Inventory != nil && o.Inventory.SnapshotAt.Before(oldest):
		return noInventory("The inventory in the request is from %s. It must not be older than %s.",
			o.Inventory.SnapshotAt.UTC().Format(time.RFC3339), s.o.MaxAge)
	case o.Inventory != nil:
		if err := s.o.Inventories.Push(ctx, o.UserID, *o.Inventory); !inventory.Outdated(err) {
			return err
		}
	case !known:
		return user.NotFound()
	}
	// There is no other provider, or a concurrent sync of the same seller was faster
	// and stored a newer inventory.
	fresh, err := s.o.Inventories.Renew(ctx, o.UserID, o.AppID, o.ContextID, oldest)
	if err == nil && !fresh {
		return noInventory("The user has no Steam id and no inventory of this game and context that was pushed within %s. Include one in the request.", s.o.MaxAge)
	}
	return err
}

func noInventory(format string, args ...any) error {
	return fault.New(fault.Unavailable, "inventory_unavailable", format, args...)
}

// unavailable maps a failed pull to inventory_unavailable, except where a retry
// cannot help: then the request is at fault.
func unavailable(err error) error {
	f := fault.Of(err)
	if f == nil || f.Kind == fault.Invalid || errors.Is(err, context.Canceled) {
		return err
	}
	out := *f
	out.Kind, out.Code = fault.Unavailable, "inventory_unavailable"
	out.Detail = "No fresh inventory of the seller is available (" + f.Code + "): " + f.Detail
	out.Fields = nil
	return &out
}

// list lists one asset, or returns a fault.Conflict.
func list(tx *db.Tx, user int64, o *Offers, c *Created) error {
	at := Place{AppID: o.AppID, ContextID: o.ContextID, AssetID: c.Offer.AssetID}
	asset, err := asset(tx, user, at)
	if err != nil {
		return err
	}
	switch {
	case asset == nil:
		return fault.New(fault.Conflict, "not_owned", "The seller's inventory has no such asset.")
	case asset.InTransfer:
		return fault.New(fault.Conflict, "asset_in_transfer", "The asset was sold, and no sync has found it since.")
	case !asset.Tradable:
		return fault.New(fault.Conflict, "not_tradable", "The asset is not tradable now.")
	case asset.ItemID == 0:
		return fault.New(fault.Conflict, "not_marketable", "The asset has no market hash name.")
	}
	l := Listing{
		SellerKey: user, Seller: o.UserID, Place: at, ItemID: asset.ItemID, Item: asset.Item, Amount: asset.Amount,
		Price: c.Offer.Price, Currency: c.Offer.Currency, State: Active, CreatedAt: tx.Now(),
	}
	id, made, err := insertListing(tx, l)
	switch {
	case err != nil:
		return err
	case !made:
		return fault.New(fault.Conflict, "already_listed", "The asset is already listed.")
	}
	l.ID = id
	c.Listing, c.Price, c.CheckedAt = l, asset.Price, asset.CheckedAt
	return nil
}

// Cancel ends a listing and returns it. Cancelling it again changes nothing; one
// that ended otherwise is a fault.Conflict.
func (s *Service) Cancel(ctx context.Context, id int64) (l Listing, err error) {
	err = s.o.InTx(ctx, func(tx *db.Tx) error {
		l, err = cancel(tx, id)
		return err
	})
	return l, err
}

// Withdrawn is the result of one listing that was to be cancelled.
type Withdrawn struct {
	Listing Listing      // unless it was refused
	Refused *fault.Error // not found, or ended otherwise; nil: it is cancelled
}

// MostCancels is how many listings can be cancelled at once.
const MostCancels = 500

// CancelAll cancels listings in one transaction, each as Cancel would, and returns
// the results in the order of the ids.
func (s *Service) CancelAll(ctx context.Context, ids []int64) (out []Withdrawn, err error) {
	inOrder := slices.Compact(slices.Sorted(slices.Values(ids))) // of all such transactions, so that none deadlock
	err = s.o.InTx(ctx, func(tx *db.Tx) error {
		results := make(map[int64]Withdrawn, len(ids))
		for _, id := range inOrder {
			l, err := cancel(tx, id)
			refused := fault.Of(err)
			if err != nil && (refused == nil || refused.Kind != fault.Conflict && refused.Kind != fault.NotFound) {
				return err
			}
			results[id] = Withdrawn{Listing: l, Refused: refused}
		}
		out = make([]Withdrawn, len(ids))
		for i, id := range ids {
			out[i] = results[id]
		}
		return nil
	})
	return out, err
}

// cancel ends a listing, or returns a fault.NotFound or fault.Conflict.
func cancel(tx *db.Tx, id int64) (l Listing, err error) {
	item, err := endListing(tx, id, Cancelled)
	if err != nil {
		return l, wrap("end listing", err)
	}
	found, err := findListing(tx, id)
	switch {
	case err != nil:
		return l, wrap("listing", err)
	case found == nil:
		return l, notFound("listing", id)
	case item == 0 && found.State != Cancelled:
		return l, ended409(found)
	}
	return *found, nil
}

// Reprice gives an active listing another price, and returns it. A listing that has
// ended is a fault.Conflict.
func (s *Service) Reprice(ctx context.Context, id, price int64) (l Listing, err error) {
	err = s.o.InTx(ctx, func(tx *db.Tx) error {
		priced, err := PriceListing(tx, id, price)
		if err != nil {
			return wrap("price listing", err)
		}
		found, err := findListing(tx, id)
		switch {
		case err != nil:
			return wrap("listing", err)
		case found == nil:
			return notFound("listing", id)
		case !priced:
			return ended409(found)
		}
		l = *found
		return nil
	})
	return l, err
}

// ended409 returns the fault for a listing that is no longer active.
func ended409(l *Listing) error {
	code := "listing_" + string(l.State)
	return fault.New(fault.Conflict, code, "The listing is no longer active: it is %s.", l.State)
}
