// Package idempotency holds idempotency keys and the responses stored under them.
// A client chooses a key per operation and repeats it when it retries; the server
// returns the stored response instead of doing the work again. The response is
// stored in the transaction that does the work, so a crash leaves either both or
// neither, and no key stays locked.
package idempotency

import (
	"crypto/sha256"
	"time"

	"assay/internal/wallet"
)

// Retention is how long a response is stored if its request moved no money.
const Retention = 30 * 24 * time.Hour

// MaxKey is the longest key, in bytes.
const MaxKey = 255

// Key identifies a request. The same client key with another route, role or user is
// another Key.
type Key struct {
	Route string // method and pattern of the path: "POST /api/listings"
	Role  string // of the credential
	User  string // the platform's id of the user that the request concerns
	Key   string // chosen by the client
	Money bool   // the route moves money: responses are sealed with the ledger's key
}

// Scope returns the part of the key that the server adds to the client's.
func (k Key) Scope() string { return k.Route + " " + k.Role + " " + k.User }

// Digest is the SHA-256 of everything in a request that must be equal in a retry.
type Digest [sha256.Size]byte

// Response is the stored response to a request.
type Response struct {
	Request     Digest
	Status      int
	ContentType string
	Location    string // empty: none
	Body        []byte
	Expires     time.Time // zero: never, because the request moved money
	Seal        wallet.Seal
}

// ResponseStore is the part of a transaction that stores a response. Call it last.
// If another request has stored a response under the key, the error is ErrKeyUsed
// and the transaction must not be committed.
type ResponseStore interface {
	StoreResponse(k Key, a Response) error
}

// ErrKeyUsed means that another request stored a response under the same key.
var ErrKeyUsed = wallet.ErrKeyUsed
