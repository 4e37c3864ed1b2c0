package db

// The order of locks. On SQLite a transaction has the database for itself, and
// the functions of this file do nothing. On PostgreSQL many transactions write at
// once, at READ COMMITTED: each statement sees what was committed before it began.
// A transaction that decides on what it has read locks it first. Every transaction
// takes its locks in this order, so that no two ever wait for each other:
//
//  1. answers (an advisory lock), answers to requests by key
//  2. users
//  3. a job, its lanes, its units, names of background fetches, states of markets,
//     batches
//  4. new items by name, quotes by item
//  5. items by id; syncs wait for those that are being estimated
//  6. inventory rows by id
//  7. the missing-price queue by item
//  8. inspections, listings, a trade
//  9. figures of traders by user, a slot of their versions, traders by user
//  10. price versions by bucket
//  11. wallets of users by name and currency, those of the house
//
// A statement that writes several rows takes them in the order in which it finds
// them. So several inventory rows are locked by a SELECT ... ORDER BY id first:
// lockRows for a sync, ApplyToRows for prices. The exception is a range of rows
// that a refresh writes: the transaction waits no more than some milliseconds for
// a row (atOnce), gives up all of them, and runs again in order.
//
// No advisory lock is held while rows of the inventory are waited for.
//
// Activating fee rules and noting a key of the ledger lock nothing else. Taking
// back a trade that was never handed over goes from the trade (8) back to the
// seller (2) and one row (6): a transaction that holds those waits for no trade.
//
// Where the order is broken all the same, PostgreSQL ends one of the two
// transactions, and InTx runs it again.

// schemaLock is the number of the advisory lock for changes of the schema. The upper half
// of such numbers is only ours: see blobLock, feeLock and keyLock.
const schemaLock = 0x61737361<<32 + 3

// Lock ends a query that locks what it finds against other writers.
func (d Dialect) Lock() string {
	if d == SQLite {
		return ""
	}
	return " FOR NO KEY UPDATE"
}

// ExecPostgres is Exec on PostgreSQL. On SQLite it does nothing: a transaction there has
// the database for itself.
func (t *Tx) ExecPostgres(query string, args ...any) error {
	if t.Dialect == SQLite {
		return nil
	}
	_, err := t.Exec(query, args...)
	return err
}

// Share ends a query that keeps others from changing what it finds of one of its
// tables.
func (d Dialect) Share(table string) string {
	if d == SQLite {
		return ""
	}
	return " FOR SHARE OF " + table
}
