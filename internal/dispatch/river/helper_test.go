//go:build unix

package river_test

import (
	"log/slog"
	"testing"

	"github.com/jackc/pgx/v5"

	"assay/internal/pgtest"
)

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// database creates an empty database and returns its address.
func database(tb testing.TB) string {
	tb.Helper()
	return pgtest.Shared(tb).NewDatabase(tb)
}

// query returns the number that a statement selects.
func query(tb testing.TB, url, statement string) (n int64) {
	tb.Helper()
	conn, err := pgx.Connect(tb.Context(), url)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = conn.Close(tb.Context()) }()
	if err := conn.QueryRow(tb.Context(), statement).Scan(&n); err != nil {
		tb.Fatal(err)
	}
	return n
}
