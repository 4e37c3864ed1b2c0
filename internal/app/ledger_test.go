package app

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/idempotency"
	"assay/internal/view"
	"assay/internal/wallet"
)

// newKeeper makes a ledger on an SQLite file, with a clock that moves by itself.
func newKeeper(t *testing.T) (*keeper, dbtest.Database) {
	t.Helper()
	d := dbtest.On(t, dbtest.SQLite)
	at := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	now := func() time.Time { at = at.Add(time.Second); return at }
	s, err := db.Open(t.Context(), db.Options{Path: d.Path, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	keys, err := wallet.NewRing([]wallet.Key{{ID: "k1", Bytes: make([]byte, 32)}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.InTx(t.Context(), func(tx *db.Tx) error { return wallet.SetLedgerKey(tx, keys.Marks()[0]) }); err != nil {
		t.Fatal(err)
	}
	return &keeper{
		Ledger: &wallet.Ledger{Keys: keys}, store: s, folder: wallet.Folder{Dir: t.TempDir()}, used: func() {},
		now: now,
	}, d
}

func (k *keeper) give(t *testing.T, user string) {
	t.Helper()
	order := wallet.Posting{Account: wallet.Account{User: user, Currency: "USD"}, Kind: wallet.KindDeposit, Amount: 5}
	if err := k.Post(t.Context(), order, func(idempotency.ResponseStore, view.WalletTransaction) error { return nil }); err != nil {
		t.Fatal(err)
	}
}

func (k *keeper) files(t *testing.T) int {
	t.Helper()
	files, err := os.ReadDir(k.folder.Dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

func TestCheckpoint_IsWrittenAfterAPosting(t *testing.T) {
	k, _ := newKeeper(t)
	for step, want := range []int{0, 1, 1, 2} {
		if step%2 == 1 {
			k.give(t, "u1")
		}
		if err := k.Checkpoint(t.Context()); err != nil || k.files(t) != want {
			t.Errorf("step %d: %d files, want %d, %v", step, k.files(t), want, err)
		}
	}
}

// TestCheckpoint_DetectsADeletionWithoutNewPostings is about who deletes what came last: the
// next transaction may get the id that is free then.
func TestCheckpoint_DetectsADeletionWithoutNewPostings(t *testing.T) {
	k, d := newKeeper(t)
	k.give(t, "u1")
	k.give(t, "u2")
	if err := k.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	raw := d.Raw(t)
	defer raw.Close()
	for _, statement := range []string{
		`DROP TRIGGER wallet_entry_delete`, `DROP TRIGGER wallet_account_delete`,
		`DELETE FROM wallet_entry WHERE user_id = 'u1'`, `DELETE FROM wallet_account WHERE user_id = 'u1'`,
	} {
		if _, err := raw.ExecContext(context.Background(), statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := k.Checkpoint(t.Context()); !errors.Is(err, wallet.ErrTampered) || k.files(t) != 1 {
		t.Errorf("%d files, %v", k.files(t), err)
	}
}

func TestCheckpoint_ReplacesNoEvidence(t *testing.T) {
	for name, edit := range map[string]string{
		"an account that was changed":          `UPDATE wallet_account SET balance = balance + 1 WHERE user_id = 'u1'`,
		"an entry that the newest had is gone": `DROP TRIGGER wallet_entry_delete; DELETE FROM wallet_entry WHERE user_id = 'u1'`,
	} {
		t.Run(name, func(t *testing.T) {
			k, d := newKeeper(t)
			k.give(t, "u1")
			if err := k.Checkpoint(t.Context()); err != nil {
				t.Fatal(err)
			}
			raw := d.Raw(t)
			defer raw.Close()
			for statement := range strings.SplitSeq(edit, ";") {
				if _, err := raw.ExecContext(context.Background(), statement); err != nil {
					t.Fatal(err)
				}
			}
			k.give(t, "u2")
			if err := k.Checkpoint(t.Context()); !errors.Is(err, wallet.ErrTampered) || k.files(t) != 1 {
				t.Errorf("%d files, %v", k.files(t), err)
			}
		})
	}
}
