package db

import (
	"context"
	"database/sql"
)

// Querier runs queries: a transaction or a Reader.
type Querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Reader is a pool of read connections. A database error that may be temporary has a
// fault.Unavailable in its chain, as for writes.
type Reader struct{ pool }

type pool interface {
	Querier
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	BeginTx(ctx context.Context, opts *sql.TxOptions) (*sql.Tx, error)
	Conn(ctx context.Context) (*sql.Conn, error)
	Close() error
}

// QueryContext runs a query.
func (r Reader) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	rows, err := r.pool.QueryContext(ctx, query, args...)
	return rows, Transient(err)
}

// QueryRowContext runs a query for one row.
func (r Reader) QueryRowContext(ctx context.Context, query string, args ...any) Row {
	return Row{r.pool.QueryRowContext(ctx, query, args...)}
}

// Row is the result of QueryRowContext.
type Row struct{ *sql.Row }

// Scan copies the columns of the row to the given pointers.
func (r Row) Scan(into ...any) error { return Transient(r.Row.Scan(into...)) }
