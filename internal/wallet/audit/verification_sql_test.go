package audit_test

import (
	"testing"
	"time"

	"assay/internal/db"
	"assay/internal/db/dbtest"
	"assay/internal/wallet/audit"
)

func TestVerification_KeepsTheLastResult(t *testing.T) {
	dbtest.Each(t, func(f *dbtest.Fixture) {
		kept := func(what string, at time.Time, status, want string) {
			f.Helper()
			f.Tx(func(tx *db.Tx) error {
				return audit.SetVerification(tx, audit.Verification{VerifiedAt: at, FinishedAt: at, Status: status})
			})
			v, err := audit.LastVerification(f.Context(), f.DB)
			f.Must(err)
			f.Is(what, v.Status, want)
		}
		kept("status after the first verification", f.Now, "ok", "ok")
		kept("status after an older verification that took longer", f.Now.Add(-time.Minute), "incomplete", "ok")
		kept("status after a newer verification", f.Now.Add(time.Minute), "failed", "failed")
		f.Now = f.Now.AddDate(1, 0, 0)
		kept("status after a verification while the clock is wrong", f.Now, "ok", "ok")
		f.Now = f.Now.AddDate(-1, 0, 0)
		kept("status after a verification with the corrected clock", f.Now, "failed", "failed")
	})
}
