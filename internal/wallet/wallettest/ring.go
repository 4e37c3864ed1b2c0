// Package wallettest has what tests of the ledger share.
package wallettest

import (
	"strings"
	"testing"

	"assay/internal/wallet"
)

// NewRing returns keys made of their ids. The first one seals.
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
