package audit_test

import (
	"testing"

	"assay/internal/wallet/audit"
)

func TestVerify_AnIntactLedgerIsOK(t *testing.T) {
	w := example(t)
	w.keep(w.checkpoint())
	full := w.verifyAll()
	if !full.OK || full.Status != audit.OK || full.FailureCount != 0 {
		t.Fatalf("%s: %+v", full.Status, full.Failures)
	}
	for _, c := range full.Checks {
		if c.Status != audit.Pass {
			t.Errorf("%s is %s (%s): this ledger has something for every check", c.Name, c.Status, c.Reason)
		}
	}
	if n := w.count("wallet_entry"); full.Entries != n {
		t.Errorf("%d entries verified of %d", full.Entries, n)
	}
	for _, u := range w.users {
		if r := w.verify(u, ""); !r.OK || r.Checkpoint == nil {
			t.Errorf("%s: %s: %+v", u, r.Status, r.Failures)
		} else if again := w.verify(u, *r.Checkpoint); !again.OK {
			t.Errorf("%s against the checkpoint just made: %+v", u, again.Failures)
		}
	}
}
