package refresh

import (
	"context"
	"slices"
	"sync"
	"time"

	"assay/internal/db"
	"assay/internal/dispatch"
)

// Instance is a process that works on the database.
type Instance struct {
	Owner       string // names it in claims
	Version     string
	Endpoints   []Endpoint
	StartedAt   time.Time
	Heartbeat   int64
	HeartbeatAt time.Time // when the counter rose, by the instance's own clock
	Report      string    // its report about itself, for operators
}

// Heartbeat is the counter of an instance as another one read it.
type Heartbeat struct {
	Owner string
	Count int64
	Syncs int64 // that have begun there, ever
}

// NoHeartbeat is the counter of an owner of claims that is not registered.
const NoHeartbeat = -1

const (
	// heartbeatEvery is how often an instance increments its counter and reads those of the
	// others.
	heartbeatEvery = 500 * time.Millisecond
	// Lease is how long a counter may stand still before the others take the claims over.
	Lease = 3 * time.Second
	// maxReadGap is the longest pause between two reads that still counts as watching.
	maxReadGap = 2 * time.Second
)

// peers is what an instance has seen of the others. It holds no time of day, because the
// clocks of machines differ and may be set.
type peers struct {
	mu       sync.Mutex
	last     time.Duration // when it last read the counters
	observed map[string]observedHeartbeat
}

type observedHeartbeat struct {
	count int64
	syncs int64
	since time.Duration // when it was first seen with this value
}

// observe stores the counters read at a moment and returns the instances whose counter stood
// still for a lease. A pause between two reads does not count: the database may have been
// away, or this process.
func (w *peers) observe(heartbeats []Heartbeat, now time.Duration) (expired []Heartbeat) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now-w.last > maxReadGap {
		w.observed = nil
	}
	seen := make(map[string]observedHeartbeat, len(heartbeats))
	for _, p := range heartbeats {
		s, known := w.observed[p.Owner]
		if !known || s.count != p.Count {
			s = observedHeartbeat{count: p.Count, syncs: p.Syncs, since: now}
		}
		seen[p.Owner] = s
		if now-s.since >= Lease {
			expired = append(expired, p)
		}
	}
	w.last, w.observed = now, seen
	return expired
}

// syncing reports whether syncs have begun in other instances since the last read.
func (w *peers) syncing(heartbeats []Heartbeat, self string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(heartbeats, func(p Heartbeat) bool {
		s, known := w.observed[p.Owner]
		return known && p.Owner != self && p.Syncs != s.syncs
	})
}

// next returns how long after now an instance will have stood still for a lease, or a
// heartbeat if that is sooner.
func (w *peers) next(now time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	wait := heartbeatEvery
	for _, s := range w.observed {
		if left := s.since + Lease - now; left > 0 {
			wait = min(wait, left)
		}
	}
	return wait
}

// KeepLease sends heartbeats and takes over from instances without one, until ctx ends. A
// process that has the database for itself needs no heartbeat.
func (e *Engine) KeepLease(ctx context.Context) {
	if !e.clustered {
		return
	}
	var wg sync.WaitGroup
	// In parallel, because a takeover may have to wait for a lock.
	wg.Go(func() { e.every(ctx, "heartbeat", e.Heartbeat, func() time.Duration { return heartbeatEvery }) })
	wg.Go(func() {
		e.every(ctx, "watch", e.WatchPeers, func() time.Duration { return e.peers.next(e.elapsed()) })
	})
	wg.Wait()
}

// every calls fn at once, and again when next says, or after a heartbeat if that is sooner.
// It logs the first failure in a row.
func (e *Engine) every(ctx context.Context, what string, fn func(context.Context) error, next func() time.Duration) {
	for failing := false; ctx.Err() == nil; {
		began := e.elapsed()
		bounded, cancel := context.WithTimeout(ctx, Lease)
		err := fn(bounded)
		cancel()
		if err != nil && !failing && ctx.Err() == nil {
			e.log.Warn("leases are not kept; it is tried again", "step", what, "error", err)
		}
		failing = err != nil
		dispatch.Wait(ctx, min(next(), heartbeatEvery-(e.elapsed()-began)))
	}
}

// Heartbeat increments this instance's counter. If the others have taken over its claims, it
// has lost them: it stops that work and registers again.
func (e *Engine) Heartbeat(ctx context.Context) error {
	known := true
	e.heartbeats++
	report := e.report()
	err := e.store.InTx(ctx, func(tx *db.Tx) (err error) {
		if known, err = writeHeartbeat(tx, e.owner, report, e.priority.Begun()); err != nil || known {
			return err
		}
		return Register(tx, e.instance())
	})
	if err != nil || known {
		return err
	}
	e.log.Warn("lease lost; registering again", "owner", e.owner)
	e.interruptAll()
	return nil
}

// instance describes this process, with a counter value that it never had.
func (e *Engine) instance() Instance {
	return Instance{Owner: e.owner, Version: e.version, Endpoints: e.endpoints, StartedAt: e.started, Heartbeat: e.heartbeats, Report: e.report()}
}

// WatchPeers reads the counters of all instances and takes over from those that stood still
// for a lease.
func (e *Engine) WatchPeers(ctx context.Context) error {
	heartbeats, err := readHeartbeats(ctx, e.store)
	if err != nil {
		return err
	}
	e.priority.ReportPeers(len(heartbeats), e.peers.syncing(heartbeats, e.owner))
	for _, p := range e.peers.observe(heartbeats, e.elapsed()) {
		if p.Owner == e.owner {
			continue // Heartbeat finds that out
		}
		if err := e.takeOver(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// takeOver releases the claims of a dead instance.
func (e *Engine) takeOver(ctx context.Context, p Heartbeat) error {
	if err := endSessions(ctx, e.store, p); err != nil {
		return err
	}
	var taken bool
	err := e.store.InTx(ctx, func(tx *db.Tx) (err error) {
		if taken, err = removeInstance(tx, p); err != nil || !taken {
			return err
		}
		return abandonUnits(tx)
	})
	if err != nil || !taken {
		return err
	}
	e.log.Warn("an instance stands still; its work is taken over", "owner", p.Owner)
	e.wakeAll()
	return nil
}

// Leave deregisters this instance. Call it after its workers have stopped. Without it the
// others take over after a lease.
func (e *Engine) Leave(ctx context.Context) error {
	if !e.clustered {
		return nil
	}
	return e.writeAfterCancel(ctx, func(tx *db.Tx) error {
		if err := Register(tx, e.instance()); err != nil { // whatever its counter is
			return err
		}
		if _, err := removeInstance(tx, Heartbeat{Owner: e.owner, Count: e.heartbeats}); err != nil {
			return err
		}
		return abandonUnits(tx)
	})
}
