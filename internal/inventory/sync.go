package inventory

import (
	"context"
	"fmt"
	"time"

	"assay/internal/catalog"
	"assay/internal/fault"
	"assay/internal/money"
	"assay/internal/user"
)

// Item is what a sync needs of an item.
type Item struct {
	ID    int64
	Price money.Micro // 0: unknown
	New   bool        // made by this transaction, and not there for others yet
}

// Row is a stored asset.
type Row struct {
	ID         int64
	AssetID    string
	ItemID     int64 // 0: without a name
	ClassID    string
	InstanceID string
	Amount     int64
	Tradable   bool
	Marketable bool
	Inspect    string
}

// User is a user as the platform set it.
type User struct {
	ID          string // the platform's own
	SteamID     string // empty: none
	DisplayName string // empty: none
	Leaderboard bool   // false: opted out
	// KeepLeaderboard leaves Leaderboard as it is stored, if the user is known.
	KeepLeaderboard bool
}

// Tx is what a sync needs of a write transaction.
type Tx interface {
	// EnsureUser returns the key of a user, who is created if unknown or deleted, and
	// keeps others from writing the user's inventories.
	EnsureUser(userID string) (key int64, err error)
	// HoldUser is EnsureUser without creating one.
	HoldUser(userID string) (user.Held, error)
	InventoryAsOf(user int64, app int32, contextID string) (micros int64, err error)
	SetInventoryAsOf(user int64, app int32, contextID string, micros int64) error
	// EnsureItems returns the items of a game by their keys, creating those that
	// are new. It comes before HoldPrices.
	EnsureItems(app int32, keys []catalog.Key) (map[catalog.Key]Item, error)
	// HoldPrices keeps the prices of items as they are until the transaction
	// ends, so that a later change of one finds the rows that copied it, and
	// returns them. It is called once, before anything that depends on a price is
	// written.
	HoldPrices(items []int64) (map[int64]money.Micro, error)
	InventoryRows(user int64, app int32, contextID string) ([]Row, error)
	// LockRows locks the stored rows that a sync writes, in the order of their ids.
	// It comes after HoldPrices and before anything is written.
	LockRows(user int64, app int32, contextID string, ids []int64) error
	// AddInventory inserts rows with the prices of their items, which are held.
	AddInventory(user int64, app int32, contextID string, rows []Row, prices map[int64]money.Micro) error
	ChangeInventory(rows []Row) error
	RemoveInventory(ids []int64) error
	// QueueMissing queues items without a price, each once, and returns how many
	// were not queued before. Each that waits is due a first pause after its last
	// attempt. It reports whether an entry is due sooner by any of that.
	QueueMissing(items []int64) (added int64, sooner bool, err error)
	// InventoryTouched sees to what depends on an inventory that was just synced.
	InventoryTouched(user int64, app int32, contextID string) error
	// CopyPrices copies onto the rows the prices that their items have.
	CopyPrices(user int64, app int32, contextID string) error
	PutUser(u User) error
	// Inspections returns what is known of the inspection of those rows that there
	// is something to inspect of, by their ids.
	Inspections(user int64, app int32, contextID string) (map[int64]Inspected, error)
	// PutUninspected notes what there is to inspect of rows, in place of what was
	// found before.
	PutUninspected(user int64, app int32, contextID string, rows []Due) error
	// RemoveInspections deletes what is known of rows, by their ids.
	RemoveInspections(rows []int64) error
	// QueueInspections makes rows that are not to be inspected yet pending.
	QueueInspections(rows []int64) error
	// ClaimUninspected returns pending rows of one user and locks the user's
	// inventories until the transaction ends.
	ClaimUninspected(limit int) ([]Uninspected, error)
	SetInspections(found []Inspection) error
	// MoveInventory gives rows other items, with the prices that those have.
	MoveInventory(items map[int64]int64) error
}

// Service syncs inventories.
type Service struct {
	InTx func(ctx context.Context, fn func(Tx) error) error
	// Queued is called after names were queued for pricing.
	Queued func()
	// Inspectable is called after rows were left to be inspected.
	Inspectable func()
}

// Mode is the purpose of a sync.
type Mode int

const (
	// Normal is a sync for its own sake: what can be decoded of new rows is, later.
	Normal Mode = iota
	// Listing is the sync before a listing is created: it starts no enrichment
	// (contract, rule 4).
	Listing
)

