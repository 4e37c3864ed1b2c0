package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"assay/internal/config"
	"assay/internal/exchange"
	"assay/internal/fault"
	"assay/internal/money"
	"assay/internal/pricing"
	"assay/internal/provider"
	"assay/internal/provider/allowance"
	"assay/internal/provider/cs2cap"
	"assay/internal/provider/sim"
	"assay/internal/refresh"
	"assay/internal/view/metadata"
	"assay/internal/wallet/fee"
)

// openRates creates the keeper of exchange rates. It sends no request.
func (a *App) openRates(client func(*provider.Options)) {
	o := exchange.Options{Base: a.cfg.Currency, Fixed: a.cfg.Rates, Store: a.store, Now: a.now, Log: a.log}
	switch {
	case a.cfg.RatesFile != "":
		o.Source = exchange.NewFile(a.cfg.RatesFile)
	case a.cfg.RatesECB:
		options := exchange.ECBOptions(provider.Options{
			Now: a.now, Logger: a.log, Allowance: allowance.New(a.store, exchange.ECBName, exchange.ECBHost()),
		})
		address := ""
		if base := a.cfg.ECBBaseURL; base != nil {
			address, options.AllowHosts = base.String(), []string{provider.HostPort(base)}
		}
		if client != nil {
			client(&options)
		}
		a.ecb = provider.NewClient(options)
		o.Source = exchange.NewECB(a.ecb, address)
	}
	a.rates = exchange.New(o)
}

// currentRates returns the exchange rates for a job that starts now.
func (a *App) currentRates(ctx context.Context) (pricing.Rates, error) {
	rates, err := a.rates.Current(ctx)
	if errors.Is(err, exchange.ErrPending) {
		err = refresh.ErrNoRatesYet
	}
	return rates, err
}

// Check validates the configured providers, the level and the exchange rates. It sends no
// request and creates nothing. Problems that do not prevent a start are added to the
// warnings of cfg.
func Check(ctx context.Context, cfg *config.Config) error {
	_, err := check(ctx, cfg)
	return err
}

