// Package once is about requests that must not be carried out twice: a client
// names one by a key of its own and may send it again, and gets the answer that
// was given first. That answer is kept within the transaction that does the work:
// both are there, or neither is, whenever a process dies, and no key is ever held
// by somebody who is gone.
package once

import (
	"crypto/sha256"
	"errors"
	"time"

	"assay/internal/wallet"
)

// Keep is how long an answer is kept that is not about money.
const Keep = 30 * 24 * time.Hour

// MaxKey is the longest key, in bytes.
const MaxKey = 255

// Key names a request. The same key of another route, role or user names another
// one.
type Key struct {
	Route string // method and pattern of the path: "POST /api/listings"
	Role  string // of the credential
	User  string // the platform's id of whom it is about
	Key   string // as the client made it
	Money bool   // the route moves money: its answers are sealed with the ledger's key
}

// Scope is what the key counts in.
func (k Key) Scope() string { return k.Route + " " + k.Role + " " + k.User }

// Digest tells one request from another: by all that a client said.
type Digest [sha256.Size]byte

// Answer is what a request was answered.
type Answer struct {
	Request     Digest // what was asked
	Status      int
	ContentType string
	Location    string // empty: none
	Body        []byte
	Expires     time.Time // zero: never, since money was moved
	Seal        wallet.Seal
}

// Keeper is what a transaction needs to keep an answer. It is called last: if
// another request of that key was answered meanwhile the error is ErrAnswered, and
// the transaction must not be committed.
type Keeper interface {
	KeepAnswer(k Key, a Answer) error
}

// ErrAnswered says that a request of that key was answered by somebody else.
var ErrAnswered = errors.New("a request of that key was answered meanwhile")
