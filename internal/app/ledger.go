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

// keeper is the ledger with its keys and checkpoints, which are outside the database.
type keeper struct {
	*wallet.Ledger
	store  *db.DB
	folder wallet.Folder
	now    func() time.Time
	used   func()     // warns the operator, once, about a ledger in use
	mu     sync.Mutex // one checkpoint at a time
	last   noted      // of the last checkpoint of this process
}

// noted identifies the state of a checkpoint: the last transaction and the newest fee
// rules. An id is not enough: if the last transaction is deleted, the next one may get its
// id.
type noted struct {
	id    int64
	hash  wallet.Hash
	rules wallet.Mark
}

// openLedger opens the ledger. It refuses a start without a key that sealed something.
func (a *App) openLedger(ctx context.Context, used bool) (err error) {
	ring, err := LedgerKeys(a.cfg)
	if err != nil {
		return err
	}
	if err := a.store.InTx(ctx, func(tx *db.Tx) error { return a.noteLedgerKey(ctx, tx, ring) }); err != nil {
		return err
	}
	if err := a.checkSeals(ctx, ring); err != nil {
		return err
	}
	a.ledger = &keeper{
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
			return nil, errors.New("WALLET_LEDGER_KEY is not hexadecimal") // never returned: the configuration was checked
		}
		keys = append(keys, wallet.Key{ID: k.ID, Bytes: bytes})
	}
	return wallet.NewRing(keys)
}

// checkpointFolder is where the checkpoints of the ledger are stored.
func checkpointFolder(cfg *config.Config) wallet.Folder {
	return wallet.Folder{Dir: filepath.Join(cfg.DataDir, "checkpoints")}
}

// noteLedgerKey stores the key that will seal, and refuses a start without a stored key.
// On a shared database the first process decides, before anything is sealed. On SQLite the
// key may change until it has sealed something.
func (a *App) noteLedgerKey(ctx context.Context, tx *db.Tx, ring *wallet.Ring) error {
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
		return nil // a start on a full disk writes nothing
	}
	return wallet.SetLedgerKey(tx, ring.Marks()[0])
}

func lacksKey(id string) error {
	return config.Faults{{
		Origin: "the wallet ledger", Setting: "WALLET_LEDGER_KEY",
		Problem: fmt.Sprintf("lacks the key %.40s, which seals the ledger, or has a different key of that id: add the original key after the current one", id),
	}}
}

// How much of the ledger checkSeals reads.
const (
	sampledAccounts     = 1_000
	sampledTransactions = 10 // the first and the last
)

// checkSeals refuses a start if a row names a missing key, or if no row that names a key
// was sealed with it. It does not depend on the stored keys, which an attacker can delete.
// It reads a sample; a verification reads the whole ledger.
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

// warnOfLedger warns if the key is stored where it protects less.
func (a *App) warnOfLedger() {
	if a.cfg.Database.Engine == config.SQLite && a.cfg.LedgerKeyGenerated() {
		a.log.Warn("ledger key and checkpoints are stored next to the database: set WALLET_LEDGER_KEY, or WALLET_LEDGER_KEY_FILE to another place, and store copies of the checkpoints elsewhere")
	}
}

// Post posts to the ledger. sealed is called last in the transaction.
func (k *keeper) Post(ctx context.Context, o wallet.Posting, sealed func(idempotency.ResponseStore, view.WalletTransaction) error) error {
	err := k.store.InSmallTx(ctx, func(tx *db.Tx) error {
		p, err := k.Execute(tx, o)
		if err != nil {
			return err
		}
		return sealed(sealing{tx, k.Keys}, view.WalletPosted(p, o.User))
	})
	if err == nil {
		k.used()
	}
	return err
}

// Checkpoint verifies the whole ledger, and writes a checkpoint of what it verified if
// the result is ok and something was posted since the last one of this process. A
// checkpoint vouches for a state: one of a bad state would replace the evidence.
func (k *keeper) Checkpoint(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	now, err := k.newest(ctx)
	switch {
	case err != nil || now.id == 0:
	case now == k.last:
		err = k.vouch(ctx, func(wallet.Mark) error { return nil })
	default:
		_, err = k.folder.Write(k.Keys, k.now(), now.rules, func(w *wallet.CheckpointWriter) error { return k.vouch(ctx, w.Add) })
		if err == nil {
			k.last = now
		}
	}
	if err != nil {
		return fmt.Errorf("no checkpoint of the wallet ledger: %w", err)
	}
	return nil
}

// vouch verifies the whole ledger and passes its marks to add. The error is a
// wallet.ErrTampered unless the result is ok.
func (k *keeper) vouch(ctx context.Context, add func(wallet.Mark) error) error {
	r, err := k.auditor().Marks(ctx, add)
	if err != nil {
		return err
	}
	if err := k.note(ctx, r); err != nil || r.OK {
		return err
	}
	return fmt.Errorf("%w: the verification is %s: %s", wallet.ErrTampered, r.Status, strings.Join(notPassed(r.Checks), ", "))
}

// newest returns the current state of the ledger. The fee rules count once it is in use.
func (k *keeper) newest(ctx context.Context) (n noted, err error) {
	last, err := wallet.LastWalletTransactions(ctx, k.store, 1)
	if err != nil || len(last) == 0 {
		return n, err
	}
	n.id, n.hash = last[0].ID, last[0].Hash
	a, err := fee.ReadActivation(ctx, k.store, 0)
	switch {
	case errors.Is(err, fee.ErrNone):
		return n, nil
	case err == nil:
		err = k.Keys.CheckRules(a.Sealed())
	}
	n.rules = wallet.RulesMark(a.Version, a.Seal.MAC)
	return n, err
}

// lastCheckpoint writes a checkpoint when the process stops, if the ledger has changed.
func (a *App) lastCheckpoint(ctx context.Context) {
	ctx, done := context.WithTimeoutCause(context.WithoutCancel(ctx), atTheEnd,
		fmt.Errorf("the ledger takes longer than %v to verify; the daily checkpoint has no such limit", atTheEnd))
	defer done()
	if now, err := a.ledger.newest(ctx); err == nil && now == a.ledger.last {
		return
	}
	if err := a.ledger.Checkpoint(ctx); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		a.log.Error("checkpoint not written", "error", err)
	}
}

// atTheEnd is how long the last checkpoint may take, including its verification: the
// process must stop before its supervisor kills it.
const atTheEnd = 4 * time.Second
