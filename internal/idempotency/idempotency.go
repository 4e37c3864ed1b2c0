// Package idempotency stores idempotency keys and their responses. A client sends a
// unique key for each operation, and sends it again when it retries. The server then
// returns the stored response and does not repeat the work. The response is stored in the
// same transaction as the work. A crash therefore leaves both or neither, and never
// leaves a locked key.
package idempotency

import (
	"crypto/sha256"
	"time"

	"assay/internal/wallet"
)

// Retention is how long a response is stored. Responses of money routes are stored
// without limit.
const Retention = 30 * 24 * time.Hour

// MaxKey is the maximum length of a client's key in bytes.
const MaxKey = 255

// Key identifies a request. It differs for another route, role or user even if the
// client's key is the same.
type Key struct {
	Route string // method and path pattern, such as "POST /api/listings"
	Role  string // role of the credential
	User  string // id of the user that the request concerns
	Key   string // chosen by the client
	Money bool   // the route moves money, so responses are sealed with the ledger key
}

// Scope returns the part of the key that the server adds to the client's key.
func (k Key) Scope() string { return k.Route + " " + k.Role + " " + k.User }

// Digest is the SHA-256 of the parts of a request that must be the same in a retry.
type Digest [sha256.Size]byte

// Response is the stored response to a request.
type Response struct {
	Request     Digest
	Status      int
	ContentType string
	Location    string // may be empty
	Body        []byte
	Expires     time.Time // zero if the response never expires
	Seal        wallet.Seal
}

// ErrKeyUsed means that another request stored a response under the same key.
var ErrKeyUsed = wallet.ErrKeyUsed
