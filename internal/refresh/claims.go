package refresh

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"assay/internal/db"
)

// claims is the work that this process has claimed. A claim whose end could not be written
// stays in the database as an orphan, and so does a claim made by a commit of unknown
// outcome. Orphans are released as soon as the database takes writes again.
type claims struct {
	// claiming is held for reading from the beginning of a claim until it is noted here, so
	// that it is not taken for an orphan in between.
	claiming       sync.RWMutex
	mayHaveOrphans atomic.Bool // there may be orphans

	mu      sync.Mutex
	units   map[unitKey]call
	batches map[batchKey]struct{}
}

// call is a unit that is being requested.
type call struct {
	job    int64
	cancel context.CancelFunc
}

// A claim includes its token: a unit that another process took over may be claimed here again
// while the work on the former claim still runs.
type (
	unitKey  struct{ id, token int64 }
	batchKey struct {
		job   int64
		batch int
		token int64
	}
)

// claimUnit claims a unit, or returns nil. The context that it returns ends when the unit's
// job is cancelled. The caller releases the unit in any case.
func (p *process) claimUnit(ctx context.Context, c Claim) (*Unit, context.Context, error) {
	held := &p.claims
	held.claiming.RLock()
	defer held.claiming.RUnlock()
	var u *Unit
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

// releaseUnit ends the work on a unit. Unless its end is written, the claim is an orphan.
func (p *process) releaseUnit(u *Unit, written bool) {
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

// claimBatch claims a batch, or returns nil. The caller releases it in any case. If write is
// not nil, the same transaction runs it.
func (p *process) claimBatch(ctx context.Context, write func(*db.Tx) error) (*Batch, error) {
	held := &p.claims
	held.claiming.RLock()
	defer held.claiming.RUnlock()
	var b *Batch
	err := p.store.InTx(ctx, func(tx *db.Tx) (err error) {
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

// releaseBatch ends the work on a batch. Unless its end is written, the claim is an orphan.
func (p *process) releaseBatch(b Batch, written bool) {
	held := &p.claims
	held.mu.Lock()
	delete(held.batches, batchKey{b.JobID, b.Batch, b.Token})
	held.mu.Unlock()
	if !written {
		held.mayHaveOrphans.Store(true)
	}
}

// interrupt ends the requests that this process has sent for a job.
func (p *process) interrupt(jobID int64) {
	p.interruptWhere(func(c call) bool { return c.job == jobID })
}

// interruptAll ends all requests of this process.
func (p *process) interruptAll() { p.interruptWhere(func(call) bool { return true }) }

func (p *process) interruptWhere(match func(call) bool) {
	held := &p.claims
	held.claiming.Lock() // a claim made just before the cancellation is noted first
	defer held.claiming.Unlock()
	held.mu.Lock()
	defer held.mu.Unlock()
	for _, c := range held.units {
		if match(c) {
			c.cancel()
		}
	}
}

// reclaim releases this process's orphans, if there may be any.
func (p *process) reclaim(ctx context.Context) error {
	held := &p.claims
	if !held.mayHaveOrphans.Load() {
		return nil
	}
	held.claiming.Lock()
	defer held.claiming.Unlock()
	if !held.mayHaveOrphans.Swap(false) {
		return nil // another slot did it
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
	// stopTimeout bounds a write when the process stops.
	stopTimeout = 2 * time.Second
	// Pauses between the attempts to store a response, which cost requests: from the first to
	// the last, each four times as long.
	firstRetry, lastRetry = 50 * time.Millisecond, 800 * time.Millisecond
)

// writeAfterCancel writes although ctx has ended.
func (p *process) writeAfterCancel(ctx context.Context, fn func(*db.Tx) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	return p.store.InTx(ctx, fn)
}

// persist writes. It retries after a failure, and also when the process stops. The write must
// be idempotent.
func (p *process) persist(ctx context.Context, fn func(*db.Tx) error) error {
	for pause := firstRetry; ; pause *= 4 {
		if ctx.Err() != nil {
			return p.writeAfterCancel(ctx, fn)
		}
		err := p.store.InTx(ctx, fn)
		if err == nil || pause > lastRetry {
			return err
		}
		t := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-t.C:
		}
		t.Stop()
	}
}
