package store

import (
	"database/sql"
	"slices"

	"assay/internal/money"
	"assay/internal/refresh"
)

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
// LockRows for a sync, applyPrices for prices. The exception is a range of rows
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

// Numbers of the advisory locks; the upper half is only ours.
const (
	blobLock   = 0x61737361<<32 + 2
	schemaLock = 0x61737361<<32 + 3
	feeLock    = 0x61737361<<32 + 4
	keyLock    = 0x61737361<<32 + 5
)

// lock ends a query that locks what it finds against other writers.
func (d dialect) lock() string {
	if d == onSQLite {
		return ""
	}
	return " FOR NO KEY UPDATE"
}

func (t *Tx) hold(query string, args ...any) error {
	if t.d == onSQLite {
		return nil
	}
	_, err := t.exec(query, args...)
	return err
}

// lockBlobs waits for the transactions that are about to use stored answers
// again, and keeps others from it.
func (t *Tx) lockBlobs() error { return t.hold(`SELECT pg_advisory_xact_lock($1)`, int64(blobLock)) }

// keepBlobs keeps stored answers from being dropped until the transaction ends.
func (t *Tx) keepBlobs() error {
	return t.hold(`SELECT pg_advisory_xact_lock_shared($1)`, int64(blobLock))
}

// lockJob keeps others from moving a job on.
func (t *Tx) lockJob(id int64) error {
	return t.hold(`SELECT id FROM refresh_job WHERE id = $1 FOR NO KEY UPDATE`, id)
}

// lockItems keeps others from pricing the items that a batch estimates. Where all
// of them were answered for, they are about to be written by id, which locks
// them as well.
func (t *Tx) lockItems(items []refresh.EstimatedItem) error {
	unanswered := func(i refresh.EstimatedItem) bool { return !i.Answered }
	if t.d == onSQLite || !slices.ContainsFunc(items, unanswered) {
		return nil
	}
	ids := make([]int64, len(items))
	for i := range items {
		ids[i] = items[i].ID
	}
	return t.hold(`
		SELECT count(*) FROM (
			SELECT id FROM item WHERE id IN (SELECT unnest(CAST($1 AS bigint[]))) ORDER BY id FOR NO KEY UPDATE) held`, ids)
}

// share ends a query that keeps others from changing what it finds of one of its
// tables.
func (d dialect) share(table string) string {
	if d == onSQLite {
		return ""
	}
	return " FOR SHARE OF " + table
}

// HoldPrices keeps the prices of items as they are until the transaction ends, and
// returns them. Rows that copy them and entries that are queued for want of them
// are then committed before the next price is, and found by a job applies that.
func (t *Tx) HoldPrices(items []int64) (map[int64]money.Micro, error) {
	prices := make(map[int64]money.Micro, len(items))
	_, err := collect(t.ctx, t.tx, func(r *sql.Rows, _ *struct{}) error {
		var id int64
		var price money.Micro
		err := r.Scan(&id, &price)
		prices[id] = price
		return err
	}, `SELECT i.id, i.price FROM item i WHERE i.id IN `+t.d.ids(1)+` ORDER BY i.id`+t.d.share("i"), t.d.packIDs(items))
	return prices, err
}

// LockRows locks the rows of a user's inventory that a sync is about to write: those
// with the ids, and those that InventoryTouched may write. It comes after
// HoldPrices and before any of these is written.
func (t *Tx) LockRows(user int64, app int32, contextID string, ids []int64) error {
	return t.hold(lockRows+`
		SELECT unnest(CAST($1 AS bigint[]))
		UNION SELECT v.id FROM inventory v WHERE v.user_key = $2 AND v.app_id = $3 AND v.context_id = $4 AND v.in_transfer
			AND EXISTS (SELECT 1 FROM trade WHERE seller_key = $2)
		UNION SELECT v.id FROM trade d JOIN inventory v ON v.user_key = $2 AND v.app_id = $3 AND v.context_id = $4 AND v.asset_id = d.asset_id
			WHERE d.seller_key = $2 AND d.app_id = $3 AND d.context_id = $4 AND d.state = 'pending'`+inOrderOfID, ids, user, app, contextID)
}

// What is between the two finds the ids of inventory rows to lock.
const (
	lockRows    = `SELECT count(*) FROM (SELECT id FROM inventory WHERE id IN (`
	inOrderOfID = `) ORDER BY id FOR UPDATE) locked`
)
