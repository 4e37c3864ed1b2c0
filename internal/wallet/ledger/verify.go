package ledger

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"time"

	"assay/internal/db"
	"assay/internal/event"
	"assay/internal/wallet"
	"assay/internal/wallet/audit"
)

// NewAuditor returns an auditor that compares the ledger with the newest checkpoint in a
// folder. The function read provides a consistent snapshot of the ledger.
func NewAuditor(keys *wallet.Ring, folder wallet.CheckpointDir, scopes func(user string) []string, now func() time.Time, read func(context.Context, func(*audit.Snapshot) error) error) *audit.Auditor {
	return &audit.Auditor{
		Keys: keys, Now: now, Scopes: scopes, Read: read,
		Stored: func() (io.ReadCloser, error) {
			f, err := folder.Newest()
			if errors.Is(err, fs.ErrNotExist) {
				return nil, nil //nolint:nilnil // no checkpoint yet
			}
			return f, err
		},
	}
}

func (s *Service) auditor() *audit.Auditor {
	return NewAuditor(s.Keys, s.Checkpoints, s.Scopes, s.Now, func(ctx context.Context, use func(*audit.Snapshot) error) error {
		return audit.ReadLedger(ctx, s.Store, use)
	})
}

// Verify verifies the wallet of a user.
func (s *Service) Verify(ctx context.Context, userID, checkpoint string) (*audit.Report, error) {
	return s.auditor().VerifyUser(ctx, userID, checkpoint)
}

// VerifyAll verifies the whole ledger.
func (s *Service) VerifyAll(ctx context.Context) error {
	r, err := s.auditor().VerifyAll(ctx, nil)
	if err != nil {
		return err
	}
	return s.storeResult(ctx, r)
}

// storeResult stores the result of a verification of the whole ledger and an event for each
// problem.
func (s *Service) storeResult(ctx context.Context, r *audit.FullReport) error {
	result := audit.Verification{
		VerifiedAt: r.VerifiedAt, FinishedAt: r.FinishedAt, Status: string(r.Status),
		Accounts: r.Accounts, Entries: r.Entries, Transactions: r.Transactions, Failures: r.FailureCount, Checks: notPassed(r.Checks),
	}
	return s.Store.InTx(ctx, func(tx *db.Tx) error {
		if err := audit.SetVerification(tx, result); err != nil {
			return err
		}
		for _, problem := range problems(r) {
			if err := event.Add(tx, problem); err != nil {
				return err
			}
		}
		return nil
	})
}

// problems lists the problems of a verification. There is one for each user with a failure,
// and one without a user if the verification is incomplete.
func problems(r *audit.FullReport) (out []event.LedgerProblem) {
	for _, p := range r.Problems {
		out = append(out, event.LedgerProblem{UserID: p.UserID, Status: string(audit.Failed), Checks: p.Checks, FailureCount: p.FailureCount})
	}
	if r.Status == audit.Incomplete {
		out = append(out, event.LedgerProblem{Status: string(r.Status), Checks: notPassed(r.Checks)})
	}
	return out
}

func notPassed(checks []audit.Checked) (names []string) {
	for _, c := range checks {
		if c.Status == audit.Fail || c.Status == audit.Skipped {
			names = append(names, c.Name)
		}
	}
	return names
}
