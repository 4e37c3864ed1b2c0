package market

import (
	"cmp"
	"context"
	"database/sql"
	"math"
	"slices"
	"time"

	"assay/internal/db"
)

// InventoryTouched updates the listings and transfers of an inventory after a sync. If the
// sync found the phase of an asset, its listing gets that phase. A listing expires if its
// asset is gone, not tradable, has a smaller amount or is another item. Assets of pending
// trades are marked as in transfer. The mark is removed when the trade is reversed or
// settled.
func InventoryTouched(t *db.Tx, user int64, app int32, contextID string) error {
	var offered, sold bool
	if err := t.QueryRow(`
		SELECT EXISTS (SELECT 1 FROM listing WHERE seller_key = $1 AND app_id = $2 AND context_id = $3 AND state = 'active'),
			EXISTS (SELECT 1 FROM trade WHERE seller_key = $1)`, user, app, contextID).Scan(&offered, &sold); err != nil {
		return err
	}
	if offered {
		if err := expireListings(t, user, app, contextID); err != nil {
			return err
		}
	}
	if !sold {
		return nil
	}
	return markTransfers(t, user, app, contextID)
}

// expireListings sets newly found phases of listings, then expires listings without a
// matching, tradable asset in the inventory.
func expireListings(t *db.Tx, user int64, app int32, contextID string) error {
	if _, err := t.Exec(`
		UPDATE listing SET item_id = v.item_id FROM inventory v, item now, item was
		WHERE listing.seller_key = $1 AND listing.app_id = $2 AND listing.context_id = $3 AND listing.state = 'active'
			AND v.user_key = $1 AND v.app_id = $2 AND v.context_id = $3 AND v.asset_id = listing.asset_id AND v.item_id <> listing.item_id
			AND now.id = v.item_id AND was.id = listing.item_id AND was.phase = '' AND now.name = was.name`,
		user, app, contextID); err != nil {
		return err
	}
	ended, err := db.Collect(t.Context(), t, func(r *sql.Rows, id *int64) error { return r.Scan(id) }, `
		UPDATE listing SET state = 'expired', ended_at = $4
		WHERE seller_key = $1 AND app_id = $2 AND context_id = $3 AND state = 'active' AND NOT EXISTS (
			SELECT 1 FROM inventory v
			WHERE v.user_key = $1 AND v.app_id = $2 AND v.context_id = $3 AND v.asset_id = listing.asset_id
				AND v.item_id = listing.item_id AND v.amount >= listing.amount AND v.tradable)
		RETURNING id`,
		user, app, contextID, db.Micros(t.Now()))
	if err != nil || len(ended) == 0 {
		return err
	}
	expired, err := db.Collect(t.Context(), t, scanListing, listingColumns+` WHERE l.id `+t.Dialect.OneOf(1)+` ORDER BY l.id`, t.Dialect.EncodeIDs(ended))
	if err != nil {
		return err
	}
	for i := range expired {
		if err := reportEnd(t, &expired[i]); err != nil {
			return err
		}
	}
	return nil
}

// markTransfers sets in_transfer for assets of pending trades. It clears in_transfer for
// assets without a pending or completed trade.
func markTransfers(t *db.Tx, user int64, app int32, contextID string) error {
	if _, err := t.Exec(`
		UPDATE inventory SET in_transfer = TRUE
		WHERE user_key = $1 AND app_id = $2 AND context_id = $3 AND NOT in_transfer AND asset_id IN (
			SELECT d.asset_id FROM trade d
			WHERE d.seller_key = $1 AND d.app_id = $2 AND d.context_id = $3 AND d.state = 'pending')`, user, app, contextID); err != nil {
		return err
	}
	_, err := t.Exec(`
		UPDATE inventory SET in_transfer = FALSE
		WHERE user_key = $1 AND app_id = $2 AND context_id = $3 AND in_transfer AND NOT EXISTS (
			SELECT 1 FROM trade d
			WHERE d.seller_key = $1 AND d.app_id = $2 AND d.context_id = $3 AND d.asset_id = inventory.asset_id
				AND d.state IN ('pending', 'completed'))`, user, app, contextID)
	return err
}

