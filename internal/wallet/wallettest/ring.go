// Package wallettest has helpers for tests of the ledger.
package wallettest

import (
	"strings"
	"testing"

	"assay/internal/wallet"
)

// NewRing returns a ring with one key per id. Each key is derived from its id.
func NewRing(tb testing.TB, ids ...string) *wallet.Ring {
	tb.Helper()
	var keys []wallet.Key
	for _, id := range ids {
		keys = append(keys, wallet.Key{ID: id, Bytes: []byte(strings.Repeat(id, 32)[:32])})
	}
	r, err := wallet.NewRing(keys)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}
