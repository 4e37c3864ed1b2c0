package app

import (
	"context"
	"errors"

	"assay/internal/config"
	"assay/internal/exchange"
	"assay/internal/fault"
	"assay/internal/pricing"
	"assay/internal/provider"
	"assay/internal/refresh"
)

// openRates makes the keeper of exchange rates. It asks nobody.
func (a *App) openRates(client func(*provider.Options)) {
	o := exchange.Options{Base: a.cfg.Currency, Fixed: a.cfg.Rates, Store: a.store, Now: a.now, Log: a.log}
	switch {
	case a.cfg.RatesFile != "":
		o.Place = exchange.NewFile(a.cfg.RatesFile)
	case a.cfg.RatesECB:
		options := exchange.ECBOptions(provider.Options{
			Now: a.now, Logger: a.log, Allowance: a.store.Allowance(exchange.ECBName, exchange.ECBHost()),
		})
		address := ""
		if base := a.cfg.ECBBaseURL; base != nil {
			address, options.AllowHosts = base.String(), []string{provider.HostPort(base)}
		}
		if client != nil {
			client(&options)
		}
		a.ecb = provider.NewClient(options)
		o.Place = exchange.NewECB(a.ecb, address)
	}
	a.rates = exchange.New(o)
}

// currentRates are the rates of a job that begins now.
func (a *App) currentRates(ctx context.Context) (pricing.Rates, error) {
	rates, err := a.rates.Current(ctx)
	if errors.Is(err, exchange.ErrPending) {
		err = refresh.ErrNoRatesYet
	}
	return rates, err
}

// checkRates finds what is wrong with a file of rates before anything is created.
// What is wrong with it later only keeps it from being read.
func checkRates(ctx context.Context, cfg *config.Config) error {
	if cfg.RatesFile == "" {
		return nil
	}
	if _, err := exchange.NewFile(cfg.RatesFile).Rates(ctx, cfg.Currency); err != nil {
		return fault.New(fault.Invalid, "invalid_configuration", "MARKET_PRICE_RATES: %s: %v", cfg.RatesFile, err)
	}
	return nil
}
