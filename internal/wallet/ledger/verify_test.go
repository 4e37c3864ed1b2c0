package ledger

import (
	"encoding/json"
	"slices"
	"testing"

	"assay/internal/event"
	"assay/internal/wallet/audit"
)

func TestVerifyAll_StoresTheResultAndReportsFailures(t *testing.T) {
	l, d := newTestLedger(t)
	l.deposit(t, "u1")
	l.deposit(t, "u2")
	if err := l.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	verified := func(status string, failures int64, events int) {
		t.Helper()
		if err := l.VerifyAll(t.Context()); err != nil {
			t.Fatal(err)
		}
		v, err := audit.LastVerification(t.Context(), l.Store)
		if err != nil || v.Status != status || v.Failures != failures || v.Entries != 4 || v.Transactions != 2 {
			t.Errorf("got result %+v, %v; want %s with %d failures, 4 entries, 2 transactions", v, err, status, failures)
		}
		if reported, err := event.List(t.Context(), l.Store, 10); err != nil || len(reported) != events {
			t.Errorf("got %d events, %v; want %d", len(reported), err, events)
		}
	}
	verified("ok", 0, 0)
	raw := d.Raw(t)
	defer raw.Close()
	if _, err := raw.ExecContext(t.Context(), `UPDATE wallet_account SET balance = balance + 1 WHERE user_id = 'u1'`); err != nil {
		t.Fatal(err)
	}
	verified("failed", 2, 1)
	reported, err := event.List(t.Context(), l.Store, 1)
	if err != nil || reported[0].Kind != event.LedgerHasProblem {
		t.Fatalf("got events %+v, error %v; want one of kind %s", reported, err, event.LedgerHasProblem)
	}
	var p event.LedgerProblem
	if err := json.Unmarshal(reported[0].Data, &p); err != nil || p.UserID != "u1" || !slices.Equal(p.Checks, []string{"head_mac", "cached_balance"}) {
		t.Errorf("got problem %+v, error %v; want user u1 with the checks head_mac and cached_balance", p, err)
	}
}

func TestVerify_AcceptsItsOwnCheckpoint(t *testing.T) {
	l, _ := newTestLedger(t)
	l.deposit(t, "u1")
	r, err := l.Verify(t.Context(), "u1", "")
	if err != nil || !r.OK {
		t.Fatalf("got report %+v, error %v; want an ok report", r, err)
	}
	l.deposit(t, "u1")
	if r, err = l.Verify(t.Context(), "u1", *r.Checkpoint); err != nil || !r.OK {
		t.Errorf("got report %+v, error %v; want an ok report", r, err)
	}
}
