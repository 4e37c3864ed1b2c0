package market

import (
	"context"
	"errors"
	"slices"
	"time"

	"assay/internal/db"
	"assay/internal/fault"
	"assay/internal/inventory"
	"assay/internal/inventory/steaminv"
	"assay/internal/money"
	"assay/internal/user"
)

// Offer is an asset to list.
type Offer struct {
	AssetID  string
	Price    int64 // minor units, 1 to MaxPrice
	Currency money.Currency
}

// Offers is a request of a seller to list assets of one inventory.
type Offers struct {
	UserID    string
	AppID     int32
	ContextID string
	Offers    []Offer
	// Inventory is the complete inventory if the platform included it in the request,
	// otherwise nil. Create uses it only for sellers without a Steam id.
	Inventory *inventory.Push
}

// MaxOffers is the maximum number of assets in one request.
const MaxOffers = 500

// Created is the result of an offer.
type Created struct {
	Offer     Offer
	Listing   Listing      // zero if the offer was refused
	Price     money.Micro  // current price of one piece of the item; 0: unknown and queued
	CheckedAt time.Time    // when Price was last checked
	Refused   *fault.Error // why the offer was refused; nil: the asset is listed
}

// Create syncs the seller's inventory and lists the offers. A refused offer does not
// affect the others. Create calls seal at the end of the transaction, with the results in
// the order of offers. Listings never wait for prices.
func (s *Service) Create(ctx context.Context, o Offers, seal func(*db.Tx, []Created) error) error {
	if err := user.Check(o.UserID); err != nil {
		return err
	}
	if err := s.sync(ctx, &o); err != nil {
		return wrap("sync the seller's inventory", err)
	}
	return s.o.Store.InSmallTx(ctx, func(tx *db.Tx) error {
		seller, err := user.Lock(tx, o.UserID)
		switch {
		case err != nil:
			return wrap("user", err)
		case !seller.Known():
			return user.NotFound()
		}
		created := make([]Created, len(o.Offers))
		for i, offer := range o.Offers {
			created[i] = Created{Offer: offer}
			err := listAsset(tx, seller.Key, &o, &created[i])
			if refused := fault.Of(err); refused != nil && refused.Kind == fault.Conflict {
				created[i].Refused = refused
			} else if err != nil {
				return wrap("list", err)
			}
		}
		return seal(tx, created)
	})
}

// sync updates the seller's inventory. It returns faults for the API and internal errors.
func (s *Service) sync(ctx context.Context, o *Offers) error {
	seller, err := user.Read(ctx, s.o.Store, o.UserID)
	unknown := fault.Of(err) != nil && fault.Of(err).Kind == fault.NotFound
	if err != nil && !unknown {
		return err
	}
	oldest := s.o.Now().Add(-s.o.MaxAge)
	switch {
	case seller.SteamID != "":
		place := steaminv.Place{AppID: o.AppID, ContextID: o.ContextID}
		if _, err := s.o.Syncs.Pull(ctx, o.UserID, place, inventory.Listing); !inventory.Outdated(err) {
			return unavailable(err)
		}
	case o.Inventory != nil && o.Inventory.SnapshotAt.Before(oldest):
		return noInventory("The inventory in the request is from %s. It must not be older than %s.",
			o.Inventory.SnapshotAt.UTC().Format(time.RFC3339), s.o.MaxAge)
	case o.Inventory != nil:
		if _, err := s.o.Syncs.Push(ctx, o.UserID, *o.Inventory, inventory.Listing); !inventory.Outdated(err) {
			return err
		}
	case unknown:
		return err
	}
	// Either the stored inventory is the only one, or a concurrent sync of the same seller
	// has already stored a newer one. The stored inventory must be fresh.
	fresh, err := s.o.Syncs.Renew(ctx, o.UserID, o.AppID, o.ContextID, oldest)
	if err == nil && !fresh {
		return noInventory("The user has no Steam id and no inventory of this game and context that was pushed within %s. Include one in the request.", s.o.MaxAge)
	}
	return err
}

func noInventory(format string, args ...any) error {
	return fault.New(fault.Unavailable, "inventory_unavailable", format, args...)
}

