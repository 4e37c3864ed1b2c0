// Package wallet implements the ledger of users' money. The ledger is append-only and
// double-entry: the entries of a transaction add up to zero in each currency. The entries
// of an account are numbered without gaps. They form a hash chain that is sealed with a
// key stored outside the database.
//
// Package fee computes fees. Package audit verifies the ledger.
package wallet

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"assay/internal/fault"
	"assay/internal/money"
	"assay/internal/user"
)

// Limits. A JSON parser that stores numbers as 64-bit floats reads every amount and balance
// exactly.
const (
	MaxAmount     = 1_000_000_000_000_000 // of one entry, in minor units
	MaxBalance    = 1<<53 - 1             // positive or negative
	MaxCurrencies = 24                    // accounts of one user; keeps a user checkpoint within MaxUserCheckpoint
	MaxKey        = 255                   // bytes of an idempotency key
	MaxNote       = 512                   // bytes
)

// Account identifies an account by its user and currency. House accounts belong to
// reserved users: their names begin with "house:".
type Account struct {
	User     string
	Currency money.Currency
}

// NotFound returns the error for a user without accounts.
func NotFound() *fault.Error {
	return fault.New(fault.NotFound, "wallet_not_found", "The user has no wallet. A first deposit creates it.")
}

// The house users. Many transactions post to the same house user. Its money is therefore
// split over shards. Each shard is an account with a separate chain; see ShardName.
const (
	HouseFee        = "house:fee"        // fees of sales
	HouseDeposit    = "house:deposit"    // counterpart of deposits; its balance is negative
	HouseWithdrawal = "house:withdrawal" // counterpart of withdrawals; its balance is positive
	HouseCorrection = "house:correction" // counterpart of corrections; positive or negative
	HouseRounding   = "house:rounding"   // rounding residue: always zero, because a fee is rounded once and the seller gets the rest
)

// Shards is the maximum number of accounts of a house user in one currency.
const Shards = 64

// ShardName returns the name of a shard of a house user, for example "house:fee:07".
func ShardName(user string, shard int) string { return fmt.Sprintf("%s:%02d", user, shard) }

// ShardNames returns the names of all shards of a house user. It returns nil for any other user.
func ShardNames(user string) (names []string) {
	if !IsHouse(user) || HouseName(user) != user || strings.Count(user, ":") != 1 {
		return nil
	}
	for shard := range Shards {
		names = append(names, ShardName(user, shard))
	}
	return names
}

// IsAccount reports whether the ledger may have an account under this user name. For a
// house user this is true only for the shards and for HouseRounding.
func IsAccount(user string) bool {
	if !IsHouse(user) || user == HouseRounding {
		return true
	}
	switch of := HouseName(user); of {
	case HouseFee, HouseDeposit, HouseWithdrawal, HouseCorrection:
		return slices.Contains(ShardNames(of), user)
	}
	return false
}

// shardFor returns the shard of a house user for the transactions of one user. The user's
// transactions already wait for each other, so they can share a shard.
func shardFor(user, of string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(of)) // never fails
	return ShardName(user, int(h.Sum32()%Shards))
}

// HouseName returns the house user of a shard: "house:fee" for "house:fee:07". It returns
// any other id unchanged.
func HouseName(id string) string {
	if name, shard, _ := strings.Cut(strings.TrimPrefix(id, user.House), ":"); shard != "" {
		return user.House + name
	}
	return id
}

// IsHouse reports whether id is reserved for accounts of the marketplace itself (house
// accounts).
func IsHouse(id string) bool { return user.Reserved(id) }

// Compare orders accounts in locking order: first users by name, then house accounts.
// House accounts come last because more transactions wait for them.
func Compare(a, b Account) int {
	if x, y := IsHouse(a.User), IsHouse(b.User); x != y {
		if x {
			return 1
		}
		return -1
	}
	return cmp.Or(strings.Compare(a.User, b.User), strings.Compare(string(a.Currency), string(b.Currency)))
}

// Type is the type of an entry. It determines whether the entry changes the held balance.
type Type string

