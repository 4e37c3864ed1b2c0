package store

import (
	"assay/internal/db"
	"context"
	"database/sql"

	"assay/internal/money"
	"assay/internal/wallet"
)

// LedgerUsed reports whether the ledger has anything in it.
func (s *Store) LedgerUsed(ctx context.Context) (used bool, err error) {
	err = s.Read.QueryRowContext(ctx, `
		SELECT EXISTS (SELECT 1 FROM wallet_account) OR EXISTS (SELECT 1 FROM wallet_entry) OR EXISTS (SELECT 1 FROM wallet_transaction)`).Scan(&used)
	return used, err
}

// LastWalletTransactions returns the newest transactions, the last first.
func (s *Store) LastWalletTransactions(ctx context.Context, most int) ([]wallet.Transaction, error) {
	return db.Collect(ctx, s.Read, scanTransaction, `SELECT `+transactionColumns+` FROM wallet_transaction ORDER BY id DESC LIMIT $1`, most)
}

// FirstWalletTransactions returns the oldest transactions, the first first.
func (s *Store) FirstWalletTransactions(ctx context.Context, most int) ([]wallet.Transaction, error) {
	return db.Collect(ctx, s.Read, scanTransaction, `SELECT `+transactionColumns+` FROM wallet_transaction ORDER BY id LIMIT $1`, most)
}

// SomeWallets returns heads of accounts.
func (s *Store) SomeWallets(ctx context.Context, most int) ([]wallet.Head, error) {
	return db.Collect(ctx, s.Read, scanHead, `SELECT `+headColumns+` FROM wallet_account w LIMIT $1`, most)
}

// keyLock is the number of an advisory lock.
const keyLock = 0x61737361<<32 + 5

// LedgerKeys returns the marks of all keys that have sealed something, or were to,
// and keeps others from noting one before the transaction ends.
func (t *Tx) LedgerKeys() ([]wallet.KeyMark, error) {
	if err := t.ExecPostgres(`SELECT pg_advisory_xact_lock($1)`, int64(keyLock)); err != nil {
		return nil, err
	}
	return db.Collect(t.Context(), t, func(r *sql.Rows, m *wallet.KeyMark) error {
		var check []byte
		err := r.Scan(&m.ID, &check)
		m.Check = storedHash(check)
		return err
	}, `SELECT key_id, check_mac FROM wallet_key ORDER BY key_id`)
}

// LedgerKeyUsed reports whether something was sealed with a key. It may read the
// whole ledger.
func (s *Store) LedgerKeyUsed(ctx context.Context, id string) (used bool, err error) {
	err = s.Read.QueryRowContext(ctx, `
		SELECT EXISTS (SELECT 1 FROM wallet_account WHERE key_id = $1) OR EXISTS (SELECT 1 FROM wallet_entry WHERE key_id = $1)
			OR EXISTS (SELECT 1 FROM wallet_transaction WHERE key_id = $1) OR EXISTS (SELECT 1 FROM kept_answer WHERE key_id = $1)`, id).Scan(&used)
	return used, err
}

// PostedUnder returns the id of the transaction that was posted under an idempotency
// key; 0: there is none.
func (s *Store) PostedUnder(ctx context.Context, scope, key string) (id int64, err error) {
	err = s.Reserved.QueryRowContext(ctx, `
		SELECT coalesce(max(id), 0) FROM wallet_transaction WHERE scope = $1 AND idempotency_key = $2 AND idempotency_key <> ''`, scope, key).Scan(&id)
	return id, err
}

// SetLedgerKey notes a key that is about to seal.
func (t *Tx) SetLedgerKey(m wallet.KeyMark) error {
	_, err := t.Exec(`
		INSERT INTO wallet_key (key_id, check_mac) VALUES ($1, $2)
		ON CONFLICT (key_id) DO UPDATE SET check_mac = excluded.check_mac WHERE wallet_key.check_mac <> excluded.check_mac`, m.ID, m.Check[:])
	return err
}

// Wallets returns a user's accounts as of one moment, by currency, each with its newest
// entry; of a house user, those of all its shards.
func (s *Store) Wallets(ctx context.Context, user string) ([]wallet.State, error) {
	return wallets(ctx, s.Read, user)
}

// Wallets is that of Store, within the transaction.
func (t *Tx) Wallets(user string) ([]wallet.State, error) { return wallets(t.Context(), t, user) }

func wallets(ctx context.Context, q db.Querier, user string) ([]wallet.State, error) {
	from, to := "~", "" // no shards
	if wallet.IsHouse(user) {
		from, to = user+":", user+";"
	}
	return db.Collect(ctx, q, func(r *sql.Rows, a *wallet.State) error {
		var hash, mac []byte
		var e wallet.Entry
		h := &a.Head
		err := scanEntryAnd(r, &e, &h.User, &h.Currency, &h.Balance, &h.Held, &h.Number, &hash, &h.Version, &h.KeyID, &mac)
		h.Hash, h.MAC = storedHash(hash), storedHash(mac)
		if e.User != "" {
			a.Newest = &e
		}
		return err
	}, `
		WITH account AS (
			SELECT * FROM wallet_account WHERE user_id = $1 OR user_id >= $2 AND user_id < $3
		)
		SELECT `+readEntryColumns+`, `+headColumns+` FROM account w
		JOIN wallet_entry e ON e.user_id = w.user_id AND e.currency = w.currency AND e.number = w.last_number
		UNION ALL
		SELECT `+noEntry+`, `+headColumns+` FROM account w WHERE NOT EXISTS (
			SELECT 1 FROM wallet_entry e WHERE e.user_id = w.user_id AND e.currency = w.currency AND e.number = w.last_number)
		ORDER BY 21, 20`, user, from, to)
}

// Entries returns entries of an account, or of all of a user's if currency is "",
// that come before a currency's number, the newest first in each currency.
func (s *Store) Entries(ctx context.Context, user string, currency, before money.Currency, number int64, limit int) ([]wallet.Entry, error) {
	return db.Collect(ctx, s.Read, scanEntry, `
		SELECT `+entryColumns+` FROM wallet_entry
		WHERE user_id = $1 AND ($2 = '' OR currency = $2) AND (currency, number) < ($3, $4)
		ORDER BY currency DESC, number DESC LIMIT $5`, user, string(currency), string(before), number, limit)
}
