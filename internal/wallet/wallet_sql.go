package wallet

import (
	"bytes"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"assay/internal/db"
)

// HeadColumns are the columns of the table wallet_account, called w, in the order of
// scanHead.
const HeadColumns = `w.user_id, w.currency, w.balance, w.held, w.last_number, w.head_hash, w.version, w.key_id, w.mac`

func scanHead(r *sql.Rows, h *Head) error { return scanHeadAnd(r, h) }

// scanHeadAnd scans a head and further columns that follow it.
func scanHeadAnd(r *sql.Rows, h *Head, more ...any) error {
	var hash, mac []byte
	err := r.Scan(append([]any{&h.User, &h.Currency, &h.Balance, &h.Held, &h.Number, &hash, &h.Version, &h.KeyID, &mac}, more...)...)
	h.Hash, h.MAC = StoredHash(hash), StoredHash(mac)
	return err
}

// StoredHash converts a stored hash. For a value of the wrong length it returns a hash of
// 0xff bytes, which matches no record.
func StoredHash(stored []byte) (h Hash) {
	if len(stored) != len(h) {
		stored = bytes.Repeat([]byte{0xff}, len(h))
	}
	copy(h[:], stored)
	return h
}

// lockWallets locks the accounts that exist, in the given order, and returns their heads.
// If at least one account exists, it also returns a new transaction id.
func lockWallets(t *db.Tx, accounts []Account) (heads []Head, id int64, err error) {
	rows := db.NewTable(accountColumns, len(accounts))
	for i, a := range accounts {
		rows.Int(int64(i))
		rows.Text(a.User, string(a.Currency))
	}
	heads, err = db.Collect(t.Context(), t, func(r *sql.Rows, h *Head) error {
		return scanHeadAnd(r, h, &id)
	}, `
		SELECT `+HeadColumns+`, `+t.Dialect.NewTransactionID()+` FROM `+t.Dialect.Rows(1, accountColumns)+` k CROSS JOIN wallet_account w
		WHERE w.user_id = k.user_id AND w.currency = k.currency ORDER BY k.place`+t.Dialect.LockOf("w"), rows.Params(t.Dialect)...)
	return heads, id, err
}

const accountColumns = "place bigint, user_id text, currency text"

var newWalletsBulk = db.NewBulk(addWalletsSQL, headTypes, addWalletsConflict)

// addWallets inserts accounts. It skips an account that another process has inserted, and
// an account that has entries but no row.
func addWallets(t *db.Tx, heads []Head) error {
	_, err := t.WriteRows(newWalletsBulk, headTable(heads))
	return err
}

const (
	headTypes = "user_id text, currency text, balance bigint, held bigint, last_number bigint, head_hash bytea, version bigint, " +
		"key_id text, mac bytea"
	addWalletsSQL = `
INSERT INTO wallet_account (user_id, currency, balance, held, last_number, head_hash, version, key_id, mac)
SELECT v.column1, v.column2, v.column3, v.column4, v.column5, v.column6, v.column7, v.column8, v.column9 FROM (`
	addWalletsConflict = `) AS v
WHERE NOT EXISTS (SELECT 1 FROM wallet_entry e WHERE e.user_id = v.column1 AND e.currency = v.column2)
ON CONFLICT (user_id, currency) DO NOTHING`
	setWallets = `
UPDATE wallet_account SET balance = v.column3, held = v.column4, last_number = v.column5, head_hash = v.column6, version = v.column7,
	key_id = v.column8, mac = v.column9
FROM (`
	setWalletsWhere = `) AS v WHERE user_id = v.column1 AND currency = v.column2`
)

func headTable(heads []Head) *db.Table {
	out := db.NewTable(headTypes, len(heads))
	for i := range heads {
		h := &heads[i]
		out.Text(h.User, string(h.Currency))
		out.Int(h.Balance, h.Held, h.Number)
		out.Blob(h.Hash[:])
		out.Int(int64(h.Version))
		out.Text(h.KeyID)
		out.Blob(h.MAC[:])
	}
	return out
}

