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
	Owner     string // names it in claims
	Version   string
	Asks      []Askable
	StartedAt time.Time
	Beat      int64
	BeatAt    time.Time // when the counter moved, by the instance's own clock
	Report    string    // what it tells of itself, for people to see
}

// Pulse is the counter of an instance as it was seen.
type Pulse struct {
	Owner string
	Beat  int64
	Syncs int64 // that have begun there, ever
}

// NoBeat is the counter of an owner of claims that is no instance any more.
const NoBeat = -1

const (
	// beatEvery is how often an instance moves its counter on, and looks at those
	// of the others.
	beatEvery = 500 * time.Millisecond
	// Lease is how long a counter may stand still before others take the
	// instance for dead.
	Lease = 3 * time.Second
	// blink is the longest between two looks that counts as having looked.
	blink = 2 * time.Second
)

// watch is what an instance has seen of the others. Nothing in it is a time of
// day: clocks of machines differ, and are set.
type watch struct {
	mu   sync.Mutex
	last time.Duration // when it last looked
	seen map[string]sighting
}

type sighting struct {
	beat  int64
	syncs int64
	since time.Duration // it has stood there
}

// note notes what was seen at a moment and returns those that have stood still
// for a lease. A gap between two looks is no time in which anybody was seen to
// stand still: the database was away, or this process was.
func (w *watch) note(pulses []Pulse, now time.Duration) (still []Pulse) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now-w.last > blink {
		w.seen = nil
	}
	seen := make(map[string]sighting, len(pulses))
	for _, p := range pulses {
		s, known := w.seen[p.Owner]
		if !known || s.beat != p.Beat {
			s = sighting{beat: p.Beat, syncs: p.Syncs, since: now}
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
func (w *watch) syncing(pulses []Pulse, self string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(pulses, func(p Pulse) bool {
		s, known := w.seen[p.Owner]
		return known && p.Owner != self && p.Syncs != s.syncs
	})
}

// next returns how long after now one that may be dead will have stood still for
// a lease, or a beat if that is sooner: who waits for it waits no longer.
func (w *watch) next(now time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	wait := beatEvery
	for _, s := range w.seen {
		if left := s.since + Lease - now; left > 0 {
			wait = min(wait, left)
		}
	}
	return wait
}

// Attend keeps this instance alive in the eyes of the others and takes over from
// those that are not, until ctx ends. A process that has the database for itself
// needs no heartbeat.
func (e *Engine) Attend(ctx context.Context) {
	if !e.clustered {
		return
	}
	var wg sync.WaitGroup
	// Side by side: to take over may mean to wait for a lock.
	wg.Go(func() { e.every(ctx, "beat", e.Beat, func() time.Duration { return beatEvery }) })
	wg.Go(func() {
		e.every(ctx, "watch", e.Watch, func() time.Duration { return e.others.next(e.elapsed()) })
	})
	wg.Wait()
}

// every calls fn at once, and again when next says, or a beat after the last
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
		dispatch.Wait(ctx, min(next(), beatEvery-(e.elapsed()-began)))
	}
}

// Beat shows that this instance lives. One that finds itself taken for dead has
// lost all that it had claimed: it lets go of it, and goes on as a new one.
func (e *Engine) Beat(ctx context.Context) error {
	known := true
	e.beat++
	report := e.report()
	err := e.store.InTx(ctx, func(tx *db.Tx) (err error) {
		if known, err = Beat(tx, e.owner, report, e.priority.Begun()); err != nil || known {
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
	return Instance{Owner: e.owner, Version: e.version, Asks: e.asks, StartedAt: e.started, Beat: e.beat, Report: e.report()}
}

// Watch looks at the counters of all instances and takes over from those that
// have stood still for a lease.
func (e *Engine) Watch(ctx context.Context) error {
	pulses, err := ReadPulses(ctx, e.store)
	if err != nil {
		return err
	}
	e.priority.Seen(len(pulses), e.others.syncing(pulses, e.owner))
	for _, p := range e.others.note(pulses, e.elapsed()) {
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
func (e *Engine) takeOver(ctx context.Context, p Pulse) error {
	if err := endSessions(ctx, e.store, p); err != nil {
		return err
	}
	var taken bool
	err := e.store.InTx(ctx, func(tx *db.Tx) (err error) {
		if taken, err = RemoveInstance(tx, p); err != nil || !taken {
			return err
		}
		return ForgoUnits(tx)
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
		if _, err := RemoveInstance(tx, Pulse{Owner: e.owner, Beat: e.beat}); err != nil {
			return err
		}
		return ForgoUnits(tx)
	})
}