// The entry types. Money enters an account either available or held. A settlement posts a
// TypeRelease entry for the held money and a TypeFree entry for the same amount.
const (
	TypeDeposit      Type = "deposit"
	TypeWithdrawal   Type = "withdrawal"
	TypeCorrection   Type = "correction"   // positive or negative; the note has the reason
	TypeReversal     Type = "reversal"     // reverses an entry that moved available money
	TypeRelease      Type = "release"      // debits held money when the trade settles
	TypeFree         Type = "free"         // credits the same amount as available money
	TypePurchase     Type = "purchase"     // debits the price from the buyer
	TypeSale         Type = "sale"         // credits the seller; held until the trade settles
	TypeSaleReversal Type = "saleReversal" // reverses a sale that is still held
	TypeFee          Type = "fee"          // credits the fee to the house
	TypeCompletion   Type = "completion"   // amount 0: records that the asset was delivered
)

// Held reports whether entries of this type add their amount to the held balance. Every
// entry also adds its amount to the balance.
func (t Type) Held() bool {
	return t == TypeRelease || t == TypeSale || t == TypeSaleReversal
}

// Known reports whether t is a valid type.
func (t Type) Known() bool {
	switch t {
	case TypeDeposit, TypeWithdrawal, TypeCorrection, TypeReversal, TypeRelease, TypeFree, TypePurchase, TypeSale, TypeSaleReversal, TypeFee, TypeCompletion:
		return true
	}
	return false
}

// Kind is the kind of a transaction.
type Kind string

// The transaction kinds and the types of their entries.
const (
	KindDeposit    Kind = "deposit"    // a deposit entry for the user and one for the house
	KindWithdrawal Kind = "withdrawal" // a withdrawal entry for the user and one for the house
	KindCorrection Kind = "correction" // a correction entry for the user and one for the house
	KindReversal   Kind = "reversal"   // a reversal or saleReversal entry for each entry of the reversed transaction
	KindSale       Kind = "sale"       // a purchase, a sale and a fee entry
	KindCompletion Kind = "completion" // a completion entry for buyer and seller; adds the trade and the end of its hold to both chains
	KindSettlement Kind = "settlement" // a release and a free entry for the seller; the sale is final
)

// Kinds returns all transaction kinds.
func Kinds() []Kind {
	return []Kind{KindDeposit, KindWithdrawal, KindCorrection, KindReversal, KindSale, KindCompletion, KindSettlement}
}

// Known reports whether k is a valid kind.
func (k Kind) Known() bool { return slices.Contains(Kinds(), k) }

// Entry is one line of an account. Amounts are in minor units.
type Entry struct {
	Account
	Number         int64 // position within the account, starting at 1
	Transaction    int64
	Type           Type
	Amount         int64
	Balance        int64     // after the entry; includes held money
	Held           int64     // after the entry
	Trade          int64     // 0: none
	Reverses       int64     // number of the reversed entry of this account; 0: none
	IdempotencyKey string    // key of the transaction; empty: none
	FeeRule        string    // fee rule, for entries of a sale
	FeeVersion     int64     // version of the fee rules, for entries of a sale
	At             time.Time // time of the transaction; whole microseconds
	Posting        Hash      // hash of the transaction, so the chain also covers the transaction
	Version        int       // version of the canonical bytes
	KeyID          string
	Previous, Hash Hash
}

// Transaction holds the fields that are common to all entries of a transaction.
type Transaction struct {
	ID             int64
	Kind           Kind
	Trade          int64  // 0: none
	Reverses       int64  // id of the reversed transaction; 0: none
	Scope          string // scope of the idempotency key: route, role and user
	IdempotencyKey string // empty: none
	Note           string
	Entries        int64 // number of entries
	At             time.Time
	Terms          Hash // digest of the trade's terms after the transaction; zero: no trade
	Version        int  // version of the canonical bytes
	KeyID          string
	Hash           Hash
}

// Head is the row of an account. It caches the state after the last entry.
type Head struct {
	Account
	Balance int64 // includes held money
	Held    int64
	Number  int64 // number of the last entry; 0: none
	Hash    Hash  // hash of the last entry; zero: none
	Version int   // version of the canonical bytes
	KeyID   string
	MAC     Hash
}

// Available returns the balance minus held money.
func (h *Head) Available() int64 { return h.Balance - h.Held }

// ErrKeyUsed means that another request stored a response under the same idempotency key.
var ErrKeyUsed = errors.New("another request stored a response under this idempotency key")

// ErrPosted means that the transaction was already posted and must not be posted again.
var ErrPosted = errors.New("the transaction is already posted")

// ErrTampered means that a row of the ledger does not match its seal. The message of an
// error that wraps ErrTampered names the row.
var ErrTampered = errors.New("the ledger was changed outside the service")
