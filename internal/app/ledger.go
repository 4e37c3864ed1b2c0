package app

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"assay/internal/config"
	"assay/internal/db"
	"assay/internal/idempotency"
	"assay/internal/view"
	"assay/internal/wallet"
	"assay/internal/wallet/fee"
)

// ledger is the wallet ledger with its keys and checkpoints, which are stored outside the
// database.
type ledger struct {
	*wallet.Ledger
	store  *db.DB
	folder wallet.Folder
	now    func() time.Time
	used   func()      // called when the ledger is in use; logs a warning once
	mu     sync.Mutex  // serializes checkpoints
	last   ledgerState // state of the last checkpoint of this process
}

// ledgerState identifies a state of the ledger by its last transaction and its newest fee
// rules. The id of the transaction is not sufficient, because it can be assigned again
// after a deletion.
type ledgerState struct {
	id    int64
	hash  wallet.Hash
	rules wallet.Mark
}

// openLedger opens the ledger. It returns an error if a key is missing that sealed an entry.
func (a *App) openLedger(ctx context.Context, used bool) (err error) {
	ring, err := LedgerKeys(a.cfg)
	if err != nil {
		return err
	}
	if err := a.store.InTx(ctx, func(tx *db.Tx) error { return a.storeLedgerKey(ctx, tx, ring) }); err != nil {
		return err
	}
	if err := a.checkSeals(ctx, ring); err != nil {
		return err
	}
	a.ledger = &ledger{
		Ledger: &wallet.Ledger{Keys: ring}, store: a.store, now: a.now,
		folder: checkpointFolder(a.cfg), used: sync.OnceFunc(a.warnOfLedger),
	}
	if used {
		a.ledger.used()
	}
	if a.readOnly {
		return nil
	}
	return a.ledger.folder.Tidy(a.now())
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
func checkpointFolder(cfg *config.Config) wallet.Folder {
	return wallet.Folder{Dir: filepath.Join(cfg.DataDir, "checkpoints")}
}

// storeLedgerKey stores the mark of the current key. It returns an error if the ring lacks
// a stored key. On a shared database the first process determines the key. On SQLite a key
// can be replaced until it has sealed an entry.
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
	sampledTransactions = 10 // at each end of the ledger
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

// warnOfLedger warns if the key is stored next to the database, where it gives less
// protection.
func (a *App) warnOfLedger() {
	if a.cfg.Database.Engine == config.SQLite && a.cfg.LedgerKeyGenerated() {
		a.log.Warn("ledger key and checkpoints are stored next to the database: set WALLET_LEDGER_KEY, or WALLET_LEDGER_KEY_FILE to another place, and store copies of the checkpoints elsewhere")
	}
}

// Post posts a transaction to the ledger. It calls sealed as the last step of the database
// transaction.
func (l *ledger) Post(ctx context.Context, o wallet.Posting, sealed func(idempotency.ResponseStore, view.WalletTransaction) error) error {
	err := l.store.InSmallTx(ctx, func(tx *db.Tx) error {
		p, err := l.Execute(tx, o)
		if err != nil {
			return err
		}
		return sealed(sealingTx{tx, l.Keys}, view.WalletPosted(p, o.User))
	})
	if err == nil {
		l.used()
	}
	return err
}

// Checkpoint verifies the whole ledger. If the result is ok, and the ledger changed since
// the last checkpoint of this process, it writes a new checkpoint. It writes none for a
// damaged ledger, because that would replace the evidence.
func (l *ledger) Checkpoint(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, err := l.state(ctx)
	switch {
	case err != nil || now.id == 0:
	case now == l.last:
		err = l.verifyMarks(ctx, func(wallet.Mark) error { return nil })
	default:
		_, err = l.folder.Write(l.Keys, l.now(), now.rules, func(w *wallet.CheckpointWriter) error { return l.verifyMarks(ctx, w.Add) })
		if err == nil {
			l.last = now
		}
	}
	if err != nil {
		return fmt.Errorf("write a checkpoint of the wallet ledger: %w", err)
	}
	return nil
}

// verifyMarks verifies the whole ledger and passes its marks to add. It returns a
// wallet.ErrTampered if the result is not ok.
func (l *ledger) verifyMarks(ctx context.Context, add func(wallet.Mark) error) error {
	r, err := l.auditor().Marks(ctx, add)
	if err != nil {
		return err
	}
	if err := l.storeResult(ctx, r); err != nil || r.OK {
		return err
	}
	return fmt.Errorf("%w: the verification is %s: %s", wallet.ErrTampered, r.Status, strings.Join(notPassed(r.Checks), ", "))
}

// state returns the current state of the ledger. It is zero while the ledger has no
// transaction.
func (l *ledger) state(ctx context.Context) (s ledgerState, err error) {
	last, err := wallet.LastWalletTransactions(ctx, l.store, 1)
	if err != nil || len(last) == 0 {
		return s, err
	}
	s.id, s.hash = last[0].ID, last[0].Hash
	a, err := fee.ReadActivation(ctx, l.store, 0)
	switch {
	case errors.Is(err, fee.ErrNone):
		return s, nil
	case err == nil:
		err = l.Keys.CheckRules(a.Sealed())
	}
	s.rules = wallet.RulesMark(a.Version, a.Seal.MAC)
	return s, err
}

// lastCheckpoint writes a checkpoint when the process stops, unless the ledger is unchanged
// since the last one.
func (a *App) lastCheckpoint(ctx context.Context) {
	ctx, done := context.WithTimeoutCause(context.WithoutCancel(ctx), lastCheckpointLimit,
		fmt.Errorf("the verification took longer than %v; the daily checkpoint has no such limit", lastCheckpointLimit))
	defer done()
	if now, err := a.ledger.state(ctx); err == nil && now == a.ledger.last {
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
