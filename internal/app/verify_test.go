package app

import (
	"encoding/json"
	"slices"
	"testing"

	"assay/internal/event"
	"assay/internal/wallet/audit"
)

func TestVerifyAll_StoresTheResultAndReportsFailures(t *testing.T) {
	k, d := newKeeper(t)
	k.give(t, "u1")
	k.give(t, "u2")
	if err := k.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	verified := func(status string, failures int64, events int) {
		t.Helper()
		if err := k.verifyAll(t.Context()); err != nil {
			t.Fatal(err)
		}
		v, err := audit.LastVerification(t.Context(), k.store)
		if err != nil || v.Status != status || v.Failures != failures || v.Entries != 4 || v.Transactions != 2 {
			t.Errorf("kept %+v, %v", v, err)
		}
		if reported, err := event.List(t.Context(), k.store, 10); err != nil || len(reported) != events {
			t.Errorf("%d events, want %d, %v", len(reported), events, err)
		}
	}
	verified("ok", 0, 0)
	raw := d.Raw(t)
	defer raw.Close()
	if _, err := raw.ExecContext(t.Context(), `UPDATE wallet_account SET balance = balance + 1 WHERE user_id = 'u1'`); err != nil {
		t.Fatal(err)
	}
	verified("failed", 2, 1)
	reported, err := event.List(t.Context(), k.store, 1)
	if err != nil || reported[0].Kind != event.LedgerHasProblem {
		t.Fatalf("%+v, %v", reported, err)
	}
	var p event.LedgerProblem
	if err := json.Unmarshal(reported[0].Data, &p); err != nil || p.UserID != "u1" || !slices.Equal(p.Checks, []string{"head_mac", "cached_balance"}) {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestVerify_AcceptsItsOwnCheckpoint(t *testing.T) {
	k, _ := newKeeper(t)
	k.give(t, "u1")
	r, err := k.Verify(t.Context(), "u1", "")
	if err != nil || !r.OK {
		t.Fatalf("%+v, %v", r, err)
	}
	k.give(t, "u1")
	if r, err = k.Verify(t.Context(), "u1", *r.Checkpoint); err != nil || !r.OK {
		t.Errorf("%+v, %v", r, err)
	}
}
