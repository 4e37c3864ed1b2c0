package app

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
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
		if ring, err = a.openLedgerKeys(ctx); err != nil {
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

// openLedgerKeys returns the configured keys of the ledger. It stores the wallet.KeyMark of the
// current key and checks all keys against the ledger.
func (a *App) openLedgerKeys(ctx context.Context) (*wallet.Ring, error) {
	ring, err := LedgerKeys(a.cfg)
	if err != nil {
		return nil, err
	}
	if err := a.store.InTx(ctx, func(tx *db.Tx) error { return a.storeLedgerKey(ctx, tx, ring) }); err != nil {
		return nil, err
	}
	return ring, a.checkSeals(ctx, ring)
}

// LedgerKeys returns the configured keys of the ledger.
func LedgerKeys(cfg *config.Config) (*wallet.Ring, error) {
	var keys []wallet.Key
	for _, k := range cfg.LedgerKeys {
		bytes, err := hex.DecodeString(k.Key.Reveal())
		if err != nil {
			return nil, errors.New("WALLET_LEDGER_KEY is not hexadecimal") // unreachable: config checks the key
		}
		keys = append(keys, wallet.Key{ID: k.ID, Bytes: bytes})
	}
	return wallet.NewRing(keys)
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

// storeLedgerKey stores the wallet.KeyMark of the current key. It returns an error if the ring
// lacks a stored key. On a shared database, the first process determines the key. On SQLite, a
// key can be replaced until it has sealed an entry.
func (a *App) storeLedgerKey(ctx context.Context, tx *db.Tx, ring *wallet.Ring) error {
	known, err := wallet.LedgerKeys(tx)
	if err != nil {
		return err
	}
	for _, id := range ring.Missing(known) {
		used := a.cfg.Database.Engine != config.SQLite
		if !used {
			if used, err = wallet.LedgerKeyUsed(ctx, a.store, id); err != nil {
				return err
			}
		}
		if used {
			return lacksKey(id)
		}
	}
	if slices.Contains(known, ring.Marks()[0]) {
		return nil // no write, so that a start on a full disk succeeds
	}
	return wallet.SetLedgerKey(tx, ring.Marks()[0])
}

func lacksKey(id string) error {
	return config.Faults{{
		Origin: "the wallet ledger", Setting: "WALLET_LEDGER_KEY",
		Problem: fmt.Sprintf("lacks the key %.40s, which seals the ledger, or has a different key with that id: add the original key after the current one", id),
	}}
}

// Numbers of rows that checkSeals reads.
const (
	sampledAccounts     = 1_000
	sampledTransactions = 10 // of the oldest and of the newest transactions
)

// checkSeals checks the keys against a sample of the ledger. It returns an error if a row
// has the id of a missing key, or if a key matches none of the rows with its id. It does not
// use the stored keys, because an attacker can delete them.
func (a *App) checkSeals(ctx context.Context, ring *wallet.Ring) error {
	heads, err := wallet.SomeWallets(ctx, a.store, sampledAccounts)
	if err != nil {
		return err
	}
	first, err := wallet.FirstWalletTransactions(ctx, a.store, sampledTransactions)
	if err != nil {
		return err
	}
	last, err := wallet.LastWalletTransactions(ctx, a.store, sampledTransactions)
	if err != nil {
		return err
	}
	s, proved := ring.Sealer(), map[string]bool{}
	for i := range heads {
		ok, err := s.HeadIntact(&heads[i])
		proved[heads[i].KeyID] = proved[heads[i].KeyID] || ok && err == nil
	}
	for _, t := range slices.Concat(first, last) {
		ok, err := s.TransactionIntact(&t)
		proved[t.KeyID] = proved[t.KeyID] || ok && err == nil
	}
	for _, id := range slices.Sorted(maps.Keys(proved)) {
		if !proved[id] {
			return lacksKey(id)
		}
	}
	return nil
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
