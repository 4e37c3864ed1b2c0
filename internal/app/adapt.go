package app

import (
	"context"
	"fmt"

	"assay/internal/admission"
	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/idempotency"
	"assay/internal/inventory"
	"assay/internal/inventory/steaminv"
	"assay/internal/inventory/syncs"
	"assay/internal/market"
	"assay/internal/refresh"
	"assay/internal/user"
	"assay/internal/view"
	"assay/internal/wallet"
	"assay/internal/wallet/audit"
)

// The types in this file adapt other packages to the interfaces of the API.

// commands implements api.Refresher. Unlike the engine, its AcceptItem returns the changed
// item.
type commands struct {
	*refresh.Engine
	items *view.ItemReader
}

func (c commands) AcceptItem(ctx context.Context, key catalog.Key) (view.ItemDetail, error) {
	if err := c.Engine.AcceptItem(ctx, key); err != nil {
		return view.ItemDetail{}, err
	}
	return c.items.Explain(ctx, key) // without the gate, because a completed write must not fail as busy
}

// wallets implements api.Wallets. A verification reads a whole chain and therefore needs an
// admission slot.
type wallets struct {
	*ledger
	*view.WalletReader
	gate *admission.Gate
}

func (w wallets) Verify(ctx context.Context, userID, checkpoint string) (*audit.Report, error) {
	leave, err := w.gate.Enter(ctx, admission.Verification)
	if err != nil {
		return nil, err
	}
	defer leave()
	return w.ledger.Verify(ctx, userID, checkpoint)
}

// inventories implements api.Inventories, api.MissingQueue and api.Users.
type inventories struct {
	*inventory.Service
	syncs *syncs.Service
	*view.UserReader
	store  *db.DB
	market *market.Service
}

func (i inventories) Pull(ctx context.Context, userID string, appID int32, contextID string) (view.SyncResult, error) {
	r, err := i.syncs.Pull(ctx, userID, steaminv.Place{AppID: appID, ContextID: contextID}, inventory.Normal)
	return view.SyncResult(r), err
}

func (i inventories) Sync(ctx context.Context, userID string, push inventory.Push) (view.SyncResult, error) {
	r, err := i.syncs.Push(ctx, userID, push, inventory.Normal)
	return view.SyncResult(r), err
}

func (i inventories) PutUser(ctx context.Context, u user.User) (view.User, error) {
	if err := i.Service.PutUser(ctx, u); err != nil {
		return view.User{}, err
	}
	return i.User(ctx, u.ID)
}

func (i inventories) DeleteUser(ctx context.Context, id string) error {
	return i.market.DeleteUser(ctx, id)
}

func (i inventories) User(ctx context.Context, id string) (view.User, error) {
	stored, err := user.Read(ctx, i.store, id)
	return view.UserOf(&stored), err
}

// responses implements api.Responses. It seals responses about money with the key of the
// ledger.
type responses struct {
	db   *db.DB
	keys *wallet.Ring
}

func (r responses) StoredResponse(ctx context.Context, k idempotency.Key) (*idempotency.Response, error) {
	stored, err := idempotency.Find(ctx, r.db, k)
	if err != nil || stored == nil || !k.Money {
		return stored, err
	}
	if err := r.keys.CheckResponse(stored.Sealed(k)); err != nil {
		return nil, err
	}
	return stored, nil
}

func (r responses) StoreResponse(ctx context.Context, k idempotency.Key, response idempotency.Response) error {
	return r.db.InTx(ctx, func(tx *db.Tx) error { return sealingTx{tx, r.keys}.StoreResponse(k, response) })
}

func (r responses) PostedUnder(ctx context.Context, scope, key string) (id int64, err error) {
	return wallet.PostedUnder(ctx, r.db, scope, key)
}

// deleteExpired deletes expired responses.
func (r responses) deleteExpired(ctx context.Context) error {
	for more := true; more; {
		err := r.db.InTx(ctx, func(tx *db.Tx) (err error) {
			more, err = idempotency.DeleteExpired(tx)
			return err
		})
		if err != nil {
			return fmt.Errorf("delete expired responses: %w", err)
		}
	}
	return nil
}

// sealingTx stores responses in a transaction. It seals responses about money.
type sealingTx struct {
	tx   *db.Tx
	keys *wallet.Ring
}

func (s sealingTx) StoreResponse(k idempotency.Key, r idempotency.Response) error {
	if k.Money {
		sealed := r.Sealed(k)
		s.keys.Sealer().Seal(sealed)
		r.Seal = sealed.Seal
	}
	return idempotency.Store(s.tx, k, r)
}