// asset returns an asset of a user, or nil if the inventory has no such asset.
func asset(t *db.Tx, user int64, at Place) (*Asset, error) {
	var a Asset
	var checked int64
	err := t.QueryRow(`
		SELECT v.item_id, v.amount, v.tradable, v.in_transfer, coalesce(i.name, ''), coalesce(i.phase, ''),
			coalesce(i.price, 0), coalesce(i.price_checked_at, 0)
		FROM inventory v LEFT JOIN item i ON i.id = v.item_id
		WHERE v.user_key = $1 AND v.app_id = $2 AND v.context_id = $3 AND v.asset_id = $4`,
		user, at.AppID, at.ContextID, at.AssetID).
		Scan(&a.ItemID, &a.Amount, &a.Tradable, &a.InTransfer, &a.Item.Name, &a.Item.Phase, &a.Price, &checked)
	if found, err := db.Found(err); !found {
		return nil, err
	}
	a.Item.AppID, a.CheckedAt = at.AppID, db.Moment(checked)
	return &a, nil
}

// setInTransfer marks an asset as sold and not yet handed over.
func setInTransfer(t *db.Tx, user int64, at Place) error {
	_, err := t.Exec(`
		UPDATE inventory SET in_transfer = TRUE WHERE user_key = $1 AND app_id = $2 AND context_id = $3 AND asset_id = $4`,
		user, at.AppID, at.ContextID, at.AssetID)
	return err
}

// clearInTransfer marks an asset as not in transfer.
func clearInTransfer(t *db.Tx, user int64, at Place) error {
	_, err := t.Exec(`
		UPDATE inventory SET in_transfer = FALSE WHERE user_key = $1 AND app_id = $2 AND context_id = $3 AND asset_id = $4`,
		user, at.AppID, at.ContextID, at.AssetID)
	return err
}

// insertListing creates an active listing. made is false if the asset has one already.
func insertListing(t *db.Tx, l Listing) (id int64, made bool, err error) {
	err = t.QueryRow(`
		INSERT INTO listing (seller_key, app_id, context_id, asset_id, item_id, amount, price, currency, state, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'active', $9)
		ON CONFLICT (seller_key, app_id, context_id, asset_id) WHERE state = 'active' DO NOTHING RETURNING id`,
		l.SellerKey, l.AppID, l.ContextID, l.AssetID, l.ItemID, l.Amount, l.Price, l.Currency, db.Micros(t.Now())).Scan(&id)
	if found, err := db.Found(err); !found {
		return 0, false, err
	}
	return id, true, nil
}

// endListing changes an active listing to the given state and returns its item id. It
// returns 0 if the listing is not active.
func endListing(t *db.Tx, id int64, state ListingState) (item int64, err error) {
	err = t.QueryRow(`UPDATE listing SET state = $2, ended_at = $3 WHERE id = $1 AND state = 'active' RETURNING item_id`,
		id, state, db.Micros(t.Now())).Scan(&item)
	if found, err := db.Found(err); !found {
		return 0, err
	}
	return item, nil
}

const listingColumns = `
SELECT l.id, l.seller_key, u.user_id, l.app_id, l.context_id, l.asset_id, l.item_id, i.name, i.phase, l.amount, l.price, l.currency, l.state,
	l.created_at, l.ended_at, coalesce((SELECT d.id FROM trade d WHERE d.listing_id = l.id), 0)
FROM listing l JOIN platform_user u ON u.id = l.seller_key JOIN item i ON i.id = l.item_id`

const listingByID = listingColumns + ` WHERE l.id = $1`

func scanListing(r *sql.Rows, l *Listing) error {
	var created, ended int64
	err := r.Scan(&l.ID, &l.SellerKey, &l.Seller, &l.AppID, &l.ContextID, &l.AssetID, &l.ItemID, &l.Item.Name, &l.Item.Phase,
		&l.Amount, &l.Price, &l.Currency, &l.State, &created, &ended, &l.TradeID)
	l.Item.AppID, l.CreatedAt, l.EndedAt = l.AppID, db.Moment(created), db.Moment(ended)
	return err
}

// findListing returns a listing, or nil if the id is unknown.
func findListing(t *db.Tx, id int64) (*Listing, error) {
	return db.First(db.Collect(t.Context(), t, scanListing, listingByID, id))
}

// ReadListing returns a listing, or nil if the id is unknown.
func ReadListing(ctx context.Context, s *db.DB, id int64) (*Listing, error) {
	return db.First(db.Collect(ctx, s.Read, scanListing, listingByID, id))
}

// ListingFilter selects listings. A zero field selects all.
type ListingFilter struct {
	Seller             int64 // key
	AppID              int32
	Name, Phase        string
	AnyPhase           bool
	State              ListingState
	Currency           string
	MinPrice, MaxPrice int64
	Created            Period
	// Before selects smaller ids. In a list with a Created period, Before applies only to
	// listings that were created exactly at Created.To, and only if Created.Through is set.
	Before int64
}

