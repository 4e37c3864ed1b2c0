package audit

import (
	"cmp"

	"assay/internal/wallet"
)

// SchemaChange is a difference between the schema and the migrations.
type SchemaChange struct {
	Object           string // kind and name of the object, and its table
	Expected, Actual string // "none": the object does not exist
}

// Count holds numbers of rows. For one user only Accounts and Entries are set.
type Count struct{ Accounts, Entries, Transactions, Trades, Rules int64 }

// Place identifies an entry by its account and number.
type Place struct {
	wallet.Account
	Number int64
}

// Head is a stored row of an account.
type Head struct {
	wallet.Head
	Faults []string // columns with invalid values
}

// Entry is a stored entry.
type Entry struct {
	wallet.Entry
	Faults []string
}

func (e *Entry) place() Place { return Place{e.Account, e.Number} }

// Transaction is a stored transaction.
type Transaction struct {
	wallet.Transaction
	Faults []string
}

// Trade is the market's stored row of a trade. Seller or Buyer is empty if the user is
// unknown.
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
