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

// Fixed is a source with a constant set.
type Fixed struct{ Set *fee.Set }

// Name implements fee.Source.
func (Fixed) Name() string { return "fixed" }

// Load implements fee.Source.
func (f Fixed) Load(context.Context, string) (fee.Loaded, error) {
	return fee.Loaded{Set: f.Set}, nil
}

// Service returns a service that activates a set and seals it with keys.
func Service(s *db.DB, keys *wallet.Ring, set *fee.Set) *fee.Service {
	return &fee.Service{Store: s, Keys: keys, Source: Fixed{Set: set}, Now: time.Now, Logger: slog.New(slog.DiscardHandler)}
}

// Activate activates a set of fee rules and seals it with keys.
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
