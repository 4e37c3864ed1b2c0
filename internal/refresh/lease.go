package refresh

import (
	"context"
	"sync"
	"time"

	"assay/internal/catalog"
	"assay/internal/db"
	"assay/internal/dispatch"
)

// Instance is a process that works on the database.
type Instance struct {
	Owner       string // id of the instance in its claims
	Version     string
	Modules     string // setting MODULES of the process
	Endpoints   []Endpoint
	StartedAt   time.Time
	Heartbeat   int64
	HeartbeatAt time.Time // when the counter was last incremented, by the instance's clock
	Report      string    // description of the process for operators
}

// Heartbeat is the heartbeat counter of an instance as another instance read it.
type Heartbeat struct {
	Owner    string
	Count    int64
	SyncTime time.Duration // time in which syncs have run in the instance
}

// NoHeartbeat is the counter of a claim owner that is not registered.
const NoHeartbeat = -1

const (
	// heartbeatEvery is the interval at which an instance increments its counter and reads
	// the counters of the others.
	heartbeatEvery = 500 * time.Millisecond
	// Lease is how long a counter may be unchanged before other instances take over the
	// claims.
	Lease = 3 * time.Second
	// maxReadGap is the longest pause between two reads of the counters. After a longer
	// pause, all leases start again.
	maxReadGap = 2 * time.Second
	// writerIdle is how long an instance stays announced after it has committed prices.
	writerIdle = 2 * time.Second
)

// peers holds the heartbeat counters that this instance has read. It uses monotonic time only,
// because the clocks of machines differ and can be set.
type peers struct {
	mu       sync.Mutex
	last     time.Duration // time of the last read
	observed map[string]observedHeartbeat
}

// observedHeartbeat is the counter of an instance, with the time of the first read of this value.
type observedHeartbeat struct {
	count    int64
	syncTime time.Duration
	since    time.Duration
}

// observe stores the counters and returns the instances with an expired lease. All leases
// start again after a long pause between two reads, because this process or the database may
// have been unavailable.
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
			s = observedHeartbeat{count: p.Count, syncTime: p.SyncTime, since: now}
		}
		seen[p.Owner] = s
		if now-s.since >= Lease {
			expired = append(expired, p)
		}
	}
	w.last, w.observed = now, seen
	return expired
}

// syncing returns the share of the last heartbeat interval in which syncs ran in other
// instances, as the sum of the instances.
func (w *peers) syncing(heartbeats []Heartbeat, self string) (share float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range heartbeats {
		if s, known := w.observed[p.Owner]; known && p.Owner != self {
			share += max(0, p.SyncTime-s.syncTime).Seconds() / heartbeatEvery.Seconds()
		}
	}
	return share
}

// next returns the time until the next lease can expire, but at most one heartbeat interval.
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

// KeepLease sends heartbeats and takes over from instances with an expired lease, until ctx
// is cancelled. Without a shared database it does nothing.
func (e *Engine) KeepLease(ctx context.Context) {
	if !e.clustered {
		return
	}
	var wg sync.WaitGroup
	// Both run in parallel, because a takeover may wait for a lock.
	wg.Go(func() { e.every(ctx, "heartbeat", e.Heartbeat, func() time.Duration { return heartbeatEvery }) })
	wg.Go(func() {
		e.every(ctx, "check peers", e.CheckPeers, func() time.Duration { return e.peers.next(e.elapsed()) })
	})
	wg.Wait()
}

// every calls fn in a loop until ctx ends. Between two calls it waits for the duration that
// next returns. It shortens the wait so that calls start at least once per heartbeat interval.
// It logs only the first of consecutive failures.
func (e *Engine) every(ctx context.Context, what string, fn func(context.Context) error, next func() time.Duration) {
	for failing := false; ctx.Err() == nil; {
		began := e.elapsed()
		bounded, cancel := context.WithTimeout(ctx, Lease)
		err := fn(bounded)
		cancel()
		if err != nil && !failing && ctx.Err() == nil {
			e.log.Warn("heartbeat step failed; retrying", "step", what, "error", err)
		}
		failing = err != nil
		dispatch.Wait(ctx, min(next(), heartbeatEvery-(e.elapsed()-began)))
	}
}

// Heartbeat increments the counter of this instance. If other instances have taken over its
// claims, Heartbeat aborts the work on them and registers the instance again.
func (e *Engine) Heartbeat(ctx context.Context) error {
	known := true
	e.heartbeats++
	report := e.report()
	err := e.store.InTx(ctx, func(tx *db.Tx) (err error) {
		if known, err = writeHeartbeat(tx, e.owner, report, e.priority.WriteTime()); err != nil || known {
			return err
		}
		return Register(tx, e.instance())
	})
	if err != nil {
		return err
	}
	if known {
		return catalog.WithdrawPrices(ctx, e.store, writerIdle)
	}
	e.log.Warn("lease lost; registering again", "owner", e.owner)
	e.interruptAll()
	return nil
}

// instance returns the row of this process in the table of instances.
func (e *Engine) instance() Instance {
	return Instance{Owner: e.owner, Version: e.version, Modules: e.modules, Endpoints: e.endpoints, StartedAt: e.started, Heartbeat: e.heartbeats, Report: e.report()}
}

// CheckPeers reads the counters of all instances and takes over from those with an expired
// lease.
func (e *Engine) CheckPeers(ctx context.Context) error {
	heartbeats, err := readHeartbeats(ctx, e.store)
	if err != nil {
		return err
	}
	e.priority.ReportPeers(len(heartbeats), e.peers.syncing(heartbeats, e.owner))
	for _, p := range e.peers.observe(heartbeats, e.elapsed()) {
		if p.Owner == e.owner {
			continue // Heartbeat handles the lost lease of this process
		}
		if err := e.takeOver(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// takeOver releases the claims of an instance with an expired lease.
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
	e.log.Warn("lease of an instance expired; taking over its work", "owner", p.Owner)
	e.wakeAll()
	return nil
}

// Leave deregisters this instance. Call it after its workers have stopped. Without it, other
// instances take over when the lease expires.
func (e *Engine) Leave(ctx context.Context) error {
	if !e.clustered {
		return nil
	}
	return e.writeAfterCancel(ctx, func(tx *db.Tx) error {
		if err := Register(tx, e.instance()); err != nil { // sets a known counter value
			return err
		}
		if _, err := removeInstance(tx, Heartbeat{Owner: e.owner, Count: e.heartbeats}); err != nil {
			return err
		}
		return abandonUnits(tx)
	})
}
