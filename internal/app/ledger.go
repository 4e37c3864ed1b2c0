package app

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	"assay/internal/config"
	"assay/internal/once"
	"assay/internal/store"
	"assay/internal/view"
	"assay/internal/wallet"
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
	last   int64      // transaction that the last checkpoint of this process had
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
	if err := a.checkLedgerKeys(ctx, ring); err != nil {
		return err
	}
	a.ledger = &keeper{
		Ledger: &wallet.Ledger{Keys: ring}, store: a.store, now: a.now,
		folder: wallet.Folder{Dir: filepath.Join(a.cfg.DataDir, "checkpoints")}, used: sync.OnceFunc(a.warnOfLedger),
	}
	if used {
		a.ledger.used()
	}
	return a.store.InTx(ctx, func(tx *store.Tx) error { return tx.SetLedgerKey(ring.Marks()[0]) })
}

func (a *App) checkLedgerKeys(ctx context.Context, ring *wallet.Ring) error {
	known, err := a.store.LedgerKeys(ctx)
	if err != nil {
		return err
	}
	for _, id := range ring.Lacks(known) {
		used, err := a.store.LedgerKeyUsed(ctx, id)
		if err != nil {
			return err
		}
		if used {
			return config.Faults{{
				Origin: "the wallet ledger", Setting: "WALLET_LEDGER_KEY",
				Problem: "lacks the key " + id + ", or has another one of that id, and the ledger has entries sealed with it; put it back, behind the one that is to seal",
			}}
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
		return sealed(tx, view.WalletPosted(p, o.User))
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
	last, err := k.store.LastWalletTransaction(ctx)
	if err != nil || last == k.last {
		return err
	}
	if err := k.matchNewest(ctx); err != nil {
		return fmt.Errorf("no checkpoint of the wallet ledger: %w", err)
	}
	s := k.Keys.Sealer()
	_, err = k.folder.Write(k.Keys, k.now(), func(w *wallet.CheckpointWriter) error {
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
	if err != nil {
		return fmt.Errorf("no checkpoint of the wallet ledger: %w", err)
	}
	k.last = last
	return nil
}

// lastCheckpoint writes a checkpoint when the process stops.
func (a *App) lastCheckpoint(ctx context.Context) {
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), atTheEnd)
	defer done()
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
