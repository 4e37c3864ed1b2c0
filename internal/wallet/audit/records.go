package audit

import (
	"cmp"

	"assay/internal/wallet"
)

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

func byAccount(a, b wallet.Account) int {
	return cmp.Or(cmp.Compare(a.User, b.User), cmp.Compare(a.Currency, b.Currency))
}

func byPlace(a, b Place) int {
	return cmp.Or(byAccount(a.Account, b.Account), cmp.Compare(a.Number, b.Number))
}
