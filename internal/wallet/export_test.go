package wallet

// What the tests of postings call.
var (
	LockWallets        = lockWallets
	FindTransaction    = findTransaction
	TransactionEntries = transactionEntries
)
