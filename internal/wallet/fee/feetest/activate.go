package feetest

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"assay/internal/db"
	"assay/internal/wallet"
	"assay/internal/wallet/fee"
)

// Fixed is a source of one set.
type Fixed struct{ Set *fee.Set }

// Name is that of the source.
func (Fixed) Name() string { return "fixed" }

// Load returns the set.
func (f Fixed) Load(context.Context, string) (fee.Loaded, error) {
	return fee.Loaded{Set: f.Set}, nil
}

// Service activates a set, sealed with keys.
func Service(s *db.DB, keys *wallet.Ring, set *fee.Set) *fee.Service {
	return &fee.Service{Store: s, Keys: keys, Source: Fixed{Set: set}, Now: time.Now, Logger: slog.New(slog.DiscardHandler)}
}

// Activate makes a set of fee rules the active one, sealed with keys.
func Activate(tb testing.TB, s *db.DB, keys *wallet.Ring, set *fee.Set) {
	tb.Helper()
	service := Service(s, keys, set)
	err := service.Begin(tb.Context())
	if err == nil {
		_, err = service.Refresh(tb.Context(), fee.Request{AllowLarge: true})
	}
	if err != nil {
		tb.Fatal(err)
	}
}
