package inventory

import (
	"context"
	"fmt"
	"time"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/fault"
	"assay/internal/user"
)

// Row is a stored asset.
type Row struct {
	ID         int64
	AssetID    string
	ItemID     int64 // 0 for an asset without a name
	ClassID    string
	InstanceID string
	Amount     int64
	Tradable   bool
	Marketable bool
	Inspect    string
}

// Service syncs inventories.
type Service struct {
	InTx func(ctx context.Context, fn func(*db.Tx) error) error
	// Queued is called after items were queued for pricing.
	Queued func()
	// Inspectable is called after a sync that leaves pending inspections.
	Inspectable func()
	// Synced is called at the end of a sync's transaction. It updates data that depends on
	// the user's inventory of a game and context. It may be nil.
	Synced func(tx *db.Tx, user int64, app int32, contextID string) error
}

// Mode is the purpose of a sync.
type Mode int

const (
	// Normal is a sync with inspections: new rows are inspected later.
	Normal Mode = iota
	// Listing is a sync before a listing is created. It starts no inspection.
	Listing
)

// Result has the numbers of rows that a sync handled. QueuedNames is a number of items.
type Result struct {
	Added, Removed, Changed, Unchanged, PricedRows, QueuedNames int64
	Hidden                                                      int64 // hidden assets, see Push
}

// outcome is the result of a sync and the work that follows it.
type outcome struct {
	Result
	user        int64
	sooner      bool // whether queued items are due sooner than before
	inspectable bool // whether there are pending inspections
}

// Sync replaces a user's stored inventory of a game and context with the push. For hidden
// assets, see Push.Hidden. Rows get the known prices of their items. Items without a price
// are queued for pricing. After a Normal sync, new rows are inspected later.
//
// Sync is idempotent. If the stored inventory is newer than the push, it returns a fault of
// kind Conflict. If both have the same time, the push replaces the stored inventory.
func (s *Service) Sync(ctx context.Context, userID string, push Push, mode Mode) (Result, error) {
	if err := user.Check(userID); err != nil {
		return Result{}, err
	}
	var o outcome
	err := s.InTx(ctx, func(tx *db.Tx) (err error) {
		if o, err = apply(tx, userID, push, mode); err == nil && s.Synced != nil {
			err = s.Synced(tx, o.user, push.AppID, push.ContextID)
		}
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

func apply(tx *db.Tx, userID string, push Push, mode Mode) (outcome, error) {
	user, err := owner(tx, userID, push.SteamID)
	if err != nil {
		return outcome{}, err
	}
	if err := setTime(tx, user, &push); err != nil {
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
	missing := unpriced(d.prices)
	if len(missing) > 0 {
		if d.QueuedNames, sooner, err = catalog.QueueMissing(tx, missing); err != nil {
			return outcome{}, fmt.Errorf("queue: %w", err)
		}
	}
	if err := awaitPrices(tx, user, push.AppID, push.ContextID, missing); err != nil {
		return outcome{}, err
	}
	return outcome{Result: d.Result, user: user, sooner: sooner, inspectable: d.inspectable()}, nil
}

// owner returns the key of the push's user. A push by the platform creates the user. A pull
// from Steam does not: it fails if the user does not exist or has another Steam id.
func owner(tx *db.Tx, userID, steamID string) (int64, error) {
	if steamID == "" {
		key, err := user.Ensure(tx, userID)
		if err != nil {
			err = fmt.Errorf("user: %w", err)
		}
		return key, err
	}
	u, err := user.Lock(tx, userID)
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

// setTime stores the time of a push. It fails if the stored inventory is newer, except if the
// stored time is more than MaxAhead in the future.
func setTime(tx *db.Tx, user int64, push *Push) error {
	at := push.SnapshotAt.UnixMicro()
	was, err := inventoryAsOf(tx, user, push.AppID, push.ContextID)
	switch {
	case err != nil:
		return err
	case at < was:
		return fault.New(fault.Conflict, codeOutdated,
			"The stored inventory is newer (%s). Send a newer snapshot.", time.UnixMicro(was).UTC().Format(time.RFC3339Nano))
	case at > was:
		return setInventoryAsOf(tx, user, push.AppID, push.ContextID, at)
	}
	return nil
}

const codeOutdated = "snapshot_outdated"

// Outdated reports whether a sync failed because the stored inventory is newer.
func Outdated(err error) bool {
	f := fault.Of(err)
	return f != nil && f.Code == codeOutdated
}

// PutUser creates or updates a user.
func (s *Service) PutUser(ctx context.Context, u user.User) error {
	if err := user.Check(u.ID); err != nil {
		return err
	}
	return s.InTx(ctx, func(tx *db.Tx) error { return user.Put(tx, u) })
}
