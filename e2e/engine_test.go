package e2e

import (
	"strings"
	"testing"

	"assay/internal/pgtest"
)

// engine is a database system.
type engine string

const (
	onSQLite   engine = "SQLite"
	onPostgres engine = "PostgreSQL"
)

// onBoth runs a test on each engine.
func onBoth(t *testing.T, test func(t *testing.T, on engine)) {
	t.Helper()
	for _, on := range []engine{onSQLite, onPostgres} {
		t.Run(string(on), func(t *testing.T) { test(t, on) })
	}
}

// newServer prepares a server with a new database.
func (on engine) newServer(t *testing.T, env ...string) *server {
	t.Helper()
	if on == onSQLite {
		return newServer(t, env...)
	}
	return newServerOn(t, pgtest.Shared(t).NewDatabase(t), env...)
}

// given are the secrets of a server on PostgreSQL. Such a server generates no secrets.
var given = map[string]string{
	"MARKET_PRICE_SYNC_SECRET": strings.Repeat("a11ce001", 8),
	"PLATFORM_API_TOKEN":       strings.Repeat("b0b00002", 8),
	"ADMIN_API_TOKEN":          strings.Repeat("ad000003", 8),
	"WALLET_LEDGER_KEY":        strings.Repeat("0123abcd", 8),
}

// newServerOn prepares a server on a PostgreSQL database, which other servers may share.
func newServerOn(t *testing.T, url string, env ...string) *server {
	t.Helper()
	all := []string{"DATABASE_URL=" + url}
	for name, value := range given {
		all = append(all, name+"="+value)
	}
	s := newServer(t, append(all, env...)...) // for duplicate settings the last value applies
	s.database, s.secrets = url, given
	return s
}