// walletCount returns how many accounts a user has.
func walletCount(t *db.Tx, user string) (n int, err error) {
	err = t.QueryRow(`SELECT count(*) FROM wallet_account WHERE user_id = $1`, user).Scan(&n)
	return n, err
}

// writePosting writes a transaction, its entries and the new heads. It returns the entries
// that were the newest of their accounts before the posting. The error is ErrKeyUsed if
// another transaction has the same idempotency key. The error is ErrPosted if the trade
// already has a transaction of this kind, or if the reversed transaction was already
// reversed.
func writePosting(t *db.Tx, p Transaction, entries []Entry, heads []Head) (newest []Entry, err error) {
	want := writtenRows{transactions: 1, entries: int64(len(entries)), heads: int64(len(heads))}
	row := []any{
		p.ID, string(p.Kind), p.Trade, p.Reverses, p.Scope, p.IdempotencyKey, p.Note, p.Entries, p.At.UnixMicro(), p.Terms[:], int64(p.Version), p.KeyID, p.Hash[:],
	}
	var n writtenRows
	if t.Dialect == db.PostgreSQL {
		newest, n, err = writeRowsPostgres(t, row, entryTable(entries), headTable(heads))
	} else {
		newest, n, err = writeRowsSQLite(t, row, entryTable(entries), headTable(heads))
	}
	switch {
	case err != nil:
		return nil, err
	case n.transactions == 0:
		return nil, postingConflict(t, p)
	case n != want:
		return nil, NotWritten(fmt.Sprintf("transaction %d: %+v of %+v", p.ID, n, want))
	}
	t.AfterCommit(func() { db.Local[db.Counts[Kind]](t.DB).Add(p.Kind) })
	return newest, nil
}

// writtenRows counts the rows that the database wrote. Rows dropped by a trigger are not
// counted.
type writtenRows struct{ transactions, entries, heads int64 }

// newestColumns are the columns that identify an entry.
const newestColumns = "user_id text, currency text, number bigint"

// newest returns a table with the key of the previous entry for each of the given entries.
func newest(entries *db.Table) *db.Table {
	users, currencies, numbers := entries.Columns[0].Texts, entries.Columns[1].Texts, entries.Columns[2].Ints
	out := db.NewTable(newestColumns, len(users))
	for i := range users {
		out.Text(users[i], currencies[i])
		out.Int(numbers[i] - 1)
	}
	return out
}

var walletsBulk = db.NewBulk(setWallets, headTypes, setWalletsWhere)

var entriesBulk = db.NewBulk(addEntries, entryTypes, "")

// writeRowsSQLite writes a transaction, its entries and its heads. It writes entries and
// heads only if the transaction was inserted.
func writeRowsSQLite(t *db.Tx, row []any, entries, heads *db.Table) (before []Entry, n writtenRows, err error) {
	before, err = db.Collect(t.Context(), t, scanEntry, `
		SELECT `+ReadEntryColumns+` FROM `+t.Dialect.Rows(1, newestColumns)+` k CROSS JOIN wallet_entry e
		WHERE e.user_id = k.user_id AND e.currency = k.currency AND e.number = k.number`, newest(entries).Params(t.Dialect)...)
	if err != nil {
		return nil, n, err
	}
	n.transactions, err = t.Exec(`
		INSERT INTO wallet_transaction (`+transactionColumns+`)
		SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13
		WHERE NOT EXISTS (SELECT 1 FROM wallet_transaction WHERE scope = $5 AND idempotency_key = $6 AND idempotency_key <> '')
			AND NOT EXISTS (SELECT 1 FROM wallet_transaction WHERE trade_id = $3 AND kind = $2 AND trade_id <> 0)
			AND NOT EXISTS (SELECT 1 FROM wallet_transaction WHERE reverses = $4 AND reverses <> 0)`, row...)
	if err != nil || n.transactions == 0 {
		return nil, n, err
	}
	if n.entries, err = t.WriteRows(entriesBulk, entries); err != nil {
		return nil, n, err
	}
	n.heads, err = t.WriteRows(walletsBulk, heads)
	return before, n, err
}

