package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

const (
	// poolSize is the default limit of connections for each process. The parameter
	// pool_max_conns in the address overrides it. Half of the connections write. A
	// quarter of the others are reserved: see DB.Reserved.
	poolSize = 16
	// poolParameter is the address parameter for the size of the pool, named as in
	// pgxpool.
	poolParameter = "pool_max_conns"
	// modeParameter is the address parameter that selects how pgx sends statements.
	modeParameter = "default_query_exec_mode"
	// idleConns is how long an idle connection stays open.
	idleConns = 5 * time.Minute
	// clientTimeout limits how long a transaction may be idle on the server. If this
	// process stops in the middle of a transaction, PostgreSQL then releases the locked
	// rows. It is also the default connect timeout.
	clientTimeout = 10 * time.Second
)

// openPostgres opens one pool for writing and one for reading. A write transaction may
// read on another connection. With a single pool, such transactions could deadlock.
func openPostgres(o Options) (write, read *sql.DB, err error) {
	open, conns, err := poolsPostgres(o)
	if err != nil {
		return nil, nil, err
	}
	return open(conns-conns/2, planEach), open(conns/2, planEach), nil
}

// The planning modes of a pool. Planning each execution is the safe choice: a plan made for
// a small table is slow when the table is large, and the best plan depends on the length of
// a list parameter. Keeping plans halves the time of a query that reads few rows.
const (
	planEach  = "force_custom_plan"
	keepPlans = "auto"
)

// poolsPostgres returns a function that opens a pool of n connections with a planning mode,
// and the connection limit of the process. Behind a pooler, consecutive transactions of one
// connection may run in different sessions. Statements are then not prepared, unless the
// address sets another mode.
func poolsPostgres(o Options) (open func(n int, plans string) *sql.DB, conns int, err error) {
	u, conns, err := takePoolSize(o.URL)
	if err != nil {
		return nil, 0, err
	}
	cfg, err := pgx.ParseConfig(u.String())
	if err != nil {
		return nil, 0, errAddress // the error of pgx could contain the password
	}
	pooled := o.Direct != ""
	if pooled && !u.Query().Has(modeParameter) {
		cfg.DefaultQueryExecMode = pgx.QueryExecModeExec
	}
	cfg.RuntimeParams["application_name"] = SessionName(o.Owner) // poolers pass this parameter on
	prepares := !pooled && cfg.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement
	if prepares {
		// A pooler rejects unknown parameters, so set these only without a pooler.
		cfg.RuntimeParams["idle_in_transaction_session_timeout"] = strconv.FormatInt(clientTimeout.Milliseconds(), 10)
		if _, given := cfg.RuntimeParams["jit"]; !given {
			// Compiling a scan of all items takes 0.15 s, longer than the scan.
			cfg.RuntimeParams["jit"] = "off"
		}
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = clientTimeout
	}
	return func(n int, plans string) *sql.DB {
		c := cfg.Copy()
		if prepares {
			c.RuntimeParams["plan_cache_mode"] = plans
		}
		db := stdlib.OpenDB(*c)
		db.SetMaxOpenConns(n)
		db.SetMaxIdleConns(n)
		db.SetConnMaxIdleTime(idleConns)
		return db
	}, conns, nil
}

// SessionName returns the application_name of a process in PostgreSQL. The dispatcher
// uses it too. PostgreSQL truncates names longer than 63 bytes.
func SessionName(owner string) string { return strings.TrimSpace("assay " + owner) }

// checkEncodingPostgres returns ErrEncoding unless the database stores text as UTF-8.
// Other encodings would change item names.
func checkEncodingPostgres(ctx context.Context, db *sql.DB) error {
	var encoding string
	if err := db.QueryRowContext(ctx, `SELECT pg_encoding_to_char(encoding) FROM pg_database WHERE datname = current_database()`).Scan(&encoding); err != nil {
		return fmt.Errorf("read the encoding: %w", err)
	}
	if encoding != "UTF8" {
		return fmt.Errorf("%w (found %s)", ErrEncoding, encoding)
	}
	return nil
}

// ErrEncoding means that a PostgreSQL database is not in UTF-8.
var ErrEncoding = errors.New("the database encoding is not UTF-8: create a database with CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0")

var (
	errAddress  = errors.New("DATABASE_URL is not a valid PostgreSQL address: use postgres://user:password@host/database")
	errPoolSize = errors.New("pool_max_conns in DATABASE_URL is not a valid number of connections: use 4 or more")
)

// takePoolSize removes the pool size from an address and returns both.
func takePoolSize(address string) (rest *url.URL, conns int, err error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, 0, errAddress
	}
	q := u.Query()
	text := q.Get(poolParameter)
	if text == "" {
		return u, poolSize, nil
	}
	conns, err = strconv.Atoi(text)
	if err != nil || conns < 4 {
		return nil, 0, errPoolSize
	}
	q.Del(poolParameter)
	u.RawQuery = q.Encode()
	return u, conns, nil
}

// pgCode returns the SQLSTATE of the PostgreSQL error in err, or "" if there is none.
func pgCode(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// PostgreSQL error codes: https://www.postgresql.org/docs/current/errcodes-appendix.html
const (
	pgReadOnly       = "25006"
	pgSerialization  = "40001"
	pgDeadlock       = "40P01"
	pgTooMany        = "53300" // too many connections
	pgUndefinedTable = "42P01"
	pgNoDatabase     = "3D000"
	pgIdleTimeout    = "25P03" // the transaction was idle for longer than clientTimeout
	pgLockTimeout    = "55P03" // the transaction did not get a lock in time
)

// isConflict reports whether a transaction failed because of a concurrent one and can run
// again.
func isConflict(err error) bool {
	code := pgCode(err)
	return code == pgSerialization || code == pgDeadlock || code == pgLockTimeout || errors.Is(err, ErrRunAgain)
}

// isTemporary reports whether the cause of a PostgreSQL error may go away without a
// change to the request. Examples are a server that is unreachable, starting, shutting
// down, full or in standby.
func isTemporary(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false // the caller cancelled the request
	}
	code := pgCode(err)
	if code == "" {
		return pgconn.SafeToRetry(err) || connectionLost(err)
	}
	if isConflict(err) || code == pgReadOnly || code == pgIdleTimeout {
		return true
	}
	switch code[:2] {
	case "08", "53", "57", "58": // connection, resources, operator intervention, system error
		return true
	}
	return false
}

// isUnhealthy reports whether err shows a fault of the server itself, such as a full
// disk. Lost connections and reached connection limits do not count.
func isUnhealthy(err error) bool {
	code := pgCode(err)
	return code == pgReadOnly || code != pgTooMany && strings.HasPrefix(code, "53") || strings.HasPrefix(code, "58")
}

// outcomeUnknown reports whether a commit that returned err may have been applied. The
// outcome is known if PostgreSQL reported a rollback or the commit was never sent.
func outcomeUnknown(err error) bool {
	if errors.Is(err, pgx.ErrTxCommitRollback) || errors.Is(err, sql.ErrTxDone) || pgconn.SafeToRetry(err) {
		return false
	}
	constraint := strings.HasPrefix(pgCode(err), "23")
	return !constraint && !isConflict(err)
}

// connectionLost reports whether err means that a connection failed or was closed.
func connectionLost(err error) bool {
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, driver.ErrBadConn, sql.ErrConnDone} {
		if errors.Is(err, end) {
			return true
		}
	}
	return false
}
