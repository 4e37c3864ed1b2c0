package inventory

import (
	"context"
	"fmt"
	"time"

	"assay/internal/catalog"
	"assay/internal/fault"
	"assay/internal/money"
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

// User is what a platform says of a user.
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
	EnsureUser(userID string) (key int64, err error)
	InventoryAsOf(user int64, app int32, contextID string) (micros int64, err error)
	SetInventoryAsOf(user int64, app int32, contextID string, micros int64) error
	EnsureItems(app int32, keys []catalog.Key) (map[catalog.Key]Item, error)
	// HoldPrices keeps the prices of items as they are until the transaction
	// ends, so that whoever changes one later finds the rows that copied it. It is
	// called once, before anything that depends on a price is written.
	HoldPrices(items []int64) error
	InventoryRows(user int64, app int32, contextID string) ([]Row, error)
	AddInventory(user int64, app int32, contextID string, rows []Row) error
	ChangeInventory(rows []Row) error
	RemoveInventory(ids []int64) error
	QueueMissing(items []int64) (int64, error)
	PutUser(u User) error
}

// Service syncs inventories.
type Service struct {
	InTx func(ctx context.Context, fn func(Tx) error) error
	// Queued is called after names were queued for pricing.
	Queued func()
}

// Mode says what a sync is for.
type Mode int

const (
	// Normal is a sync for its own sake: what can be decoded of new rows is, later.
	Normal Mode = iota
	// Listing is the sync before a listing is created: it starts no enrichment
	// (contract, rule 4).
	Listing
)

// Result tells what a sync did, in rows; QueuedNames in items.
type Result struct {
	Added, Removed, Changed, Unchanged, PricedRows, QueuedNames int64
}

// Sync makes a user's stored inventory of a game and context that of the push.
// Rows get the prices that are known; items without one are queued and priced
// later. The same push again changes nothing. An older push than the stored one
// is a fault.Conflict; an equally old one wins.
func (s *Service) Sync(ctx context.Context, userID string, push Push, mode Mode) (Result, error) {
	if err := CheckUserID(userID); err != nil {
		return Result{}, err
	}
	var r Result
	err := s.InTx(ctx, func(tx Tx) (err error) {
		r, err = apply(tx, userID, push, mode)
		return err
	})
	if err != nil {
		return Result{}, err
	}
	if r.QueuedNames > 0 {
		s.Queued()
	}
	return r, nil
}

func apply(tx Tx, userID string, push Push, mode Mode) (Result, error) {
	user, err := tx.EnsureUser(userID)
	if err != nil {
		return Result{}, fmt.Errorf("user: %w", err)
	}
	at := push.SnapshotAt.UnixMicro()
	was, err := tx.InventoryAsOf(user, push.AppID, push.ContextID)
	if err != nil {
		return Result{}, err
	}
	if at < was {
		return Result{}, fault.New(fault.Conflict, "snapshot_outdated",
			"the stored inventory is of %s, newer than this one: send a newer snapshot", time.UnixMicro(was).UTC().Format(time.RFC3339Nano))
	}
	if at > was {
		if err := tx.SetInventoryAsOf(user, push.AppID, push.ContextID, at); err != nil {
			return Result{}, err
		}
	}
	items, err := tx.EnsureItems(push.AppID, push.keys())
	if err != nil {
		return Result{}, fmt.Errorf("items: %w", err)
	}
	stored, err := tx.InventoryRows(user, push.AppID, push.ContextID)
	if err != nil {
		return Result{}, err
	}
	d := compare(stored, push, items)
	missing := unpriced(items)
	if held := d.priced(items); len(held) > 0 {
		if err := tx.HoldPrices(held); err != nil {
			return Result{}, fmt.Errorf("hold prices: %w", err)
		}
	}
	if err := d.write(tx, user, push); err != nil {
		return Result{}, err
	}
	if len(missing) > 0 {
		if d.QueuedNames, err = tx.QueueMissing(missing); err != nil {
			return Result{}, fmt.Errorf("queue: %w", err)
		}
	}
	return d.Result, nil
}

// keys lists the distinct items of a push.
func (p *Push) keys() []catalog.Key {
	seen := make(map[catalog.Key]struct{}, len(p.Assets))
	var out []catalog.Key
	for i := range p.Assets {
		k, ok := p.Assets[i].Key(p.AppID)
		if _, twice := seen[k]; ok && !twice {
			seen[k] = struct{}{}
			out = append(out, k)
		}
	}
	return out
}

// difference is what a sync has to write.
type difference struct {
	Result
	add, change []Row
	remove      []int64
}

// compare finds what differs between what is stored and a push.
func compare(stored []Row, push Push, items map[catalog.Key]Item) difference {
	byAsset := make(map[string]Row, len(stored))
	for _, r := range stored {
		byAsset[r.AssetID] = r
	}
	var d difference
	for i := range push.Assets {
		a := &push.Assets[i]
		key, _ := a.Key(push.AppID)
		item := items[key]
		if item.Price > 0 {
			d.PricedRows++
		}
		want := Row{
			AssetID: a.AssetID, ItemID: item.ID, ClassID: a.ClassID, InstanceID: a.InstanceID,
			Amount: a.Amount, Tradable: a.Tradable, Marketable: a.Marketable, Inspect: a.Inspect,
		}
		have, ok := byAsset[a.AssetID]
		delete(byAsset, a.AssetID)
		want.ID = have.ID
		switch {
		case !ok:
			d.Added++
			d.add = append(d.add, want)
		case have != want:
			d.Changed++
			d.change = append(d.change, want)
		default:
			d.Unchanged++
		}
	}
	for _, gone := range byAsset {
		d.remove = append(d.remove, gone.ID)
	}
	d.Removed = int64(len(d.remove))
	return d
}

// priced returns the items whose prices the sync depends on: those that rows copy
// and those without one. Nobody can change one that is not there for others yet.
func (d *difference) priced(items map[catalog.Key]Item) []int64 {
	copied := make(map[int64]bool, len(d.add)+len(d.change))
	for _, rows := range [][]Row{d.add, d.change} {
		for i := range rows {
			copied[rows[i].ItemID] = true
		}
	}
	var ids []int64
	for _, i := range items {
		if !i.New && (i.Price <= 0 || copied[i.ID]) {
			ids = append(ids, i.ID)
		}
	}
	return ids
}

// write carries the difference out, one statement for each kind of change.
func (d *difference) write(tx Tx, user int64, push Push) error {
	if len(d.remove) > 0 {
		if err := tx.RemoveInventory(d.remove); err != nil {
			return fmt.Errorf("remove: %w", err)
		}
	}
	if len(d.change) > 0 {
		if err := tx.ChangeInventory(d.change); err != nil {
			return fmt.Errorf("change: %w", err)
		}
	}
	if len(d.add) > 0 {
		if err := tx.AddInventory(user, push.AppID, push.ContextID, d.add); err != nil {
			return fmt.Errorf("add: %w", err)
		}
	}
	return nil
}

// CheckUserID reports whether id can be a user's: 1 to 128 bytes of UTF-8.
func CheckUserID(id string) error {
	if !opaque(id) {
		return fault.New(fault.Invalid, "invalid_user_id", "a user id has 1 to %d bytes of valid UTF-8, without NUL", MaxUserID)
	}
	return nil
}

// PutUser sets what the platform says of a user, who is created if new.
func (s *Service) PutUser(ctx context.Context, u User) error {
	if err := CheckUserID(u.ID); err != nil {
		return err
	}
	return s.InTx(ctx, func(tx Tx) error { return tx.PutUser(u) })
}
