package audit_test

import (
	"testing"

	"assay/internal/wallet/audit"
)

func TestVerify_IntactLedgerIsOK(t *testing.T) {
	w := example(t)
	w.keep(w.checkpoint())
	full := w.verifyAll()
	if !full.OK || full.Status != audit.OK || full.FailureCount != 0 {
		t.Fatalf("got status %s, want ok: %+v", full.Status, full.Failures)
	}
	for _, c := range full.Checks {
		if c.Status != audit.Pass {
			t.Errorf("check %s: got %s (%s), want pass: the ledger has rows for every check", c.Name, c.Status, c.Reason)
		}
	}
	if n := w.count("wallet_entry"); full.Entries != n {
		t.Errorf("got %d verified entries, want %d", full.Entries, n)
	}
	for _, u := range w.users {
		if r := w.verify(u, ""); !r.OK || r.Checkpoint == nil {
			t.Errorf("%s: got status %s, failures %+v, want ok with a checkpoint", u, r.Status, r.Failures)
		} else if again := w.verify(u, *r.Checkpoint); !again.OK {
			t.Errorf("%s with its new checkpoint: got failures %+v, want none", u, again.Failures)
		}
	}
}
