package audit_test

import (
	"context"
	"testing"

	"assay/internal/wallet/audit"
)

func TestVerify_DetectsOldDatabaseByNewerCheckpoint(t *testing.T) {
	w := example(t)
	w.loosen()
	yesterday := w.save()
	r := w.verify("alice", "")
	old, kept := *r.Checkpoint, ""
	w.relax(func() {
		w.deposit(in("alice", "USD"), 5)
		kept = *w.verify("alice", "").Checkpoint
		w.keep(w.checkpoint())
	})
	if r := w.verify("alice", old); !r.OK {
		t.Fatalf("with an older checkpoint: got failures %+v, want none", r.Failures)
	}
	yesterday.restore(w)
	r = w.verify("alice", kept)
	expect(t, "of alice against her checkpoint", r.OK, r.Status, r.Checks, r.Failures, "anchor_match")
	r = w.verify("alice", "")
	expect(t, "of alice against the stored checkpoint", r.OK, r.Status, r.Checks, r.Failures, "anchor_match")
	full := w.verifyAll()
	expect(t, "of the ledger", full.OK, full.Status, full.Checks, full.Failures, "anchor_match")
	w.exec(`DELETE FROM fee_rule_set WHERE version = 3`)
	full = w.verifyAll()
	expect(t, "of the ledger without the newest fee rules", full.OK, full.Status, full.Checks, full.Failures, "anchor_match")
	w.Stored = nil
	if full := w.verifyAll(); !full.OK {
		t.Errorf("old database without the newer checkpoint: got failures %+v, want none", full.Failures)
	}
}

// TestVerify_ReturnsNoCheckpointOfAFailedState reverses alice's credit as an attacker with
// the key can. Only the stored checkpoint then contradicts the ledger.
func TestVerify_ReturnsNoCheckpointOfAFailedState(t *testing.T) {
	w := example(t)
	before := *w.verify("alice", "").Checkpoint
	w.loosen()
	earlier := w.save()
	w.relax(func() { w.deposit(in("alice", "USD"), 5) })
	w.keep(w.checkpoint())
	earlier.restore(w)
	w.relax(func() { w.deposit(in("alice", "USD"), 6) })
	stored := w.Stored
	w.Stored = nil
	failed := *w.verify("alice", "").Checkpoint // a checkpoint of the failed state
	w.Stored = stored
	for name, checkpoint := range map[string]string{"none": "", "of the state before the failure": before, "of the failed state": failed} {
		r := w.verify("alice", checkpoint)
		expect(t, "with the checkpoint "+name, r.OK, r.Status, r.Checks, r.Failures, "anchor_match")
		if r.Checkpoint != nil {
			t.Errorf("with the checkpoint %s: got a new checkpoint of the failed state, want none", name)
		}
	}
}

func TestVerify_DetectsAccountNamedOnlyByCheckpoint(t *testing.T) {
	w := example(t)
	w.loosen()
	w.keep(w.checkpoint())
	for _, table := range []string{"wallet_account", "wallet_entry", "wallet_transaction", "trade"} {
		w.exec(`DELETE FROM ` + table)
	}
	full := w.verifyAll()
	expect(t, "of the ledger", full.OK, full.Status, full.Checks, full.Failures, "head_present")
	r := w.verify("carol", "")
	expect(t, "of carol", r.OK, r.Status, r.Checks, r.Failures, "wallet_exists")
	if _, err := w.VerifyUser(context.Background(), "unknown", ""); err == nil {
		t.Error("unknown user: got a report, want an error")
	}
}

func TestVerify_DamagedCheckpointIsNeverOK(t *testing.T) {
	w := example(t)
	ofAlice := *w.verify("alice", "").Checkpoint
	text := w.checkpoint()
	text[len(text)/2] ^= 1
	w.keep(text)
	if full := w.verifyAll(); full.Status != audit.Incomplete {
		t.Errorf("damaged stored checkpoint: got status %s, failures %+v, want incomplete", full.Status, full.Failures)
	}
	if r := w.verify("unknown", ""); r.Status != audit.Incomplete {
		t.Errorf("user with a damaged stored checkpoint: got status %s, failures %+v, want incomplete", r.Status, r.Failures)
	}
	if _, err := w.VerifyUser(context.Background(), "alice", "rubbish"); err == nil {
		t.Error("invalid checkpoint: got no error, want one")
	}
	if _, err := w.VerifyUser(context.Background(), "bob", ofAlice); err == nil {
		t.Error("alice's checkpoint for bob: got no error, want one")
	}
	if r := w.verify("alice", ofAlice); !r.OK {
		t.Errorf("checkpoint of the request: got status %s, failures %+v, want ok", r.Status, r.Failures)
	}
}
