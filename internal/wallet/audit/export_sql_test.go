package audit

import (
	"context"
	"database/sql"

	"assay/internal/db"
	"assay/internal/wallet"
)

// GuardPostgres returns the schema objects of a PostgreSQL database in the form of
// guard_postgres.txt.
func GuardPostgres(ctx context.Context, raw *sql.DB) (string, error) {
	found, err := db.ReadObjects(ctx, raw, selectObjectsPostgres)
	return found.String(), err
}

// LoosenForTests makes Schema report no changes. Tests use it after they drop constraints.
func (l *Snapshot) LoosenForTests() { l.loosened = true }

// TransactionsForTests returns all transactions.
func (l *Snapshot) TransactionsForTests() (out []wallet.Transaction, err error) {
	err = l.transactions(scope{}, func(t *Transaction) error {
		out = append(out, t.Transaction)
		return nil
	})
	return out, err
}

// TradeForTests returns an existing trade.
func (l *Snapshot) TradeForTests(id int64) (wallet.Trade, error) {
	rows, err := l.tradesOf([]int64{id})
	if err != nil {
		return wallet.Trade{}, err
	}
	return rows[0].Trade, nil
}
