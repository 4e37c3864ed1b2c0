package refresh

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"assay/internal/db"
	"assay/internal/dispatch"
)

// claims holds the claims of this process. If the release of a claim cannot be written, the
// claim remains in the database as an orphan. A claim whose commit has an unknown outcome may
// be an orphan too. Orphans are released as soon as the database accepts writes again.
type claims struct {
	// claiming is read-locked from the start of a claim until the claim is added here, so that
	// reclaim does not mistake the claim for an orphan.
	claiming       sync.RWMutex
	mayHaveOrphans atomic.Bool

	mu      sync.Mutex
	units   map[unitKey]call
	batches map[batchKey]struct{}
}

// call is the request of a claimed unit.
type call struct {
	job    int64
	cancel context.CancelFunc
}

// A key includes the token. If another process takes over a unit, this process may claim the
// unit again while it still works on its first claim.
type (
	unitKey  struct{ id, token int64 }
	batchKey struct {
		job   int64
		batch int
		token int64
	}
)

// claimUnit claims a unit, or returns nil. The returned context is cancelled when the unit's
// job is cancelled. The caller must call releaseUnit.
func (p *process) claimUnit(ctx context.Context, c Claim) (*FetchUnit, context.Context, error) {
	held := &p.claims
	held.claiming.RLock()
	defer held.claiming.RUnlock()
	var u *FetchUnit
	err := p.store.InTx(ctx, func(tx *db.Tx) (err error) {
		u, err = ClaimUnit(tx, c)
		return err
	})
	if err != nil {
		held.mayHaveOrphans.Store(true)
		return nil, nil, err
	}
	if u == nil {
		return nil, nil, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	held.mu.Lock()
	defer held.mu.Unlock()
	held.units[unitKey{u.ID, u.Token}] = call{job: u.JobID, cancel: cancel}
	return u, ctx, nil
}

// releaseUnit ends the work on a unit. If the result of the work is not stored, the claim
// becomes an orphan.
func (p *process) releaseUnit(u *FetchUnit, written bool) {
	held := &p.claims
	held.mu.Lock()
	key := unitKey{u.ID, u.Token}
	held.units[key].cancel()
	delete(held.units, key)
	held.mu.Unlock()
	if !written {
		held.mayHaveOrphans.Store(true)
	}
}

// claimBatch claims a batch, or returns nil. If write is not nil, the same transaction runs
// write. The caller must call releaseBatch.
func (p *process) claimBatch(ctx context.Context, write func(*db.Tx) error) (*Batch, error) {
	held := &p.claims
	held.claiming.RLock()
	defer held.claiming.RUnlock()
	var b *Batch
	err := p.store.InSmallTx(ctx, func(tx *db.Tx) (err error) {
		if b, err = ClaimBatch(tx, p.owner); err != nil || write == nil {
			return err
		}
		return write(tx)
	})
	if err != nil {
		held.mayHaveOrphans.Store(true)
		return nil, err
	}
	if b != nil {
		held.mu.Lock()
		defer held.mu.Unlock()
		held.batches[batchKey{b.JobID, b.Batch, b.Token}] = struct{}{}
	}
	return b, nil
}

// releaseBatch ends the work on a batch. If the result of the work is not stored, the claim
// becomes an orphan.
func (p *process) releaseBatch(b Batch, written bool) {
	held := &p.claims
	held.mu.Lock()
	delete(held.batches, batchKey{b.JobID, b.Batch, b.Token})
	held.mu.Unlock()
	if !written {
		held.mayHaveOrphans.Store(true)
	}
}

// interrupt aborts the requests that this process has in progress for a job.
func (p *process) interrupt(jobID int64) {
	p.interruptWhere(func(c call) bool { return c.job == jobID })
}

// interruptAll aborts all requests that this process has in progress.
func (p *process) interruptAll() { p.interruptWhere(func(call) bool { return true }) }

func (p *process) interruptWhere(match func(call) bool) {
	held := &p.claims
	held.claiming.Lock() // wait for claims that have begun
	defer held.claiming.Unlock()
	held.mu.Lock()
	defer held.mu.Unlock()
	for _, c := range held.units {
		if match(c) {
			c.cancel()
		}
	}
}

// reclaim releases the orphans of this process, if there may be any.
func (p *process) reclaim(ctx context.Context) error {
	held := &p.claims
	if !held.mayHaveOrphans.Load() {
		return nil
	}
	held.claiming.Lock()
	defer held.claiming.Unlock()
	if !held.mayHaveOrphans.Swap(false) {
		return nil // another goroutine has done it
	}
	var units []int64
	var batches []Batch
	held.mu.Lock()
	for u := range held.units {
		units = append(units, u.id)
	}
	for b := range held.batches {
		batches = append(batches, Batch{JobID: b.job, Batch: b.batch})
	}
	held.mu.Unlock()
	err := p.store.InTx(ctx, func(tx *db.Tx) error { return reclaim(tx, p.owner, units, batches) })
	if err != nil {
		held.mayHaveOrphans.Store(true)
	}
	return err
}

const (
	// stopTimeout limits a write while the process stops.
	stopTimeout = 2 * time.Second
	// firstRetry and lastRetry are the first and the last pause between attempts to store a
	// response. Each pause is four times as long as the one before. Retries avoid new requests
	// to the provider.
	firstRetry, lastRetry = 50 * time.Millisecond, 800 * time.Millisecond
)

// writeAfterCancel runs a transaction even if ctx is cancelled.
func (p *process) writeAfterCancel(ctx context.Context, fn func(*db.Tx) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	return p.store.InTx(ctx, fn)
}

// persist runs a transaction and retries it after a failure, even while the process stops.
// The transaction must be idempotent.
func (p *process) persist(ctx context.Context, fn func(*db.Tx) error) error {
	for pause := firstRetry; ; pause *= 4 {
		if ctx.Err() != nil {
			return p.writeAfterCancel(ctx, fn)
		}
		err := p.store.InTx(ctx, fn)
		if err == nil || pause > lastRetry {
			return err
		}
		dispatch.Wait(ctx, pause)
	}
}
