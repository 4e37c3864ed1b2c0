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

// keeper is the ledger with what belongs to it outside the database: its keys and
// its checkpoints.
type keeper struct {
	*wallet.Ledger
	store  *db.DB
	folder wallet.Folder
	now    func() time.Time
	used   func()     // tells, once, what an operator should know of a ledger in use
	mu     sync.Mutex // one checkpoint at a time
	last   noted      // what the last checkpoint of this process had
}

// noted distinguishes a checkpoint from another one: the last transaction, and the
// newest fee rules. Ids alone are not enough: after the last transaction is deleted, the
// next one may get its id.
type noted struct {
	id    int64
	hash  wallet.Hash
	rules wallet.Mark
}

// openLedger makes the ledger, whose keys were created or given. The start is
// refused where something was sealed with a key that is missing.
func (a *App) openLedger(ctx context.Context, used bool) (err error) {
	var keys []wallet.Key
	for _, k := range a.cfg.LedgerKeys {
		bytes, err := hex.DecodeString(k.Key.Reveal())
		if err != nil {
			return errors.New("WALLET_LEDGER_KEY is not hexadecimal") // never shown: it was checked
		}
		keys = append(keys, wallet.Key{ID: k.ID, Bytes: bytes})
	}
	ring, err := wallet.NewRing(keys)
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
		folder: wallet.Folder{Dir: filepath.Join(a.cfg.DataDir, "checkpoints")}, used: sync.OnceFunc(a.warnOfLedger),
	}
	if used {
		a.ledger.used()
	}
	if a.readOnly {
		return nil
	}
	return a.ledger.folder.Tidy(a.now())
}

// noteLedgerKey notes the key that is to seal, and refuses a start without one that
// was noted. Where several processes share a database the first of them decides,
// before anything is sealed; a file of its own may get another key until then.
func (a *App) noteLedgerKey(ctx context.Context, tx *db.Tx, ring *wallet.Ring) error {
	known, err := wallet.LedgerKeys(tx)
	if err != nil {
		return err
	}
	for _, id := range ring.Lacks(known) {
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
		Problem: fmt.Sprintf("lacks the key %.40s, or has another one of that id, and the ledger was sealed with it, or another process is about to; put it back, behind the one that is to seal", id),
	}}
}

// What is looked at to see whether a key is there.
const (
	sampledAccounts     = 1_000
	sampledTransactions = 10 // the first and the last
)

// checkSeals refuses a start where something names a key that is missing, or none of
// what names a key was sealed with it, whatever keys were noted: that is in the
// same database, and may be deleted. It looks at some of the ledger; a verification
// looks at all of it.
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

// warnOfLedger tells where the key protects against less.
func (a *App) warnOfLedger() {
	if a.cfg.Database.Engine == config.SQLite && a.cfg.LedgerKeyGenerated() {
		a.log.Warn("ledger key and checkpoints are stored next to the database: set WALLET_LEDGER_KEY, or WALLET_LEDGER_KEY_FILE to another place, and store copies of the checkpoints elsewhere")
	}
}

// Post carries out an order.
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

// newest tells where the ledger is. The fee rules matter once it is in use.
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

// lastCheckpoint writes a checkpoint when the process stops, if there is something
// new.
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

// atTheEnd is how long the last checkpoint may take, with its verification: a stop has
// to end before whatever supervises the process kills it.
const atTheEnd = 4 * time.Second
