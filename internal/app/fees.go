package app

import (
	"context"

	"assay/internal/provider"
	"assay/internal/store"
	"assay/internal/wallet/fee"
)

// feeStore is the store as the fee rules see it.
type feeStore struct{ *store.Store }

func (s feeStore) InTx(ctx context.Context, fn func(fee.Tx) error) error {
	return s.Store.InTx(ctx, func(tx *store.Tx) error { return fn(tx) })
}

// openFees makes the service of the fee rules, and their first version if there is
// none yet.
func (a *App) openFees(ctx context.Context, used bool, client func(*provider.Options)) error {
	a.fees = &fee.Service{Store: feeStore{a.store}, Keys: a.ledger.Keys, Unused: !used, Now: a.now, Logger: a.log}
	switch {
	case a.cfg.FeeRulesURL != nil:
		o := fee.ClientOptions(provider.Options{Now: a.now, Logger: a.log}, a.cfg.FeeRulesURL)
		if client != nil {
			client(&o)
		}
		a.feeClient = provider.NewClient(o)
		a.fees.Source = fee.NewAddress(a.feeClient, a.cfg.FeeRulesURL)
	case a.cfg.FeeRules != "":
		a.fees.Source = fee.File{Path: a.cfg.FeeRules}
	}
	return a.fees.Begin(ctx)
}

// feeDesk is what the API may do with fee rules.
type feeDesk struct {
	*fee.Service
	store *store.Store
}

func (d feeDesk) Versions(ctx context.Context, before int64, limit int) ([]fee.Activation, error) {
	return d.store.FeeActivations(ctx, before, limit)
}