// unavailable converts the error of a failed pull to inventory_unavailable. It returns
// other errors unchanged: cancellation, internal errors and invalid requests, which a
// retry cannot fix.
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

// listAsset lists one asset. It returns a fault.Conflict if the asset cannot be listed.
func listAsset(tx *db.Tx, user int64, o *Offers, c *Created) error {
	at := Place{AppID: o.AppID, ContextID: o.ContextID, AssetID: c.Offer.AssetID}
	asset, err := asset(tx, user, at)
	if err != nil {
		return err
	}
	switch {
	case asset == nil:
		return fault.New(fault.Conflict, "not_owned", "The seller's inventory does not contain the asset. Check the asset id.")
	case asset.InTransfer:
		return fault.New(fault.Conflict, "asset_in_transfer", "The asset is in transfer: it was sold, and no sync since then shows it as returned.")
	case !asset.Tradable:
		return fault.New(fault.Conflict, "not_tradable", "The asset is not tradable now. List it when Steam allows trading again.")
	case asset.ItemID == 0:
		return fault.New(fault.Conflict, "not_marketable", "The asset has no market hash name, so it cannot be listed.")
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

// Cancel cancels a listing and returns it. Cancelling a cancelled listing changes nothing.
// Cancel returns a fault.Conflict if the listing was sold or has expired.
func (s *Service) Cancel(ctx context.Context, id int64) (l Listing, err error) {
	err = s.o.Store.InSmallTx(ctx, func(tx *db.Tx) error {
		l, err = cancel(tx, id)
		return err
	})
	return l, err
}

// Cancellation is the result of CancelAll for one listing.
type Cancellation struct {
	Listing Listing      // zero if the cancellation was refused
	Refused *fault.Error // unknown, sold or expired listing; nil: cancelled
}

// MaxCancels is the maximum number of listings in one request of CancelAll.
const MaxCancels = 500

// CancelAll cancels listings in one transaction. The rules of Cancel apply to each
// listing. The results are in the order of ids.
func (s *Service) CancelAll(ctx context.Context, ids []int64) (out []Cancellation, err error) {
	inOrder := slices.Compact(slices.Sorted(slices.Values(ids))) // the same order everywhere prevents deadlocks
	err = s.o.Store.InSmallTx(ctx, func(tx *db.Tx) error {
		results := make(map[int64]Cancellation, len(ids))
		for _, id := range inOrder {
			l, err := cancel(tx, id)
			refused := fault.Of(err)
			if err != nil && (refused == nil || refused.Kind != fault.Conflict && refused.Kind != fault.NotFound) {
				return err
			}
			results[id] = Cancellation{Listing: l, Refused: refused}
		}
		out = make([]Cancellation, len(ids))
		for i, id := range ids {
			out[i] = results[id]
		}
		return nil
	})
	return out, err
}

// cancel cancels a listing and returns it. It returns a fault.NotFound for an unknown
// listing and a fault.Conflict for a sold or expired one.
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
		return l, NotFound("listing", id)
	case item == 0 && found.State != Cancelled:
		return l, endedFault(found)
	case item != 0:
		err = wrap("event", reportEnd(tx, found))
	}
	return *found, err
}

// Reprice changes the price of an active listing and returns the listing. It returns a
// fault.Conflict if the listing is no longer active.
func (s *Service) Reprice(ctx context.Context, id, price int64) (l Listing, err error) {
	err = s.o.Store.InSmallTx(ctx, func(tx *db.Tx) error {
		priced, err := PriceListing(tx, id, price)
		if err != nil {
			return wrap("price listing", err)
		}
		found, err := findListing(tx, id)
		switch {
		case err != nil:
			return wrap("listing", err)
		case found == nil:
			return NotFound("listing", id)
		case !priced:
			return endedFault(found)
		}
		l = *found
		return nil
	})
	return l, err
}

// endedFault returns the API error for a listing that is no longer active.
func endedFault(l *Listing) error {
	code := "listing_" + string(l.State)
	return fault.New(fault.Conflict, code, "The listing is no longer active: it is %s.", l.State)
}
