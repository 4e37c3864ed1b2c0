package idempotency

import (
	"context"
	"fmt"

	"assay/internal/db"
	"assay/internal/wallet"
)

// Responses are the responses that are stored in a database. Responses about money are
// sealed with the key of the ledger.
type Responses struct {
	DB   *db.DB
	Keys *wallet.Ring
}

// Find returns the stored response for a key, or nil. It returns an error if a response
// about money was altered in the database.
func (r *Responses) Find(ctx context.Context, k Key) (*Response, error) {
	stored, err := Find(ctx, r.DB, k)
	if err != nil || stored == nil || !k.Money {
		return stored, err
	}
	if err := r.Keys.CheckResponse(stored.Sealed(k)); err != nil {
		return nil, err
	}
	return stored, nil
}

// Store stores the response for a key. Call it last in a transaction. It returns ErrKeyUsed
// if another request has stored a response under the key. In that case, roll back the
// transaction.
func (r *Responses) Store(tx *db.Tx, k Key, a Response) error {
	if k.Money {
		sealed := a.Sealed(k)
		r.Keys.Sealer().Seal(sealed)
		a.Seal = sealed.Seal
	}
	return Store(tx, k, a)
}

// DeleteExpired deletes all expired responses.
func (r *Responses) DeleteExpired(ctx context.Context) error {
	for more := true; more; {
		err := r.DB.InTx(ctx, func(tx *db.Tx) (err error) {
			more, err = DeleteExpired(tx)
			return err
		})
		if err != nil {
			return fmt.Errorf("delete expired responses: %w", err)
		}
	}
	return nil
}

// Sealed returns the response in the form that the ledger seals.
func (a *Response) Sealed(k Key) *wallet.StoredResponse {
	return &wallet.StoredResponse{
		Route: k.Route, Role: k.Role, User: k.User, Key: k.Key, Request: wallet.Hash(a.Request),
		Status: a.Status, ContentType: a.ContentType, Location: a.Location, Body: a.Body, Expires: a.Expires, Seal: a.Seal,
	}
}
