package audit

import (
	"context"
	"strings"
	"time"

	"assay/internal/db"
)

// Verification is the result of the last verification of the whole ledger.
type Verification struct {
	VerifiedAt, FinishedAt                    time.Time
	Status                                    string // ok, failed, incomplete
	Accounts, Entries, Transactions, Failures int64
	Checks                                    []string // names of the checks that did not pass
}

// SetVerification stores the result of a verification unless a later result is stored. It
// replaces a stored result from the future: the clock was set back, or an attacker forged
// the result to block later ones.
func SetVerification(t *db.Tx, v Verification) error {
	_, err := t.Exec(`
		INSERT INTO wallet_audit (slot, verified_at, finished_at, status, accounts, entries, transactions, failures, checks)
		VALUES (1, $1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT (slot) DO UPDATE SET verified_at = excluded.verified_at, finished_at = excluded.finished_at, status = excluded.status,
			accounts = excluded.accounts, entries = excluded.entries, transactions = excluded.transactions, failures = excluded.failures,
			checks = excluded.checks
		WHERE wallet_audit.verified_at <= excluded.verified_at OR wallet_audit.verified_at > $9`,
		db.Micros(v.VerifiedAt), db.Micros(v.FinishedAt), v.Status, v.Accounts, v.Entries, v.Transactions, v.Failures, strings.Join(v.Checks, " "), db.Micros(t.Now()))
	return err
}

// LastVerification returns the last verification, or nil if there was none.
func LastVerification(ctx context.Context, s *db.DB) (*Verification, error) {
	var v Verification
	var verified, finished int64
	var checks string
	err := s.Reserved.QueryRowContext(ctx, `
		SELECT verified_at, finished_at, status, accounts, entries, transactions, failures, checks FROM wallet_audit WHERE slot = 1`).
		Scan(&verified, &finished, &v.Status, &v.Accounts, &v.Entries, &v.Transactions, &v.Failures, &checks)
	if found, err := db.Found(err); !found {
		return nil, err
	}
	v.VerifiedAt, v.FinishedAt, v.Checks = db.Moment(verified), db.Moment(finished), strings.Fields(checks)
	return &v, nil
}
