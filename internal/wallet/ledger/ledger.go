// Package ledger provides the postings, verifications and checkpoints of the wallet ledger
// of a database.
package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"assay/internal/db"
	"assay/internal/wallet"
	"assay/internal/wallet/fee"
)

// Service posts to the ledger, verifies it and writes its checkpoints, which are stored
// outside the database. Its methods are safe for concurrent use.
type Service struct {
	*wallet.Ledger
	Store       *db.DB
	Checkpoints wallet.CheckpointDir
	// Scopes returns the idempotency scopes of requests about a user; see audit.Auditor.
	Scopes func(user string) []string
	Now    func() time.Time
	Used   func() // called after each posting

	mu   sync.Mutex // serializes checkpoints
	last state      // state of the last checkpoint of this process
}

// state identifies a state of the ledger by its last transaction and its newest fee
// rules. The id of the transaction is not sufficient, because it can be assigned again
// after a deletion.
type state struct {
	id    int64
	hash  wallet.Hash
	rules wallet.Mark
}

// Post posts a transaction to the ledger. It calls seal as the last step of the database
// transaction.
func (s *Service) Post(ctx context.Context, o wallet.Posting, seal func(*db.Tx, *wallet.Posted) error) error {
	err := s.Store.InSmallTx(ctx, func(tx *db.Tx) error {
		p, err := s.Execute(tx, o)
		if err != nil {
			return err
		}
		return seal(tx, p)
	})
	if err == nil {
		s.Used()
	}
	return err
}

// Checkpoint verifies the whole ledger. If the result is ok, and the ledger changed since
// the last checkpoint of this process, it writes a new checkpoint. It writes none for a
// damaged ledger, because that would replace the evidence.
func (s *Service) Checkpoint(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, err := s.current(ctx)
	switch {
	case err != nil || now.id == 0:
	case now == s.last:
		err = s.verifyMarks(ctx, func(wallet.Mark) error { return nil })
	default:
		_, err = s.Checkpoints.Write(s.Keys, s.Now(), now.rules, func(w *wallet.CheckpointWriter) error { return s.verifyMarks(ctx, w.Add) })
		if err == nil {
			s.last = now
		}
	}
	if err != nil {
		return fmt.Errorf("write a checkpoint of the wallet ledger: %w", err)
	}
	return nil
}

// Changed reports whether the ledger may have changed since the last checkpoint of this
// process.
func (s *Service) Changed(ctx context.Context) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, err := s.current(ctx)
	return err != nil || now != s.last
}

// verifyMarks verifies the whole ledger and passes its marks to add. It returns a
// wallet.ErrTampered if the result is not ok.
func (s *Service) verifyMarks(ctx context.Context, add func(wallet.Mark) error) error {
	r, err := s.auditor().Marks(ctx, add)
	if err != nil {
		return err
	}
	if err := s.storeResult(ctx, r); err != nil || r.OK {
		return err
	}
	return fmt.Errorf("%w: the verification is %s: %s", wallet.ErrTampered, r.Status, strings.Join(notPassed(r.Checks), ", "))
}

// current returns the current state of the ledger. It is zero while the ledger has no
// transaction.
func (s *Service) current(ctx context.Context) (now state, err error) {
	last, err := wallet.LastWalletTransactions(ctx, s.Store, 1)
	if err != nil || len(last) == 0 {
		return now, err
	}
	now.id, now.hash = last[0].ID, last[0].Hash
	a, err := fee.ReadActivation(ctx, s.Store, 0)
	switch {
	case errors.Is(err, fee.ErrNone):
		return now, nil
	case err == nil:
		err = s.Keys.CheckRules(a.Sealed())
	}
	now.rules = wallet.RulesMark(a.Version, a.Seal.MAC)
	return now, err
}
