package wallet

// Exported for tests.
var (
	LockWallets        = lockWallets
	FindTransaction    = findTransaction
	TransactionEntries = transactionEntries
)
