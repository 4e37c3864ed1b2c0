package audit

import (
	"cmp"

	"assay/internal/wallet"
	"assay/internal/wallet/fee"
)

// Records is the ledger at one moment. Nothing that it reads is believed: rows may
// be missing, be there twice, or hold what no column of theirs should. A user of ""
// is all of them. Lists are ordered and hold at most the requested number of rows.
type Records interface {
	Count(user string) (Count, error)
	// Heads lists accounts after one.
	Heads(user string, after wallet.Account, most int) ([]Head, error)
	// Entries lists entries after one, by account and number.
	Entries(user string, after Place, most int) ([]Entry, error)
	// Transactions lists transactions after an id, by id.
	Transactions(after int64, most int) ([]Transaction, error)
	// ScopedTransactions lists ids of transactions that were requested under a scope.
	ScopedTransactions(scope string, after int64, most int) ([]int64, error)
	// Trades lists trades that a user has part in.
	Trades(user string, after int64, most int) ([]Trade, error)

	// HeadsOf returns those accounts that there are.
	HeadsOf(accounts []wallet.Account) ([]Head, error)
	// EntriesAt returns the entries that stand at places.
	EntriesAt(places []Place) ([]Entry, error)
	// EntriesOf returns the entries of transactions, by transaction and place.
	EntriesOf(transactions []int64) ([]Entry, error)
	// TransactionsOf returns those transactions that there are, by id.
	TransactionsOf(ids []int64) ([]Transaction, error)
	// TradeTransactions returns the transactions of trades, by trade and id.
	TradeTransactions(trades []int64) ([]Transaction, error)
	// Reversals returns the transactions that take others back.
	Reversals(of []int64) ([]Transaction, error)
	// ReversalsBetween returns those that take back transactions from one id to another.
	ReversalsBetween(from, to int64) ([]Transaction, error)
	// KeysRepeat reports whether there are rows of transactions that have one
	// idempotency key.
	KeysRepeat() (bool, error)
	// SameKeys returns, in order, those of the transactions whose idempotency key another one
	// has, too.
	SameKeys(ids []int64) ([]int64, error)
	// TradesOf returns those trades that there are, by id.
	TradesOf(ids []int64) ([]Trade, error)
	// Unlisted lists trades that a user has part in, after an id, whose listing is not
	// there or is another one.
	Unlisted(user string, after int64, most int) ([]Unlisted, error)
	// Untraded lists listings of a user, after an id, that were sold in no trade.
	Untraded(user string, after int64, most int) ([]int64, error)
	// Twins lists ids, after one, that several users have.
	Twins(user, after string, most int) ([]string, error)
	// Schema compares the tables of the ledger, and all that decides which of their rows a
	// statement reads or writes, with what the migration makes; compared is how many
	// objects there are. Nothing of what it reads can be hidden from it.
	Schema() (compared int, changes []SchemaChange, err error)
	// Keys returns the keys that were noted by who sealed with them, 1000 at most.
	Keys() ([]wallet.KeyMark, error)
	// FeeVersions lists the versions of the fee rules after one.
	FeeVersions(after int64, most int) ([]Rules, error)
	// FeeRules returns the text of a version of the fee rules; found is false where there
	// is none. The error is an ErrFeeRules where that cannot be read, or does not have
	// the version's digest.
	FeeRules(version int64) (set *fee.Set, found bool, err error)
}

// SchemaChange is an object of the schema that is not what the migration makes.
type SchemaChange struct {
	Object           string // what it is, and of which table
	Expected, Actual string // none: it is not there
}

// Count is how many rows there are; of one user only those of the first two.
type Count struct{ Accounts, Entries, Transactions, Trades, Rules int64 }

// Place is where an entry stands.
type Place struct {
	wallet.Account
	Number int64
}

// Head is the row of an account as it is stored.
type Head struct {
	wallet.Head
	Faults []string // columns that hold what none should
}

// Entry is an entry as it is stored.
type Entry struct {
	wallet.Entry
	Faults []string
}

func (e *Entry) place() Place { return Place{e.Account, e.Number} }

// Transaction is a transaction as it is stored.
type Transaction struct {
	wallet.Transaction
	Faults []string
}

// Trade is the market's row of a trade. A seller or buyer that is not known is
// empty.
type Trade struct {
	wallet.Trade
	Faults []string
}

// Rules is a stored version of the fee rules, without its text.
type Rules struct {
	wallet.Rules
	Faults []string
}

// Unlisted is a trade that does not go with its listing.
type Unlisted struct{ Trade, Listing int64 }

func byAccount(a, b wallet.Account) int {
	return cmp.Or(cmp.Compare(a.User, b.User), cmp.Compare(a.Currency, b.Currency))
}

func byPlace(a, b Place) int {
	return cmp.Or(byAccount(a.Account, b.Account), cmp.Compare(a.Number, b.Number))
}
