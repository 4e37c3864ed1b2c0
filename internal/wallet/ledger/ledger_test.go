package ledger

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/wallet"
)

// newTestLedger creates a ledger on an SQLite file. Its clock advances by a second with each
// reading.
func newTestLedger(t *testing.T) (*Service, dbtest.Database) {
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
	return &Service{
		Ledger: &wallet.Ledger{Keys: keys}, Store: s, Checkpoints: wallet.CheckpointDir{Dir: t.TempDir()}, Used: func() {},
		Now: now,
	}, d
}

func (l *Service) deposit(t *testing.T, user string) {
	t.Helper()
	posting := wallet.Posting{Account: wallet.Account{User: user, Currency: "USD"}, Kind: wallet.KindDeposit, Amount: 5}
	if err := l.Post(t.Context(), posting, func(*db.Tx, *wallet.Posted) error { return nil }); err != nil {
		t.Fatal(err)
	}
}

func (l *Service) files(t *testing.T) int {
	t.Helper()
	files, err := os.ReadDir(l.Checkpoints.Dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

func TestCheckpoint_IsWrittenAfterAPosting(t *testing.T) {
	l, _ := newTestLedger(t)
	for step, want := range []int{0, 1, 1, 2} {
		if step%2 == 1 {
			l.deposit(t, "u1")
		}
		if err := l.Checkpoint(t.Context()); err != nil || l.files(t) != want {
			t.Errorf("step %d: got %d files, %v; want %d", step, l.files(t), err, want)
		}
	}
}

// TestCheckpoint_DetectsADeletionWithoutNewPostings deletes the last transaction. The database can
// assign the same id again, so the next checkpoint must not rely on the id.
func TestCheckpoint_DetectsADeletionWithoutNewPostings(t *testing.T) {
	l, d := newTestLedger(t)
	l.deposit(t, "u1")
	l.deposit(t, "u2")
	if err := l.Checkpoint(t.Context()); err != nil {
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
	if err := l.Checkpoint(t.Context()); !errors.Is(err, wallet.ErrTampered) || l.files(t) != 1 {
		t.Errorf("got %d files, %v; want 1 and ErrTampered", l.files(t), err)
	}
}

func TestCheckpoint_ReplacesNoEvidence(t *testing.T) {
	for name, edit := range map[string]string{
		"changed account":               `UPDATE wallet_account SET balance = balance + 1 WHERE user_id = 'u1'`,
		"deleted entry of a checkpoint": `DROP TRIGGER wallet_entry_delete; DELETE FROM wallet_entry WHERE user_id = 'u1'`,
	} {
		t.Run(name, func(t *testing.T) {
			l, d := newTestLedger(t)
			l.deposit(t, "u1")
			if err := l.Checkpoint(t.Context()); err != nil {
				t.Fatal(err)
			}
			raw := d.Raw(t)
			defer raw.Close()
			for statement := range strings.SplitSeq(edit, ";") {
				if _, err := raw.ExecContext(context.Background(), statement); err != nil {
					t.Fatal(err)
				}
			}
			l.deposit(t, "u2")
			if err := l.Checkpoint(t.Context()); !errors.Is(err, wallet.ErrTampered) || l.files(t) != 1 {
				t.Errorf("got %d files, %v; want 1 and ErrTampered", l.files(t), err)
			}
		})
	}
}
