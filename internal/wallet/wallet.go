// Package wallet is the ledger of users' money. It is append-only and double-entry: a
// transaction has two or more entries whose sum is zero per currency. The entries of an account are numbered without
// gaps and sealed in a chain with a key that is kept outside the database.
//
// The package decides what is posted and how it is sealed; the store has the SQL.
// Package fee computes fees.
package wallet

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"assay/internal/money"
	"assay/internal/user"
)

// Limits. Every figure of an account is one that any JSON reader takes exactly.
const (
	MaxAmount     = 1_000_000_000_000_000 // of one entry, in minor units
	MaxBalance    = 1<<53 - 1             // either way
	MaxCurrencies = 24                    // accounts of one user, so that a checkpoint of theirs stays small
	MaxKey        = 255                   // bytes of an idempotency key
	MaxNote       = 512                   // bytes
)

// Account names an account: of a user, in a currency. House accounts belong to
// users that no platform has, whose names begin with "house:".
type Account struct {
	User     string
	Currency money.Currency
}

// The house's users. Those that many transactions meet in are shards, each an
// account with a chain of its own; ShardName makes their names.
const (
	HouseFee        = "house:fee"        // what sales bring
	HouseDeposit    = "house:deposit"    // what came in from outside; negative
	HouseWithdrawal = "house:withdrawal" // what went out; positive
	HouseCorrection = "house:correction" // what corrections took or gave; either way
	HouseRounding   = "house:rounding"   // what rounding left over: nothing, while a fee is rounded once and the seller gets the rest
)

// Shards is how many accounts a house user has in a currency at most.
const Shards = 64

// ShardName returns the name of a shard of a house user: "house:fee:07".
func ShardName(user string, shard int) string { return fmt.Sprintf("%s:%02d", user, shard) }

// ShardNames returns the names of all shards of a house user; none of who has none.
func ShardNames(user string) (names []string) {
	if !IsHouse(user) || HouseName(user) != user || strings.Count(user, ":") != 1 {
		return nil
	}
	for shard := range Shards {
		names = append(names, ShardName(user, shard))
	}
	return names
}

// IsAccount reports whether the ledger may have an account of a user, or of the house
// under this name.
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

// shardFor returns the shard that the money of a user meets in. One user's
// transactions wait for each other anyway, so they share one.
func shardFor(user, of string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(of)) // never fails
	return ShardName(user, int(h.Sum32()%Shards))
}

// HouseName returns the house user that a name is a shard of: "house:fee" for
// "house:fee:07".
func HouseName(id string) string {
	if name, shard, _ := strings.Cut(strings.TrimPrefix(id, user.House), ":"); shard != "" {
		return user.House + name
	}
	return id
}

// IsHouse reports whether an id is that of a house user.
func IsHouse(id string) bool { return user.Reserved(id) }

// Compare orders accounts as they are locked: users by name, then those of the
// house, which more transactions wait for.
func Compare(a, b Account) int {
	if x, y := IsHouse(a.User), IsHouse(b.User); x != y {
		if x {
			return 1
		}
		return -1
	}
	return cmp.Or(strings.Compare(a.User, b.User), strings.Compare(string(a.Currency), string(b.Currency)))
}

// Type is the type of an entry. It decides whether the entry changes held money.
type Type string

// The types. Money enters an account either free or held; what is freed leaves it
// held and enters it free.
const (
	TypeDeposit      Type = "deposit"
	TypeWithdrawal   Type = "withdrawal"
	TypeCorrection   Type = "correction"   // either sign; the note is the reason
	TypeReversal     Type = "reversal"     // takes back an entry that moved free money
	TypeRelease      Type = "release"      // what was held leaves
	TypeFree         Type = "free"         // and enters free
	TypePurchase     Type = "purchase"     // what a buyer pays
	TypeSale         Type = "sale"         // what a seller gets, held until the trade settles
	TypeSaleReversal Type = "saleReversal" // takes back a sale, while it is held
	TypeFee          Type = "fee"          // what the house keeps
	TypeCompletion   Type = "completion"   // moves nothing: the asset was handed over
)

