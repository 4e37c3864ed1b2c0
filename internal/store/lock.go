package store

import (
	"database/sql"
	"slices"

	"assay/internal/money"
	"assay/internal/refresh"
)

// Locks. On SQLite a transaction has the database for itself, and these do
// nothing. On PostgreSQL many write at once, at READ COMMITTED: each statement
// sees what was committed before it began. Whoever decides on what it has read
// locks it first, in this order, so that no two wait for each other:
//
//	spreading, answers, a user, a job, its lanes, its units, names that are asked
//	in the background, what was brought by market, batches, items by id, queued
//	items by id, inventory rows by id, their inspections, listings of theirs, a
//	trade, what its users traded by user, a slot of what traders' figures are
//	known by, traders by user, price versions by bucket, wallets of users by name
//	and currency, those of the house
//
// Who activates fee rules, or notes a key of the ledger, locks nothing else.
//
// Who takes back a trade that was never handed over goes from the trade back to the
// seller and his row: whoever holds those waits for no trade.
//
// Where the order cannot be kept, the database ends one of the two, and InTx does
// it again.

// Numbers of the advisory locks; the upper half is only ours.
const (
	spreadLock = 0x61737361<<32 + 1
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

// lockSpread lets one transaction at a time copy prices onto rows, wherever they
// lie. A statement that copies sees the prices of its beginning: another one
// beside it could copy a newer price first and have it overwritten.
func (t *Tx) lockSpread() error { return t.hold(`SELECT pg_advisory_xact_lock($1)`, int64(spreadLock)) }

// shareSpread is lockSpread for those that copy onto rows of their own, which may
// do so side by side.
func (t *Tx) shareSpread() error {
	return t.hold(`SELECT pg_advisory_xact_lock_shared($1)`, int64(spreadLock))
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

// lockItems keeps others from pricing the items that a batch settles. Where all
// of them were answered for, they are about to be written by id, which locks
// them as well.
func (t *Tx) lockItems(items []refresh.SettledItem) error {
	unanswered := func(i refresh.SettledItem) bool { return !i.Answered }
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
// are then committed before the next price is, and found by whoever spreads that.
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
