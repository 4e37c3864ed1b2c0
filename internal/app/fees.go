package app

import (
	"context"

	"assay/internal/provider"
	"assay/internal/wallet/fee"
)

// openFees creates the service of the fee rules. It creates the first version of the rules
// if there is none.
func (a *App) openFees(ctx context.Context, used bool, client func(*provider.Options)) error {
	a.fees = &fee.Service{Store: a.store, Keys: a.ledger.Keys, Unused: !used, Now: a.now, Logger: a.log}
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
