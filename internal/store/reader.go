package store

import (
	"context"
	"database/sql"
)

// querier is what reads need: a transaction or the readers' pool.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// reader is the readers' pool. An error of the database that may pass has a
// fault.Unavailable in its chain, as that of a write has.
type reader struct{ pool }

type pool interface {
	querier
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	BeginTx(ctx context.Context, opts *sql.TxOptions) (*sql.Tx, error)
	Conn(ctx context.Context) (*sql.Conn, error)
	Close() error
}

// QueryContext is that of sql.DB.
func (r reader) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	rows, err := r.pool.QueryContext(ctx, query, args...)
	return rows, blame(err)
}

// QueryRowContext is that of sql.DB.
func (r reader) QueryRowContext(ctx context.Context, query string, args ...any) row {
	return row{r.pool.QueryRowContext(ctx, query, args...)}
}

// row is the answer to a query for one row.
type row struct{ *sql.Row }

// Scan is that of sql.Row.
func (r row) Scan(into ...any) error { return blame(r.Row.Scan(into...)) }