// Result counts what a sync did, in rows; QueuedNames in items.
type Result struct {
	Added, Removed, Changed, Unchanged, PricedRows, QueuedNames int64
	Hidden                                                      int64 // assets that there are and that were not shown
}

// outcome is a result with what else became of a sync.
type outcome struct {
	Result
	sooner      bool // prices of names are due sooner
	inspectable bool // rows were left to be inspected
}

// Sync makes a user's stored inventory of a game and context that of the push; see
// Push.Hidden for what it does not show.
// Rows get the prices that are known; items without one are queued and priced
// later. So is what can be decoded of rows, after a Normal sync. The same push
// again changes nothing. An older push than the stored one
// is a fault.Conflict; an equally old one wins.
func (s *Service) Sync(ctx context.Context, userID string, push Push, mode Mode) (Result, error) {
	if err := user.Check(userID); err != nil {
		return Result{}, err
	}
	var o outcome
	err := s.InTx(ctx, func(tx Tx) (err error) {
		o, err = apply(tx, userID, push, mode)
		return err
	})
	if err != nil {
		return Result{}, err
	}
	if o.sooner {
		s.Queued()
	}
	if o.inspectable {
		s.Inspectable()
	}
	return o.Result, nil
}

func apply(tx Tx, userID string, push Push, mode Mode) (outcome, error) {
	user, err := owner(tx, userID, push.SteamID)
	if err != nil {
		return outcome{}, err
	}
	if err := moveOn(tx, user, &push); err != nil {
		return outcome{}, err
	}
	d, err := newDifference(tx, user, &push, mode)
	if err != nil {
		return outcome{}, err
	}
	if err := d.find(tx); err != nil {
		return outcome{}, err
	}
	if err := d.write(tx, user); err != nil {
		return outcome{}, err
	}
	var sooner bool
	if missing := unpriced(d.prices); len(missing) > 0 {
		if d.QueuedNames, sooner, err = tx.QueueMissing(missing); err != nil {
			return outcome{}, fmt.Errorf("queue: %w", err)
		}
	}
	if err := tx.InventoryTouched(user, push.AppID, push.ContextID); err != nil {
		return outcome{}, fmt.Errorf("listings: %w", err)
	}
	return outcome{Result: d.Result, sooner: sooner, inspectable: d.inspectable()}, nil
}

// owner returns the key of the user whose inventory is pushed. What Steam showed of an
// account creates no user, and is not stored for one that has the account no longer.
func owner(tx Tx, userID, steamID string) (int64, error) {
	if steamID == "" {
		key, err := tx.EnsureUser(userID)
		if err != nil {
			err = fmt.Errorf("user: %w", err)
		}
		return key, err
	}
	u, err := tx.HoldUser(userID)
	switch {
	case err != nil:
		return 0, fmt.Errorf("user: %w", err)
	case !u.Known():
		return 0, user.NotFound()
	case u.SteamID != steamID:
		return 0, fault.New(fault.Conflict, "steam_id_changed", "The user's Steam id changed during the pull. Retry the request.")
	}
	return u.Key, nil
}

// moveOn notes the moment of a push, which must not be older than the stored one.
func moveOn(tx Tx, user int64, push *Push) error {
	at := push.SnapshotAt.UnixMicro()
	was, err := tx.InventoryAsOf(user, push.AppID, push.ContextID)
	switch {
	case err != nil:
		return err
	case at < was:
		return fault.New(fault.Conflict, codeOutdated,
			"The stored inventory is newer (%s). Send a newer snapshot.", time.UnixMicro(was).UTC().Format(time.RFC3339Nano))
	case at > was:
		return tx.SetInventoryAsOf(user, push.AppID, push.ContextID, at)
	}
	return nil
}

const codeOutdated = "snapshot_outdated"

// Outdated reports whether a sync was refused because the stored inventory is newer.
func Outdated(err error) bool {
	f := fault.Of(err)
	return f != nil && f.Code == codeOutdated
}

// PutUser creates or updates a user.
func (s *Service) PutUser(ctx context.Context, u User) error {
	if err := user.Check(u.ID); err != nil {
		return err
	}
	return s.InTx(ctx, func(tx Tx) error { return tx.PutUser(u) })
}
