package db

// Lock order
//
// On SQLite a transaction locks the whole database, and the functions of this file do
// nothing.
//
// On PostgreSQL, many transactions write concurrently at READ COMMITTED: each statement
// reads the rows that were committed before it began. A transaction locks the rows that
// its decision depends on before it reads them. All transactions take locks in this
// order, so that they cannot deadlock:
//  1. stored idempotent responses: an advisory lock, then responses by key
//  2. users
//  3. a job, its shards, its fetch units, background names, market states, batches
//  4. new items by name, quotes by item
//  5. items by id; a sync waits for items that are being estimated
//  6. inventory rows by id
//  7. the missing-price queue by item
//  8. inspections, listings, a trade
//  9. trader statistics by user, one row of trader_version, traders by user
//  10. price versions by bucket
//  11. user wallets by name and currency, then house wallets
//
// A statement that writes several rows locks them in the order in which it finds them. To
// lock several inventory rows in order of id, a transaction therefore first runs a
// SELECT ... ORDER BY id: see lockRows for a sync and ApplyToRows for prices.
//
// There is one exception: a refresh that applies prices to a range of rows. Its transaction
// waits at most some milliseconds for a row (see package refresh). After that it releases
// all its locks and runs again, and then locks the rows in order.
//
// No transaction holds an advisory lock while it waits for inventory rows. The transaction of a
// turn (see Turn) stays open while other transactions of its process wait for rows, but none of
// them waits for a turn while it holds a row. Transactions
// that activate fee rules, add a ledger key or write webhooks take no other locks.
//
// Reversing a trade that was never delivered locks the trade (8), then the seller (2) and
// one inventory row (6). A transaction that holds a lock on that seller and row never waits
// for a trade.
//
// If a deadlock happens nevertheless, PostgreSQL aborts one transaction, and InTx runs it
// again.

// schemaLock is the key of the advisory lock for migrations. The upper 32 bits of the key
// are unique to this program: see turnLock, blobLock, feeLock and keyLock.
const schemaLock = 0x61737361<<32 + 3

// Lock returns the clause that locks the rows of a query against other writers.
func (d Dialect) Lock() string {
	if d == SQLite {
		return ""
	}
	return " FOR NO KEY UPDATE"
}

// ExecPostgres runs a statement on PostgreSQL. On SQLite it does nothing.
func (t *Tx) ExecPostgres(query string, args ...any) error {
	if t.Dialect == SQLite {
		return nil
	}
	_, err := t.Exec(query, args...)
	return err
}

// Share returns the clause that keeps other transactions from changing the rows that a
// query finds in table.
func (d Dialect) Share(table string) string {
	if d == SQLite {
		return ""
	}
	return " FOR SHARE OF " + table
}
