package wallet

import (
	"context"
	"database/sql"

	"assay/internal/db"
	"assay/internal/money"
)

// LedgerUsed reports whether the ledger has at least one row.
func LedgerUsed(ctx context.Context, s *db.DB) (used bool, err error) {
	err = s.Read.QueryRowContext(ctx, `
		SELECT EXISTS (SELECT 1 FROM wallet_account) OR EXISTS (SELECT 1 FROM wallet_entry) OR EXISTS (SELECT 1 FROM wallet_transaction)`).Scan(&used)
	return used, err
}

// LastWalletTransactions returns up to limit transactions, newest first.
func LastWalletTransactions(ctx context.Context, s *db.DB, limit int) ([]Transaction, error) {
	return db.Collect(ctx, s.Read, scanTransaction, `SELECT `+transactionColumns+` FROM wallet_transaction ORDER BY id DESC LIMIT $1`, limit)
}

// FirstWalletTransactions returns up to limit transactions, oldest first.
func FirstWalletTransactions(ctx context.Context, s *db.DB, limit int) ([]Transaction, error) {
	return db.Collect(ctx, s.Read, scanTransaction, `SELECT `+transactionColumns+` FROM wallet_transaction ORDER BY id LIMIT $1`, limit)
}

// SomeWallets returns the heads of up to limit accounts, in no particular order.
func SomeWallets(ctx context.Context, s *db.DB, limit int) ([]Head, error) {
	return db.Collect(ctx, s.Read, scanHead, `SELECT `+HeadColumns+` FROM wallet_account w LIMIT $1`, limit)
}

// Accounts returns up to limit accounts of users that follow the account after, ordered by
// user and currency. It leaves out house accounts.
func Accounts(ctx context.Context, s *db.DB, after Account, limit int) ([]Head, error) {
	return db.Collect(ctx, s.Read, scanHead, `SELECT `+HeadColumns+` FROM wallet_account w
		WHERE (w.user_id, w.currency) > ($1, $2) AND NOT (w.user_id >= 'house:' AND w.user_id < 'house;')
		ORDER BY w.user_id, w.currency LIMIT $3`, after.User, string(after.Currency), limit)
}

// keyLock is the number of the PostgreSQL advisory lock for the table wallet_key.
const keyLock = 0x61737361<<32 + 5

// LedgerKeys returns the marks of all stored keys. On PostgreSQL it prevents other processes
// from storing a key until the transaction ends.
func LedgerKeys(t *db.Tx) ([]KeyMark, error) {
	if err := t.ExecPostgres(`SELECT pg_advisory_xact_lock($1)`, int64(keyLock)); err != nil {
		return nil, err
	}
	return db.Collect(t.Context(), t, func(r *sql.Rows, m *KeyMark) error {
		var check []byte
		err := r.Scan(&m.ID, &check)
		m.Check = StoredHash(check)
		return err
	}, `SELECT key_id, check_mac FROM wallet_key ORDER BY key_id`)
}

// LedgerKeyUsed reports whether a row of the ledger or a stored response was sealed with a
// key. It may read the whole ledger.
func LedgerKeyUsed(ctx context.Context, s *db.DB, id string) (used bool, err error) {
	err = s.Read.QueryRowContext(ctx, `
		SELECT EXISTS (SELECT 1 FROM wallet_account WHERE key_id = $1) OR EXISTS (SELECT 1 FROM wallet_entry WHERE key_id = $1)
			OR EXISTS (SELECT 1 FROM wallet_transaction WHERE key_id = $1) OR EXISTS (SELECT 1 FROM idempotent_response WHERE key_id = $1)`, id).Scan(&used)
	return used, err
}

// PostedUnder returns the id of the transaction with an idempotency key, or 0 if it does
// not exist.
func PostedUnder(ctx context.Context, s *db.DB, scope, key string) (id int64, err error) {
	err = s.Reserved.QueryRowContext(ctx, `
		SELECT coalesce(max(id), 0) FROM wallet_transaction WHERE scope = $1 AND idempotency_key = $2 AND idempotency_key <> ''`, scope, key).Scan(&id)
	return id, err
}

// SetLedgerKey stores the mark of a key. The caller stores it before the key is first used.
func SetLedgerKey(t *db.Tx, m KeyMark) error {
	_, err := t.Exec(`
		INSERT INTO wallet_key (key_id, check_mac) VALUES ($1, $2)
		ON CONFLICT (key_id) DO UPDATE SET check_mac = excluded.check_mac WHERE wallet_key.check_mac <> excluded.check_mac`, m.ID, m.Check[:])
	return err
}

// ReadWallets returns the accounts of a user with their newest entries, ordered by currency.
// All rows come from one snapshot. For a house user it returns the accounts of all shards.
func ReadWallets(ctx context.Context, s *db.DB, user string) ([]State, error) {
	return states(ctx, s.Read, user)
}

// StatesOf does the same as ReadWallets within a transaction.
func StatesOf(t *db.Tx, user string) ([]State, error) { return states(t.Context(), t, user) }

func states(ctx context.Context, q db.Querier, user string) ([]State, error) {
	from, to := "~", "" // an empty range: only house users have shards
	if IsHouse(user) {
		from, to = user+":", user+";"
	}
	return db.Collect(ctx, q, func(r *sql.Rows, a *State) error {
		var hash, mac []byte
		var e Entry
		h := &a.Head
		err := scanEntryAnd(r, &e, &h.User, &h.Currency, &h.Balance, &h.Held, &h.Number, &hash, &h.Version, &h.KeyID, &mac)
		h.Hash, h.MAC = StoredHash(hash), StoredHash(mac)
		if e.User != "" {
			a.Newest = &e
		}
		return err
	}, `
		WITH account AS (
			SELECT * FROM wallet_account WHERE user_id = $1 OR user_id >= $2 AND user_id < $3
		)
		SELECT `+ReadEntryColumns+`, `+HeadColumns+` FROM account w
		JOIN wallet_entry e ON e.user_id = w.user_id AND e.currency = w.currency AND e.number = w.last_number
		UNION ALL
		SELECT `+noEntry+`, `+HeadColumns+` FROM account w WHERE NOT EXISTS (
			SELECT 1 FROM wallet_entry e WHERE e.user_id = w.user_id AND e.currency = w.currency AND e.number = w.last_number)
		ORDER BY 21, 20`, user, from, to)
}

// ReadEntries returns up to limit entries of a user's account. An empty currency selects
// all accounts of the user. The order is currency descending, then newest entry first.
// before and number are the currency and number of the last entry of the previous page.
func ReadEntries(ctx context.Context, s *db.DB, user string, currency, before money.Currency, number int64, limit int) ([]Entry, error) {
	return db.Collect(ctx, s.Read, scanEntry, `
		SELECT `+entryColumns+` FROM wallet_entry
		WHERE user_id = $1 AND ($2 = '' OR currency = $2) AND (currency, number) < ($3, $4)
		ORDER BY currency DESC, number DESC LIMIT $5`, user, string(currency), string(before), number, limit)
}
