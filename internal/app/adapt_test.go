package app

import (
	"testing"
	"testing/synctest"

	"assay/internal/admission"
	"assay/internal/fault"
)

// A verification reads a whole chain. Without an admission slot, many parallel
// verifications delay health checks by seconds.
func TestWallets_VerificationWaitsForASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := admission.New(1)
		leave, err := gate.Enter(t.Context(), admission.Search)
		if err != nil {
			t.Fatal(err)
		}
		defer leave()
		// The ledger is nil. A verification without a slot would panic.
		if _, err := (wallets{gate: gate}).Verify(t.Context(), "u1", ""); fault.Of(err) == nil || fault.Of(err).Kind != fault.Busy {
			t.Errorf("without a free slot: got %v, want a fault.Busy", err)
		}
	})
}
