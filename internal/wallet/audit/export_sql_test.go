package audit

import (
	"context"
	"database/sql"

	"assay/internal/db"
	"assay/internal/wallet"
)

// GuardPostgres returns what is compared of the tables of the ledger in a PostgreSQL
// database, as it is kept in guard_postgres.txt.
func GuardPostgres(ctx context.Context, raw *sql.DB) (string, error) {
	found, err := db.ReadObjects(ctx, raw, selectObjectsPostgres)
	return found.String(), err
}

// LoosenForTests has Schema find no changes, for ledgers whose constraints a test has
// dropped.
func (l *Snapshot) LoosenForTests() { l.loosened = true }

// TransactionsForTests returns all transactions.
func (l *Snapshot) TransactionsForTests() (out []wallet.Transaction, err error) {
	err = l.transactions(scope{}, func(t *Transaction) error {
		out = append(out, t.Transaction)
		return nil
	})
	return out, err
}

// TradeForTests returns a trade that is there.
func (l *Snapshot) TradeForTests(id int64) (wallet.Trade, error) {
	rows, err := l.tradesOf([]int64{id})
	if err != nil {
		return wallet.Trade{}, err
	}
	return rows[0].Trade, nil
}
