package app

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"assay/internal/api"
	"assay/internal/config"
	"assay/internal/db"
	"assay/internal/wallet"
	"assay/internal/wallet/audit"
	"assay/internal/wallet/ledger"
)

// openLedger opens the ledger. It returns an error if a key that sealed an entry is missing.
func (a *App) openLedger(ctx context.Context, used bool) (err error) {
	ring := &wallet.Ring{}
	if !a.cfg.PricesOnly || len(a.cfg.LedgerKeys) > 0 {
		if ring, err = (&ledgerKeys{a.cfg, a.store}).open(ctx); err != nil {
			return err
		}
	}
	a.ledger = &ledger.Service{
		Ledger: &wallet.Ledger{Keys: ring}, Store: a.store, Checkpoints: checkpointFolder(a.cfg),
		Scopes: api.WalletScopes, Now: a.now, Used: sync.OnceFunc(a.warnOfLedger),
	}
	switch {
	case used && a.cfg.PricesOnly:
		a.log.Warn("market and wallet are off, but the ledger has entries; trades do not settle: set MODULES to prices,market,wallet")
	case used:
		a.ledger.Used()
	}
	if a.readOnly {
		return nil
	}
	return a.ledger.Checkpoints.Tidy(a.now())
}

// checkpointFolder returns the folder of the ledger's checkpoints.
func checkpointFolder(cfg *config.Config) wallet.CheckpointDir {
	return wallet.CheckpointDir{Dir: filepath.Join(cfg.DataDir, "checkpoints")}
}

// OpenAuditor returns an auditor for a database. A server can use the database at the same
// time.
func OpenAuditor(cfg *config.Config, o db.Options, now func() time.Time) (*audit.Auditor, error) {
	keys, err := LedgerKeys(cfg)
	if err != nil {
		return nil, err
	}
	read := func(ctx context.Context, use func(*audit.Snapshot) error) error {
		return audit.ReadLedgerBeside(ctx, o, use)
	}
	return ledger.NewAuditor(keys, checkpointFolder(cfg), api.WalletScopes, now, read), nil
}

// warnOfLedger warns if the key is stored next to the database, where it protects the ledger
// less.
func (a *App) warnOfLedger() {
	if a.cfg.Database.Engine == config.SQLite && a.cfg.LedgerKeyGenerated() {
		a.log.Warn("ledger key and checkpoints are stored next to the database: set WALLET_LEDGER_KEY, or WALLET_LEDGER_KEY_FILE to another place, and store copies of the checkpoints elsewhere")
	}
}

// lastCheckpoint writes a checkpoint when the process stops, unless the ledger is unchanged
// since the last one.
func (a *App) lastCheckpoint(ctx context.Context) {
	ctx, done := context.WithTimeoutCause(context.WithoutCancel(ctx), lastCheckpointLimit,
		fmt.Errorf("the verification took longer than %v; the daily checkpoint has no such limit", lastCheckpointLimit))
	defer done()
	if !a.ledger.Changed(ctx) {
		return
	}
	if err := a.ledger.Checkpoint(ctx); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		a.log.Error("checkpoint not written", "error", err)
	}
}

// lastCheckpointLimit is the time limit of the last checkpoint, including its verification.
// The process must stop before its supervisor kills it.
const lastCheckpointLimit = 4 * time.Second
