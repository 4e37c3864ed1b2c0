package storetest

import (
	"time"

	"assay/internal/db"
	"assay/internal/wallet/audit"
)

func ledgerVerifications(f *fixture) {
	kept := func(what string, at time.Time, status, want string) {
		f.Helper()
		f.tx(func(tx *db.Tx) error {
			return audit.SetVerification(tx, audit.Verification{VerifiedAt: at, FinishedAt: at, Status: status})
		})
		v, err := audit.LastVerification(f.Context(), f.s)
		f.must(err)
		f.is(what, v.Status, want)
	}
	kept("the first", f.now, "ok", "ok")
	kept("an older one that took longer", f.now.Add(-time.Minute), "incomplete", "ok")
	kept("a newer one", f.now.Add(time.Minute), "failed", "failed")
	f.now = f.now.AddDate(1, 0, 0)
	kept("one while the clock is wrong", f.now, "ok", "ok")
	f.now = f.now.AddDate(-1, 0, 0)
	kept("one after the clock was set right", f.now, "failed", "failed")
}
