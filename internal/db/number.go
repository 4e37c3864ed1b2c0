package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// numberCache caches the last result of each query of Number.
type numberCache struct {
	mu   sync.Mutex
	last map[string]lastNumber
}

// lastNumber is a result on PostgreSQL with the snapshot of its query. Two queries with the same
// snapshot see the same transactions, so they have the same result. A snapshot is valid only for
// the server of its connection.
type lastNumber struct {
	conn      *pgx.Conn
	statement string
	snapshot  string
	number    int64
}

// Number runs a query without parameters that returns one number. It is for a query that runs
// thousands of times a second. On PostgreSQL it takes half of the processor time of QueryContext,
// because the server runs the query only after another transaction. ctx must have a deadline.
// Cancelling ctx earlier does not end the query.
func (s *DB) Number(ctx context.Context, query string) (n int64, err error) {
	if pool, ok := s.Frequent.pool.(*sql.DB); ok && s.Dialect == PostgreSQL {
		n, err = numberPostgres(ctx, pool, Local[numberCache](s), query)
		if err == nil || !pgconn.SafeToRetry(err) {
			return n, Transient(err)
		}
		// The server did not get the query, because the connection was broken. The pool replaces it.
	}
	err = s.Frequent.QueryRowContext(ctx, query).Scan(&n)
	return n, err
}

// numberPostgres runs a query on a connection of the driver.
func numberPostgres(ctx context.Context, pool *sql.DB, cache *numberCache, query string) (n int64, err error) {
	conn, err := pool.Conn(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }() // returns it to the pool
	var failed error
	err = conn.Raw(func(raw any) error {
		c := raw.(*stdlib.Conn).Conn()
		if n, failed = cache.query(ctx, c, query); failed != nil && c.IsClosed() {
			return driver.ErrBadConn // removes it from the pool
		}
		return nil
	})
	if failed != nil {
		err = failed
	}
	return n, err
}

// query returns the result of a query. A cancellable context would start goroutines for each query,
// so the network connection gets the deadline of ctx instead.
func (cache *numberCache) query(ctx context.Context, c *pgx.Conn, query string) (n int64, err error) {
	cache.mu.Lock()
	last := cache.last[query]
	cache.mu.Unlock()
	if last.conn != c {
		last = lastNumber{conn: c, statement: statementPostgres(query)}
	}
	deadline, _ := ctx.Deadline()
	network := c.PgConn().Conn()
	if err := network.SetDeadline(deadline); err != nil {
		return 0, err
	}
	defer func() { // the next user of the connection must not get this deadline
		if c.IsClosed() {
			return // the driver closes the network connection with a deadline of its own
		}
		if failed := network.SetDeadline(time.Time{}); err == nil {
			err = failed
		}
	}()
	var changed *int64
	if err := c.QueryRow(context.WithoutCancel(ctx), last.statement, last.snapshot).Scan(&changed, &last.snapshot); err != nil {
		return 0, err
	}
	if changed != nil {
		last.number = *changed
		cache.mu.Lock()
		defer cache.mu.Unlock()
		if cache.last == nil {
			cache.last = map[string]lastNumber{}
		}
		cache.last[query] = last
	}
	return last.number, nil
}

// numberSQL returns the result of a query in the place of SELECT 0, and the current snapshot. The
// result is null if the snapshot equals the parameter. A standby does not list running transactions
// in its snapshots, so two different snapshots may look equal there.
const numberSQL = `SELECT CASE WHEN pg_current_snapshot()::text = $1 AND NOT pg_is_in_recovery() THEN NULL ELSE (SELECT 0) END, pg_current_snapshot()::text`

func statementPostgres(query string) string { return strings.Replace(numberSQL, "SELECT 0", query, 1) }
