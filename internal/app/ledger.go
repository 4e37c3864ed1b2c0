package app

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"assay/internal/config"
	"assay/internal/once"
	"assay/internal/store"
	"assay/internal/view"
	"assay/internal/wallet"
	"assay/internal/wallet/fee"
)

// keeper is the ledger with what belongs to it outside the database: its keys and
// its checkpoints.
type keeper struct {
	*wallet.Ledger
	store  *store.Store
	folder wallet.Folder
	now    func() time.Time
	used   func()     // tells, once, what an operator should know of a ledger in use
	mu     sync.Mutex // one checkpoint at a time
	last   noted      // what the last checkpoint of this process had
}

// noted is by what a checkpoint is told from another one: the last transaction, and
// the newest fee rules. Ids alone would not do: who deletes the last transaction may
// have the next one get its id.
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
	if err := a.store.InTx(ctx, func(tx *store.Tx) error { return a.noteLedgerKey(ctx, tx, ring) }); err != nil {
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
	return a.ledger.folder.Tidy(a.now())
}

// noteLedgerKey notes the key that is to seal, and refuses a start without one that
// was noted. Where several processes share a database the first of them decides,
// before anything is sealed; a file of its own may get another key until then.
func (a *App) noteLedgerKey(ctx context.Context, tx *store.Tx, ring *wallet.Ring) error {
	known, err := tx.LedgerKeys()
	if err != nil {
		return err
	}
	for _, id := range ring.Lacks(known) {
		used := a.cfg.Database.Engine != config.SQLite
		if !used {
			if used, err = a.store.LedgerKeyUsed(ctx, id); err != nil {
				return err
			}
		}
		if used {
			return lacksKey(id)
		}
	}
	return tx.SetLedgerKey(ring.Marks()[0])
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
	heads, err := a.store.SomeWallets(ctx, sampledAccounts)
	if err != nil {
		return err
	}
	first, err := a.store.FirstWalletTransactions(ctx, sampledTransactions)
	if err != nil {
		return err
	}
	last, err := a.store.LastWalletTransactions(ctx, sampledTransactions)
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
		a.log.Warn("the wallet ledger is in use, and its key and checkpoints lie beside its database: whoever can write there can rewrite it. Set WALLET_LEDGER_KEY, or WALLET_LEDGER_KEY_FILE to a place of its own, and keep copies of the checkpoints elsewhere")
	}
}

// Post carries out an order.
func (k *keeper) Post(ctx context.Context, o wallet.Order, sealed func(once.Keeper, view.WalletTransaction) error) error {
	err := k.store.InSmallTx(ctx, func(tx *store.Tx) error {
		p, err := k.Carry(tx, o)
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

// Checkpoint writes a checkpoint, unless nothing was posted since the last one of
// this process. What the newest one says must be so still: a ledger that was set
// back, or changed, gets none, lest it replace the evidence.
func (k *keeper) Checkpoint(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	now, err := k.newest(ctx)
	if err == nil && now.id != 0 {
		err = k.matchNewest(ctx)
	}
	if err == nil && now != k.last {
		err = k.write(ctx, now)
	}
	if err != nil {
		return fmt.Errorf("no checkpoint of the wallet ledger: %w", err)
	}
	return nil
}

// newest tells where the ledger is. The fee rules matter once it is in use.
func (k *keeper) newest(ctx context.Context) (n noted, err error) {
	last, err := k.store.LastWalletTransactions(ctx, 1)
	if err != nil || len(last) == 0 {
		return n, err
	}
	n.id, n.hash = last[0].ID, last[0].Hash
	a, err := k.store.FeeActivation(ctx, 0)
	switch {
	case errors.Is(err, fee.ErrNone):
		return n, nil
	case err == nil:
		err = k.Keys.CheckRules(a.Sealed())
	}
	n.rules = wallet.RulesMark(a.Version, a.Seal.MAC)
	return n, err
}

func (k *keeper) write(ctx context.Context, now noted) error {
	s := k.Keys.Sealer()
	_, err := k.folder.Write(k.Keys, k.now(), now.rules, func(w *wallet.CheckpointWriter) error {
		return k.store.EachWallet(ctx, func(h *wallet.Head) error {
			ok, err := s.HeadIntact(h)
			if err != nil {
				return err
			}
			if !ok {
				return fmt.Errorf("%w: account %.130q %s", wallet.ErrTampered, h.User, h.Currency)
			}
			return w.Add(wallet.Mark{Account: h.Account, Number: h.Number, Hash: h.Hash})
		})
	})
	if err == nil {
		k.last = now
	}
	return err
}

// lastCheckpoint writes a checkpoint when the process stops, if there is something
// new.
func (a *App) lastCheckpoint(ctx context.Context) {
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), atTheEnd)
	defer done()
	if now, err := a.ledger.newest(ctx); err == nil && now == a.ledger.last {
		return
	}
	if err := a.ledger.Checkpoint(ctx); err != nil {
		a.log.Error("checkpoint not written", "error", err)
	}
}

// atTheEnd is how long the last checkpoint may take.
const atTheEnd = 3 * time.Second

// marksAtOnce is how many marks are looked up in one statement.
const marksAtOnce = 500

// matchNewest compares the ledger with the newest checkpoint.
func (k *keeper) matchNewest(ctx context.Context) error {
	f, err := k.folder.Newest()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	var marks []wallet.Mark
	match := func() error {
		lost, err := k.store.Unmatched(ctx, marks)
		if err == nil && len(lost) > 0 {
			err = fmt.Errorf("%w: entry %d of %.130q %s is not that of the checkpoint %s", wallet.ErrTampered, lost[0].Number, lost[0].User, lost[0].Currency, filepath.Base(f.Name()))
		}
		marks = marks[:0]
		return err
	}
	_, err = wallet.ReadCheckpoint(f, k.Keys, func(m wallet.Mark) error {
		if m.OfRules() {
			return k.matchRules(ctx, m)
		}
		if marks = append(marks, m); len(marks) < marksAtOnce {
			return nil
		}
		return match()
	})
	if err != nil {
		return err
	}
	return match()
}

// matchRules compares the fee rules with what a checkpoint says of them.
func (k *keeper) matchRules(ctx context.Context, m wallet.Mark) error {
	if m.Number == 0 {
		return nil // there were none
	}
	a, err := k.store.FeeActivation(ctx, m.Number)
	if err == nil && a.Seal.MAC == m.Hash {
		return nil
	}
	if err == nil || errors.Is(err, fee.ErrNone) {
		err = fmt.Errorf("%w: version %d of the fee rules is not that of the checkpoint", wallet.ErrTampered, m.Number)
	}
	return err
}