// writeRowsPostgres does the same as writeRowsSQLite in one statement. It saves round
// trips, because other transactions wait for the locked accounts meanwhile. The final
// SELECT reads the state before the statement.
func writeRowsPostgres(t *db.Tx, row []any, entries, heads *db.Table) (before []Entry, n writtenRows, err error) {
	before, err = db.Collect(t.Context(), t, func(r *sql.Rows, e *Entry) error {
		return scanEntryAnd(r, e, &n.transactions, &n.entries, &n.heads)
	}, `
		WITH posted AS (
			INSERT INTO wallet_transaction (`+transactionColumns+`)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) ON CONFLICT DO NOTHING RETURNING id
		), rows AS (
			SELECT * FROM `+t.Dialect.Rows(14, entryTypes)+` e
		), entered AS (
			INSERT INTO wallet_entry (`+entryColumns+`)
			SELECT `+entryColumns+` FROM rows e WHERE EXISTS (SELECT 1 FROM posted) RETURNING 1
		), headed AS (
			UPDATE wallet_account w SET balance = h.balance, held = h.held, last_number = h.last_number, head_hash = h.head_hash,
				version = h.version, key_id = h.key_id, mac = h.mac
			FROM `+t.Dialect.Rows(33, headTypes)+` h
			WHERE w.user_id = h.user_id AND w.currency = h.currency AND EXISTS (SELECT 1 FROM posted) RETURNING 1
		)
		SELECT b.*, (SELECT count(*) FROM posted), (SELECT count(*) FROM entered), (SELECT count(*) FROM headed) FROM (
			SELECT `+ReadEntryColumns+` FROM rows k JOIN wallet_entry e ON e.user_id = k.user_id AND e.currency = k.currency AND e.number = k.number - 1
			UNION ALL SELECT `+noEntry+`) b`,
		append(append(row, entries.Arrays()...), heads.Arrays()...)...)
	return slices.DeleteFunc(before, func(e Entry) bool { return e.User == "" }), n, err
}

// postingConflict returns the reason why a transaction was not inserted: ErrKeyUsed,
// ErrPosted or the error of NotWritten.
func postingConflict(t *db.Tx, p Transaction) error {
	var responded, posted bool
	err := t.QueryRow(`
		SELECT EXISTS (SELECT 1 FROM wallet_transaction WHERE scope = $1 AND idempotency_key = $2 AND idempotency_key <> ''),
			EXISTS (SELECT 1 FROM wallet_transaction WHERE trade_id = $3 AND kind = $4 AND trade_id <> 0)
			OR EXISTS (SELECT 1 FROM wallet_transaction WHERE reverses = $5 AND reverses <> 0)`,
		p.Scope, p.IdempotencyKey, p.Trade, string(p.Kind), p.Reverses).Scan(&responded, &posted)
	switch {
	case err != nil:
		return err
	case responded:
		return ErrKeyUsed
	case posted:
		return ErrPosted
	default:
		return NotWritten(fmt.Sprintf("transaction %d", p.ID))
	}
}

const (
	entryTypes = "user_id text, currency text, number bigint, transaction_id bigint, type text, amount bigint, balance bigint, held bigint, " +
		"trade_id bigint, reverses bigint, idempotency_key text, fee_rule text, fee_version bigint, at bigint, posting_hash bytea, version bigint, " +
		"key_id text, previous_hash bytea, hash bytea"
	addEntries = `
INSERT INTO wallet_entry (` + entryColumns + `) `
)

func entryTable(entries []Entry) *db.Table {
	out := db.NewTable(entryTypes, len(entries))
	for i := range entries {
		e := &entries[i]
		out.Text(e.User, string(e.Currency))
		out.Int(e.Number, e.Transaction)
		out.Text(string(e.Type))
		out.Int(e.Amount, e.Balance, e.Held, e.Trade, e.Reverses)
		out.Text(e.IdempotencyKey, e.FeeRule)
		out.Int(e.FeeVersion, e.At.UnixMicro())
		out.Blob(e.Posting[:])
		out.Int(int64(e.Version))
		out.Text(e.KeyID)
		out.Blob(e.Previous[:])
		out.Blob(e.Hash[:])
	}
	return out
}

