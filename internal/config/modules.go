package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// allModules is the default of MODULES.
const allModules = "prices,market,wallet"

// ledgerKey is the setting of the keys of the wallet ledger.
const ledgerKey = "WALLET_LEDGER_KEY"

// parseModules parses a list of modules. It accepts all modules, or prices alone, because
// purchases connect the market with the wallet.
func parseModules(value string) (pricesOnly bool, err error) {
	known, given := strings.Split(allModules, ","), splitList(value)
	for i, module := range given {
		if !slices.Contains(known, module) {
			return false, fmt.Errorf("%q is unknown; want %s", module, orList(known))
		}
		if slices.Contains(given[:i], module) {
			return false, fmt.Errorf("has %q twice; remove one", module)
		}
	}
	switch {
	case len(given) == len(known):
		return false, nil
	case !slices.Contains(given, "prices"):
		return false, errors.New("lacks prices, which the other modules need; write prices or " + allModules)
	case len(given) > 1:
		return false, errors.New("has only one of market and wallet, which need each other; write prices or " + allModules)
	}
	return true, nil
}

// Modules returns the setting MODULES in its canonical form.
func (c *Config) Modules() string {
	if c.PricesOnly {
		return "prices"
	}
	return allModules
}

// warnOfUnusedSettings warns of settings of the modules that are off.
func (l *loader) warnOfUnusedSettings(c *Config) {
	if !c.PricesOnly {
		return
	}
	for _, s := range platformSettings() {
		if l.origins[s.name] != originDefault {
			l.warnings = append(l.warnings, s.name+" has no effect, because MODULES is prices")
		}
	}
}
