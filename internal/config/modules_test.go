package config

import (
	"os"
	"strings"
	"testing"
)

func TestLoad_AcceptsAllModulesOrPricesAlone(t *testing.T) {
	for value, pricesOnly := range map[string]bool{"prices": true, "prices,market,wallet": false, "wallet, prices, market": false} {
		if c := load(t, options(t, "MODULES="+value)); c.PricesOnly != pricesOnly {
			t.Errorf("MODULES=%s: got PricesOnly %v, want %v", value, c.PricesOnly, pricesOnly)
		}
	}
}

func TestLoad_WarnsOfSettingsOfModulesThatAreOff(t *testing.T) {
	c := load(t, options(t, "MODULES=prices", "TRADE_HOLD=1h"))
	if got := strings.Join(c.Warnings, "\n"); got != "TRADE_HOLD has no effect, because MODULES is prices" {
		t.Errorf("got warnings %q, want one for TRADE_HOLD", got)
	}
	if c := load(t, options(t, "TRADE_HOLD=1h")); len(c.Warnings) != 0 {
		t.Errorf("got warnings %q with all modules, want none", c.Warnings)
	}
}

func TestCreateSecrets_WithoutTheWalletAnEmptyLedgerNeedsNoKey(t *testing.T) {
	c := load(t, options(t, "MODULES=prices"))
	created, err := CreateSecrets(c, true)
	if err != nil || len(created) != 3 || len(c.LedgerKeys) != 0 {
		t.Errorf("got files %v, %d ledger keys, error %v; want 3 files and no ledger key", created, len(c.LedgerKeys), err)
	}
	if _, err := os.Stat(generatedPath(c.DataDir, ledgerKey)); err == nil {
		t.Error("a ledger key was created, want none")
	}
	if _, err := CreateSecrets(c, false); err == nil || !strings.Contains(err.Error(), "WALLET_LEDGER_KEY: is missing, and the ledger has entries") {
		t.Errorf("got error %v for a ledger with entries, want an error about WALLET_LEDGER_KEY", err)
	}
	shared := load(t, options(t, "MODULES=prices", "DATABASE_URL=postgres://db/prices"))
	if _, err := CreateSecrets(shared, true); err == nil || strings.Contains(err.Error(), ledgerKey) {
		t.Errorf("got error %v on PostgreSQL, want one without %s", err, ledgerKey)
	}
}