// ReadEntryColumns are entryColumns of a table called e.
const ReadEntryColumns = `e.user_id, e.currency, e.number, e.transaction_id, e.type, e.amount, e.balance, e.held, e.trade_id, e.reverses,
	e.idempotency_key, e.fee_rule, e.fee_version, e.at, e.posting_hash, e.version, e.key_id, e.previous_hash, e.hash`

// entryColumns are the columns of the table wallet_entry in the order of scanEntry.
const entryColumns = `user_id, currency, number, transaction_id, type, amount, balance, held, trade_id, reverses, idempotency_key,
	fee_rule, fee_version, at, posting_hash, version, key_id, previous_hash, hash`

// noEntry is an empty row with the column types of entryColumns, for a UNION.
const noEntry = `'', '', 0, 0, '', 0, 0, 0, 0, 0, '', '', 0, 0, '', 0, '', '', ''`

func scanEntry(r *sql.Rows, e *Entry) error { return scanEntryAnd(r, e) }

// scanEntryAnd scans an entry and further columns that follow it.
func scanEntryAnd(r *sql.Rows, e *Entry, more ...any) error {
	var at int64
	var posting, previous, hash []byte
	err := r.Scan(append([]any{
		&e.User, &e.Currency, &e.Number, &e.Transaction, &e.Type, &e.Amount, &e.Balance, &e.Held, &e.Trade, &e.Reverses,
		&e.IdempotencyKey, &e.FeeRule, &e.FeeVersion, &at, &posting, &e.Version, &e.KeyID, &previous, &hash,
	}, more...)...)
	e.At, e.Posting, e.Previous, e.Hash = time.UnixMicro(at).UTC(), StoredHash(posting), StoredHash(previous), StoredHash(hash)
	return err
}

const transactionColumns = `id, kind, trade_id, reverses, scope, idempotency_key, note, entries, at, terms, version, key_id, hash`

func scanTransaction(r *sql.Rows, t *Transaction) error {
	var at int64
	var terms, hash []byte
	err := r.Scan(&t.ID, &t.Kind, &t.Trade, &t.Reverses, &t.Scope, &t.IdempotencyKey, &t.Note, &t.Entries, &at, &terms, &t.Version, &t.KeyID, &hash)
	t.At, t.Terms, t.Hash = time.UnixMicro(at).UTC(), StoredHash(terms), StoredHash(hash)
	return err
}

// findTransaction returns the transaction with an id. found is false if it does not exist.
func findTransaction(t *db.Tx, id int64) (_ Transaction, found bool, err error) {
	all, err := db.Collect(t.Context(), t, scanTransaction, `SELECT `+transactionColumns+` FROM wallet_transaction WHERE id = $1`, id)
	if err != nil || len(all) == 0 {
		return Transaction{}, false, err
	}
	return all[0], true, nil
}

// tradeTransactions returns the transactions of a trade, ordered by id.
func tradeTransactions(t *db.Tx, trade int64) ([]Transaction, error) {
	return db.Collect(t.Context(), t, scanTransaction, `
		SELECT `+transactionColumns+` FROM wallet_transaction WHERE trade_id = $1 AND trade_id <> 0 ORDER BY id`, trade)
}

// isReversed reports whether a transaction was reversed.
func isReversed(t *db.Tx, id int64) (reversed bool, err error) {
	err = t.QueryRow(`SELECT EXISTS (SELECT 1 FROM wallet_transaction WHERE reverses = $1 AND reverses <> 0)`, id).Scan(&reversed)
	return reversed, err
}

// transactionEntries returns the entries of a transaction, ordered by account and number.
func transactionEntries(t *db.Tx, id int64) ([]Entry, error) {
	return db.Collect(t.Context(), t, scanEntry, `
		SELECT `+entryColumns+` FROM wallet_entry WHERE transaction_id = $1 ORDER BY user_id, currency, number`, id)
}

// PostingCounts returns the number of ledger transactions by kind that this process has
// committed since it opened the database.
func PostingCounts(s *db.DB) map[Kind]int64 {
	return db.Local[db.Counts[Kind]](s).Get()
}
