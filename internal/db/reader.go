package db

import (
	"context"
	"database/sql"
)

// Querier is what reads need: a transaction or the readers' pool.
type Querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Reader is the readers' pool. An error of the database that may pass has a
// fault.Unavailable in its chain, as that of a write has.
type Reader struct{ pool }

type pool interface {
	Querier
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	BeginTx(ctx context.Context, opts *sql.TxOptions) (*sql.Tx, error)
	Conn(ctx context.Context) (*sql.Conn, error)
	Close() error
}

// QueryContext is that of sql.DB.
func (r Reader) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	rows, err := r.pool.QueryContext(ctx, query, args...)
	return rows, Transient(err)
}

// QueryRowContext is that of sql.DB.
func (r Reader) QueryRowContext(ctx context.Context, query string, args ...any) Row {
	return Row{r.pool.QueryRowContext(ctx, query, args...)}
}

// Row is the answer to a query for one row.
type Row struct{ *sql.Row }

// Scan is that of sql.Row.
func (r Row) Scan(into ...any) error { return Transient(r.Row.Scan(into...)) }
