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
	HeartbeatAt time.Time // when the counter moved, by the instance's own clock
	Report      string    // what it tells of itself, for people to see
}

// Heartbeat is the counter of an instance as it was seen.
type Heartbeat struct {
	Owner string
	Count int64
	Syncs int64 // that have begun there, ever
}

// NoHeartbeat is the counter of an owner of claims that is no instance any more.
const NoHeartbeat = -1

const (
	// heartbeatEvery is how often an instance moves its counter on, and looks at those
	// of the others.
	heartbeatEvery = 500 * time.Millisecond
	// Lease is how long a counter may stand still before others take the
	// instance for dead.
	Lease = 3 * time.Second
	// blink is the longest between two looks that counts as having looked.
	blink = 2 * time.Second
)

// peers is what an instance has seen of the others. Nothing in it is a time of
// day: clocks of machines differ, and are set.
type peers struct {
	mu   sync.Mutex
	last time.Duration // when it last looked
	seen map[string]sighting
}

type sighting struct {
	count int64
	syncs int64
	since time.Duration // it has stood there
}

// note notes what was seen at a moment and returns those that have stood still
// for a lease. A gap between two looks is no time in which anybody was seen to
// stand still: the database was away, or this process was.
func (w *peers) note(heartbeats []Heartbeat, now time.Duration) (still []Heartbeat) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now-w.last > blink {
		w.seen = nil
	}
	seen := make(map[string]sighting, len(heartbeats))
	for _, p := range heartbeats {
		s, known := w.seen[p.Owner]
		if !known || s.count != p.Count {
			s = sighting{count: p.Count, syncs: p.Syncs, since: now}
		}
		seen[p.Owner] = s
		if now-s.since >= Lease {
			still = append(still, p)
		}
	}
	w.last, w.seen = now, seen
	return still
}

// syncing reports whether syncs have begun in other instances since they were noted.
func (w *peers) syncing(heartbeats []Heartbeat, self string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(heartbeats, func(p Heartbeat) bool {
		s, known := w.seen[p.Owner]
		return known && p.Owner != self && p.Syncs != s.syncs
	})
}

// next returns how long after now one that may be dead will have stood still for
// a lease, or a heartbeat if that is sooner: who waits for it waits no longer.
func (w *peers) next(now time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	wait := heartbeatEvery
	for _, s := range w.seen {
		if left := s.since + Lease - now; left > 0 {
			wait = min(wait, left)
		}
	}
	return wait
}

// KeepLease keeps this instance alive in the eyes of the others and takes over from
// those that are not, until ctx ends. A process that has the database for itself
// needs no heartbeat.
func (e *Engine) KeepLease(ctx context.Context) {
	if !e.clustered {
		return
	}
	var wg sync.WaitGroup
	// Side by side: to take over may mean to wait for a lock.
	wg.Go(func() { e.every(ctx, "heartbeat", e.Heartbeat, func() time.Duration { return heartbeatEvery }) })
	wg.Go(func() {
		e.every(ctx, "watch", e.WatchPeers, func() time.Duration { return e.peers.next(e.elapsed()) })
	})
	wg.Wait()
}

// every calls fn at once, and again when next says, or a heartbeat after the last
// time if that is sooner. It tells of the first failure in a row.
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

// Heartbeat shows that this instance lives. One that finds itself taken for dead has
// lost all that it had claimed: it lets go of it, and goes on as a new one.
func (e *Engine) Heartbeat(ctx context.Context) error {
	known := true
	e.heartbeats++
	report := e.report()
	err := e.store.InTx(ctx, func(tx *db.Tx) (err error) {
		if known, err = WriteHeartbeat(tx, e.owner, report, e.priority.Begun()); err != nil || known {
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

// instance describes this process. Its counter is one that it never showed.
func (e *Engine) instance() Instance {
	return Instance{Owner: e.owner, Version: e.version, Endpoints: e.endpoints, StartedAt: e.started, Heartbeat: e.heartbeats, Report: e.report()}
}

// WatchPeers looks at the counters of all instances and takes over from those that
// have stood still for a lease.
func (e *Engine) WatchPeers(ctx context.Context) error {
	heartbeats, err := ReadHeartbeats(ctx, e.store)
	if err != nil {
		return err
	}
	e.priority.Seen(len(heartbeats), e.peers.syncing(heartbeats, e.owner))
	for _, p := range e.peers.note(heartbeats, e.elapsed()) {
		if p.Owner == e.owner {
			continue // Beat finds that out
		}
		if err := e.takeOver(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// takeOver releases what a dead instance had claimed.
func (e *Engine) takeOver(ctx context.Context, p Heartbeat) error {
	if err := endSessions(ctx, e.store, p); err != nil {
		return err
	}
	var taken bool
	err := e.store.InTx(ctx, func(tx *db.Tx) (err error) {
		if taken, err = RemoveInstance(tx, p); err != nil || !taken {
			return err
		}
		return AbandonUnits(tx)
	})
	if err != nil || !taken {
		return err
	}
	e.log.Warn("an instance stands still; its work is taken over", "owner", p.Owner)
	e.wakeAll()
	return nil
}

// Leave says that this instance works no more. Call it after its workers have
// stopped; without it the others find out by themselves.
func (e *Engine) Leave(ctx context.Context) error {
	if !e.clustered {
		return nil
	}
	return e.giveBack(ctx, func(tx *db.Tx) error {
		if err := Register(tx, e.instance()); err != nil { // whatever its counter is
			return err
		}
		if _, err := RemoveInstance(tx, Heartbeat{Owner: e.owner, Count: e.heartbeats}); err != nil {
			return err
		}
		return AbandonUnits(tx)
	})
}
