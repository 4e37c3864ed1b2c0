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
	// poolSize is how many connections a process has at most, unless pool_max_conns
	// in the address says otherwise: half of them write, and a quarter of the others
	// is reserved; see Store.reserved.
	poolSize = 16
	// poolParameter is its name, which pgx's own pool has too.
	poolParameter = "pool_max_conns"
	// modeParameter is pgx's name for how statements are sent.
	modeParameter = "default_query_exec_mode"
	// idleConns is how long an idle connection stays open.
	idleConns = 5 * time.Minute
	// heldUp is how long a transaction may wait for us: a process that is stopped
	// in the middle of one must not keep its rows. Other instances end it sooner.
	heldUp = 10 * time.Second
)

// openPostgres opens the pools for writing and for reading. They are apart since
// what writes may read beside it: with one pool all could wait for each other.
func openPostgres(o Options) (write, read *sql.DB, err error) {
	open, conns, err := poolsPostgres(o)
	if err != nil {
		return nil, nil, err
	}
	return open(conns - conns/2), open(conns / 2), nil
}

// poolsPostgres returns a function that opens a pool of n connections, and how many
// the process may have in all. Behind a pooler transactions of one connection may
// run in several sessions, so that none can prepare a statement, unless the address
// says otherwise.
func poolsPostgres(o Options) (open func(n int) *sql.DB, conns int, err error) {
	u, conns, err := takePoolSize(o.URL)
	if err != nil {
		return nil, 0, err
	}
	cfg, err := pgx.ParseConfig(u.String())
	if err != nil {
		return nil, 0, errAddress // the error of pgx may show the password
	}
	pooled := o.Direct != ""
	if pooled && !u.Query().Has(modeParameter) {
		cfg.DefaultQueryExecMode = pgx.QueryExecModeExec
	}
	cfg.RuntimeParams["application_name"] = SessionName(o.Owner) // which poolers pass on
	if !pooled && cfg.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		// A pooler refuses parameters that it does not know.
		cfg.RuntimeParams["idle_in_transaction_session_timeout"] = strconv.FormatInt(heldUp.Milliseconds(), 10)
		// A plan that was made while a table was small is ruinous once it is
		// large, and how long a list is decides which plan is good.
		cfg.RuntimeParams["plan_cache_mode"] = "force_custom_plan"
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = heldUp
	}
	return func(n int) *sql.DB {
		db := stdlib.OpenDB(*cfg)
		db.SetMaxOpenConns(n)
		db.SetMaxIdleConns(n)
		db.SetConnMaxIdleTime(idleConns)
		return db
	}, conns, nil
}

// SessionName is what the sessions of a process are called in the database: the
// dispatcher's, too. Longer names than 63 bytes are cut there.
func SessionName(owner string) string { return strings.TrimSpace("assay " + owner) }

// checkEncodingPostgres refuses a database that would not keep names byte for byte.
func checkEncodingPostgres(ctx context.Context, db *sql.DB) error {
	var encoding string
	if err := db.QueryRowContext(ctx, `SELECT pg_encoding_to_char(encoding) FROM pg_database WHERE datname = current_database()`).Scan(&encoding); err != nil {
		return fmt.Errorf("read the encoding: %w", err)
	}
	if encoding != "UTF8" {
		return fmt.Errorf("%w: it stores text as %s", ErrEncoding, encoding)
	}
	return nil
}

// ErrEncoding means that a PostgreSQL database is not in UTF-8.
var ErrEncoding = errors.New("names are kept in UTF-8 only: make a database with CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0")

var (
	errAddress  = errors.New("DATABASE_URL is no address of a PostgreSQL database: postgres://user:password@host/database")
	errPoolSize = errors.New("pool_max_conns in DATABASE_URL is the number of connections of a process: 4 or more")
)

// takePoolSize takes the parameter that is ours out of an address.
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

// pgCode returns the SQLSTATE of PostgreSQL's own error in err, "" if there is
// none.
func pgCode(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// Codes of PostgreSQL's errors.
const (
	pgReadOnly       = "25006"
	pgSerialization  = "40001"
	pgDeadlock       = "40P01"
	pgTooMany        = "53300" // connections
	pgUndefinedTable = "42P01"
	pgNoDatabase     = "3D000"
	pgIdleTimeout    = "25P03" // of a transaction that waited for this process for too long
	pgLockTimeout    = "55P03" // of a transaction that does not wait for others; see atOnce
)

// lostRace reports whether a transaction was ended for another one's sake.
func lostRace(err error) bool {
	code := pgCode(err)
	return code == pgSerialization || code == pgDeadlock || code == pgLockTimeout || errors.Is(err, ErrRunAgain)
}

// passes reports whether an error of PostgreSQL is one that may pass by itself:
// a server that is away, shutting down, starting, full or a standby.
func passes(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false // the caller cancelled the request
	}
	code := pgCode(err)
	if code == "" {
		return pgconn.SafeToRetry(err) || connectionLost(err)
	}
	if lostRace(err) || code == pgReadOnly || code == pgIdleTimeout {
		return true
	}
	switch code[:2] {
	case "08", "53", "57", "58": // connection, resources, an operator's doing, the system
		return true
	}
	return false
}

// strained reports whether the server is unhealthy, not only unreachable or out of
// connections.
func strained(err error) bool {
	code := pgCode(err)
	return code == pgReadOnly || code != pgTooMany && strings.HasPrefix(code, "53") || strings.HasPrefix(code, "58")
}

// outcomeUnknown reports whether a commit that returned err may have been
// applied. It was not if PostgreSQL reports that, or if the commit was never sent.
func outcomeUnknown(err error) bool {
	if errors.Is(err, pgx.ErrTxCommitRollback) || errors.Is(err, sql.ErrTxDone) || pgconn.SafeToRetry(err) {
		return false
	}
	constraint := strings.HasPrefix(pgCode(err), "23")
	return !constraint && !lostRace(err)
}

// connectionLost reports whether a connection could not be made or broke.
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