// check does the work of Check. It also returns the descriptions of items, so that New does not read
// their file again. That file can be large.
func check(ctx context.Context, cfg *config.Config) (metadata.Items, error) {
	if err := checkProviders(cfg); err != nil {
		return nil, err
	}
	set, err := describeProviders(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer func() { _ = set.Close() }() // no request was sent
	if _, err := refresh.LevelMarket(cfg.Level, set.List); err != nil {
		return nil, err
	}
	if err := checkRates(ctx, cfg, set.List); err != nil {
		return nil, err
	}
	if err := checkMarketFees(cfg, set.List); err != nil {
		return nil, err
	}
	items, err := loadMetadata(cfg)
	if err != nil {
		return nil, err
	}
	for _, warning := range warnings(ctx, cfg) {
		if !slices.Contains(cfg.Warnings, warning) {
			cfg.Warnings = append(cfg.Warnings, warning)
		}
	}
	return items, nil
}

// describeProviders opens the providers to read their descriptions. It starts no simulator.
func describeProviders(ctx context.Context, cfg *config.Config) (*ProviderSet, error) {
	described := *cfg
	described.Provider = maps.Clone(cfg.Provider)
	if s := described.Provider[sim.Name]; s.BaseURL == nil {
		s.BaseURL = &url.URL{Scheme: "http", Host: "127.0.0.1"}
		described.Provider[sim.Name] = s
	}
	return OpenProviders(ctx, ProviderOptions{Config: &described, Secret: cfg.OutsideSecret, Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
}

// warnings returns problems that can end without a change of the configuration: markets that
// cs2cap does not document, and a file of fee rules that cannot be loaded.
func warnings(ctx context.Context, cfg *config.Config) (all []string) {
	if slices.Contains(cfg.Providers, cs2cap.Name) {
		for _, key := range cfg.Provider[cs2cap.Name].Markets {
			if !slices.Contains(cs2cap.Markets(), key) {
				all = append(all, fmt.Sprintf("CS2CAP_MARKETS: cs2cap does not document the market %q: check the spelling; its markets are %s", key, strings.Join(cs2cap.Markets(), ", ")))
			}
		}
	}
	if cfg.FeeRules != "" && !cfg.PricesOnly {
		if _, err := (fee.File{Path: cfg.FeeRules}).Load(ctx, ""); err != nil {
			all = append(all, "PAYMENT_FEE_RULES: "+err.Error())
		}
	}
	return all
}

// checkMarketFees returns an error if MARKET_PRICE_FEES contains a market that no configured
// provider carries.
func checkMarketFees(cfg *config.Config, providers []provider.Provider) error {
	known := map[string]bool{}
	for _, p := range providers {
		d := p.Describe()
		for _, m := range d.Markets {
			known[m.Key], known[d.Name+"/"+m.Key] = true, true
		}
	}
	for _, market := range slices.Sorted(maps.Keys(cfg.MarketFees)) {
		if !known[market] {
			return fault.New(fault.Invalid, "invalid_configuration", "MARKET_PRICE_FEES: no configured provider carries the market %q. Correct or remove it.", market)
		}
	}
	return nil
}

// loadMetadata reads the descriptions of items.
func loadMetadata(cfg *config.Config) (metadata.Items, error) {
	items, err := metadata.Load(cfg.ItemMetadata)
	if opening := (*fs.PathError)(nil); errors.As(err, &opening) {
		err = opening.Err // the message names the path
	}
	if err != nil {
		return nil, fault.New(fault.Invalid, "invalid_configuration", "ITEM_METADATA: %s: %v", cfg.ItemMetadata, err)
	}
	return items, nil
}

// checkRates returns an error if the file of rates is invalid, or if a market quotes in a currency
// without a rate. A running server instead ignores an invalid file.
func checkRates(ctx context.Context, cfg *config.Config, providers []provider.Provider) error {
	file := pricing.Rates{}
	if cfg.RatesFile != "" {
		var err error
		if file, err = exchange.NewFile(cfg.RatesFile).Rates(ctx, cfg.Currency); err != nil {
			return fault.New(fault.Invalid, "invalid_configuration", "MARKET_PRICE_RATES: %s: %v", cfg.RatesFile, err)
		}
	}
	converts := func(c money.Currency) bool {
		_, fixed := cfg.Rates[c]
		_, filed := file[c]
		return c == cfg.Currency || fixed || filed || cfg.RatesECB && exchange.ECBHas(c) && exchange.ECBHas(cfg.Currency)
	}
	return checkCurrencies(cfg, providers, converts)
}

// checkCurrencies returns an error if a market quotes in a currency without a rate, because
// none of its quotes could be used.
func checkCurrencies(cfg *config.Config, providers []provider.Provider, converts func(money.Currency) bool) error {
	missing := map[money.Currency][]string{}
	for _, src := range providers {
		d := src.Describe()
		for i := range d.Markets {
			for _, c := range d.Markets[i].Currencies {
				if !converts(c) {
					missing[c] = append(missing[c], d.Name+"/"+d.Markets[i].Key)
				}
			}
		}
	}
	var faults []string
	for _, c := range slices.Sorted(maps.Keys(missing)) {
		hint := "ecb, or "
		if !exchange.ECBHas(c) || !exchange.ECBHas(cfg.Currency) || cfg.RatesECB || cfg.RatesFile != "" {
			hint = ""
		}
		faults = append(faults, fmt.Sprintf(
			"MARKET_PRICE_RATES has no rate for %s, the currency of %s: add %sa fixed rate such as %s=0.05@%s, which is the price of one %s in %s",
			c, summaryOf(missing[c]), hint, c, time.Now().UTC().Format(time.DateOnly), c, cfg.Currency))
	}
	if len(faults) == 0 {
		return nil
	}
	return fault.New(fault.Invalid, "invalid_configuration", "%s", strings.Join(faults, "\n"))
}

// summaryOf returns the first names of a list and the number of the others.
func summaryOf(names []string) string {
	const most = 3
	if len(names) > most {
		return strings.Join(names[:most], ", ") + " and " + strconv.Itoa(len(names)-most) + " more"
	}
	return strings.Join(names, ", ")
}