// Held reports whether entries of the type change what is held by their amount,
// besides the balance, which every entry does.
func (t Type) Held() bool {
	return t == TypeRelease || t == TypeSale || t == TypeSaleReversal
}

// Known reports whether t is one of the types.
func (t Type) Known() bool {
	switch t {
	case TypeDeposit, TypeWithdrawal, TypeCorrection, TypeReversal, TypeRelease, TypeFree, TypePurchase, TypeSale, TypeSaleReversal, TypeFee, TypeCompletion:
		return true
	}
	return false
}

// Kind is the kind of a transaction.
type Kind string

// The kinds, with the types of their entries.
const (
	KindDeposit    Kind = "deposit"    // deposit of the user and of the house
	KindWithdrawal Kind = "withdrawal" // withdrawal of both
	KindCorrection Kind = "correction" // correction of both
	KindReversal   Kind = "reversal"   // a reversal, or saleReversal, for each entry of another transaction
	KindSale       Kind = "sale"       // purchase, sale and fee
	KindCompletion Kind = "completion" // completion of buyer and seller, of nothing: the trade and the end of its hold are part of both chains
	KindSettlement Kind = "settlement" // release and free of the seller: a sale is final
)

// Kinds lists all of them.
func Kinds() []Kind {
	return []Kind{KindDeposit, KindWithdrawal, KindCorrection, KindReversal, KindSale, KindCompletion, KindSettlement}
}

// Known reports whether k is one of the kinds.
func (k Kind) Known() bool { return slices.Contains(Kinds(), k) }

// Entry is one line of an account. Amounts are minor units.
type Entry struct {
	Account
	Number         int64 // 1, 2, 3 and so on within the account
	Transaction    int64
	Type           Type
	Amount         int64
	Balance        int64     // after it; held money included
	Held           int64     // after it
	Trade          int64     // 0: of none
	Reverses       int64     // number of the account's entry that it takes back; 0: none
	IdempotencyKey string    // of its transaction; empty: none
	FeeRule        string    // of a sale's entries
	FeeVersion     int64     // of a sale's entries: of the set of rules
	At             time.Time // of its transaction; whole microseconds
	Posting        Hash      // the hash of its transaction, so that the chain covers that, too
	Version        int       // of the bytes under the hash
	KeyID          string
	Previous, Hash Hash
}

// Transaction is what its entries have in common.
type Transaction struct {
	ID             int64
	Kind           Kind
	Trade          int64  // 0: of none
	Reverses       int64  // the transaction that it takes back; 0: none
	Scope          string // of the idempotency key: route, role and user
	IdempotencyKey string // empty: none
	Note           string
	Entries        int64 // how many it has
	At             time.Time
	Terms          Hash // of its trade, as the transaction leaves it; zero: of none
	Version        int  // of the bytes under the hash
	KeyID          string
	Hash           Hash
}

// Head is the row of an account: the state after its last entry.
type Head struct {
	Account
	Balance int64 // held money included
	Held    int64
	Number  int64 // of the last entry; 0: none
	Hash    Hash  // of the last entry; zero: none
	Version int   // of the bytes under the MAC
	KeyID   string
	MAC     Hash
}

// Available is what can be spent.
func (h *Head) Available() int64 { return h.Balance - h.Held }

// ErrKeyUsed means that another request stored a response under the same idempotency key.
var ErrKeyUsed = errors.New("another request stored a response under this idempotency key")

// ErrPosted means that a transaction exists that may be posted only once.
var ErrPosted = errors.New("the transaction is already posted")

// ErrTampered means that a row of the ledger differs from what was written. The
// text names the row.
var ErrTampered = errors.New("the ledger was changed outside the service")