// Period selects rows by creation time: From is inclusive and To is exclusive. The rows
// are then sorted by creation time. A zero time is no limit.
type Period struct {
	From, To time.Time
	Through  bool // also select rows created exactly at To, with ids below the filter's Before
}

func (p Period) limited() bool { return !p.From.IsZero() || !p.To.IsZero() }

// bounds returns the limits of a query in microseconds: created_at >= from and
// (created_at, id) < (to, id).
func (p Period) bounds(before int64) (from, to, id int64) {
	switch {
	case p.To.IsZero():
		return db.Micros(p.From), math.MaxInt64, before
	case p.Through:
		return db.Micros(p.From), db.Micros(p.To), before
	}
	return db.Micros(p.From), db.Micros(p.To), 0
}

// Parts of the queries of Listings. For each WHERE clause there is an index with the order
// of the result. Partial indexes exist for the rare states. PostgreSQL and SQLite use them
// only if the state is a literal in the query.
const (
	listingsOfAll    = ` WHERE l.id < $1`
	listingsOfApp    = ` WHERE l.app_id = $2 AND l.id < $1`
	listingsOfSeller = ` WHERE l.seller_key = $7 AND l.id < $1`
	listingsOfItem   = ` WHERE l.item_id = $9 AND l.id < $1`

	listingsCreated         = ` WHERE l.created_at >= $9 AND (l.created_at, l.id) < ($10, $1)`
	listingsCreatedBySeller = listingsCreated + ` AND l.seller_key = $7`
	listingsCreatedOfItem   = listingsCreated + ` AND l.item_id = $11`

	listingsActive    = ` AND l.state = 'active'`
	listingsCancelled = ` AND l.state = 'cancelled'`
	listingsExpired   = ` AND l.state = 'expired'`

	listingRest = ` AND ($2 = 0 OR l.app_id = $2) AND ($3 = '' OR l.state = $3) AND ($4 = '' OR l.currency = $4)
		AND l.price >= $5 AND ($6 = 0 OR l.price <= $6) AND ($7 = 0 OR l.seller_key = $7)`

	listingsByID   = ` ORDER BY l.id DESC LIMIT $8`
	listingsByTime = ` ORDER BY l.created_at DESC, l.id DESC LIMIT $8`
)

// listings returns the query of a filter. If item is not 0, the query selects only the
// listings of that item.
func (f *ListingFilter) listings(item int64, limit int) (query string, args []any) {
	args = []any{f.Before, f.AppID, string(f.State), f.Currency, f.MinPrice, f.MaxPrice, f.Seller, limit}
	where, state := listingsOfAll, ""
	switch f.State {
	case Active:
		state = listingsActive
	case Cancelled:
		state = listingsCancelled
	case Expired:
		state = listingsExpired
	}
	order := listingsByID
	if f.Created.limited() {
		var from, to int64
		from, to, args[0] = f.Created.bounds(f.Before)
		args, order = append(args, from, to), listingsByTime
		switch {
		case item != 0:
			where, args = listingsCreatedOfItem, append(args, item)
		case f.Seller != 0:
			where = listingsCreatedBySeller
		default:
			where = listingsCreated
		}
		query = listingColumns + where + listingRest + order
		return query, args
	}
	switch {
	case item != 0:
		where, args = listingsOfItem, append(args, item)
	case f.Seller != 0:
		where = listingsOfSeller
	case f.AppID != 0:
		where = listingsOfApp
	}
	query = listingColumns + where + state + listingRest + order
	return query, args
}

// Listings returns listings, newest first.
func Listings(ctx context.Context, s *db.DB, f ListingFilter, limit int) ([]Listing, error) {
	if f.Name == "" {
		query, args := f.listings(0, limit)
		return db.Collect(ctx, s.Read, scanListing, query, args...)
	}
	items, err := db.Collect(ctx, s.Read, func(r *sql.Rows, item *int64) error { return r.Scan(item) },
		`SELECT id FROM item WHERE name = $1 AND ($2 OR phase = $3) AND ($4 = 0 OR app_id = $4)`, f.Name, f.AnyPhase, f.Phase, f.AppID)
	if err != nil {
		return nil, err
	}
	var all []Listing // a name has few items: one per game and phase
	for _, item := range items {
		query, args := f.listings(item, limit)
		some, err := db.Collect(ctx, s.Read, scanListing, query, args...)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	slices.SortFunc(all, func(a, b Listing) int {
		if f.Created.limited() {
			return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(b.ID, a.ID))
		}
		return cmp.Compare(b.ID, a.ID)
	})
	return all[:min(limit, len(all))], nil
}
