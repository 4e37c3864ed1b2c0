package app

import (
	"testing"
	"testing/synctest"

	"assay/internal/admission"
	"assay/internal/fault"
)

// A flood of verifications once delayed health checks by ten seconds: each reads a
// whole chain, and nothing bounded how many ran at once.
func TestWallets_VerificationWaitsForASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := admission.New(1)
		leave, err := gate.Enter(t.Context(), admission.Search)
		if err != nil {
			t.Fatal(err)
		}
		defer leave()
		// The keeper is nil: a verification that ran would panic.
		if _, err := (wallets{gate: gate}).Verify(t.Context(), "u1", ""); fault.Of(err) == nil || fault.Of(err).Kind != fault.Busy {
			t.Errorf("without a free slot: %v, want a fault.Busy", err)
		}
	})
}
