package steaminv

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"assay/internal/fault"
	"assay/internal/inventory"
)

const (
	// PullTime is the maximum duration of a pull, including its time in the queue.
	PullTime = 5 * time.Minute
	// SyncTimeout is the maximum time that a caller waits for a pull. The pull continues
	// afterwards, so that a retry can return its result.
	SyncTimeout = 90 * time.Second
	// maxPulls is the maximum number of running and queued pulls.
	maxPulls = 1000
	// concurrency is the maximum number of running pulls. They share one rate limit. The
	// second pull can send requests while the first one waits for a response.
	concurrency = 2
)

// Options configures a Syncer.
type Options struct {
	// SteamID returns the Steam id of a user, or a fault if there is none.
	SteamID func(ctx context.Context, userID string) (string, error)
	Pull    func(ctx context.Context, steamID string, place Place) (inventory.Push, error)
	Held    func() time.Duration // see Puller.Held
	Sync    func(ctx context.Context, userID string, push inventory.Push, mode inventory.Mode) (inventory.Result, error)
	Logger  *slog.Logger
}

// Syncer updates stored inventories with pulls from Steam. Its methods are safe for
// concurrent use. Concurrent pulls of the same inventory are coalesced. Call Close when the
// Syncer is no longer needed.
type Syncer struct {
	o     Options
	ctx   context.Context // context of all pulls
	close context.CancelFunc
	slots chan struct{}
	wg    sync.WaitGroup

	mu    sync.Mutex
	pulls map[pullKey]*pull
}

// pullKey identifies the inventory of a pull. Calls with the same key are coalesced.
type pullKey struct {
	userID, steamID string
	place           Place
}

// pull is a running or queued pull.
type pull struct {
	mode   inventory.Mode // Listing if all waiting callers use that mode
	done   chan struct{}  // closed when result and err are set
	result inventory.Result
	err    error
}

// NewSyncer returns a Syncer.
func NewSyncer(o Options) *Syncer {
	s := &Syncer{o: o, slots: make(chan struct{}, concurrency), pulls: map[pullKey]*pull{}}
	s.ctx, s.close = context.WithCancel(context.Background())
	return s
}

// Close aborts all pulls and waits for them. It does not change stored inventories.
func (s *Syncer) Close() {
	s.mu.Lock()
	s.close() // join starts no pull afterwards
	s.mu.Unlock()
	s.wg.Wait()
}

// Sync pulls a user's inventory and syncs it with the stored rows. It returns within
// SyncTimeout. If the pull takes longer, Sync returns a fault of kind Unavailable while the
// pull continues. If Steam demands a longer wait, Sync returns such a fault immediately.
func (s *Syncer) Sync(ctx context.Context, userID string, place Place, mode inventory.Mode) (inventory.Result, error) {
	if err := place.Check(); err != nil {
		return inventory.Result{}, err
	}
	steamID, err := s.o.SteamID(ctx, userID)
	if err != nil {
		return inventory.Result{}, err
	}
	p, err := s.join(pullKey{userID, steamID, place}, mode)
	if err != nil {
		return inventory.Result{}, err
	}
	timer := time.NewTimer(SyncTimeout)
	defer timer.Stop()
	select {
	case <-p.done:
		return p.result, p.err
	case <-ctx.Done():
		return inventory.Result{}, ctx.Err()
	case <-timer.C:
		if held := s.o.Held(); held > 0 {
			return inventory.Result{}, throttled(held)
		}
		return inventory.Result{}, later("inventory_unavailable", retryUnavailable,
			"The inventory is still being pulled from Steam. Retry to get the result.")
	}
}

// join returns the running pull with a key. If there is none, it starts one.
func (s *Syncer) join(w pullKey, mode inventory.Mode) (*pull, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p, ok := s.pulls[w]; ok {
		if mode == inventory.Normal {
			p.mode = mode
		}
		return p, nil
	}
	if s.ctx.Err() != nil || len(s.pulls) >= maxPulls {
		return nil, later("inventory_unavailable", retryUnavailable, "Too many inventories are waiting to be pulled. Retry later.")
	}
	p := &pull{mode: mode, done: make(chan struct{})}
	s.pulls[w] = p
	s.wg.Go(func() {
		p.result, p.err = s.run(w, p)
		s.removePull(w, p)
		close(p.done)
	})
	return p, nil
}

// run executes a pull. It does not use a caller's context, because the pull must continue
// when its callers leave.
func (s *Syncer) run(w pullKey, p *pull) (result inventory.Result, err error) {
	ctx, cancel := context.WithTimeout(s.ctx, PullTime)
	defer cancel()
	defer func() {
		if failure := fault.Recovered(recover()); failure != nil {
			s.o.Logger.Error("pull panicked", "cause", failure.Cause, "stack", failure.Stack)
			err = failure
		}
	}()
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return result, later("steam_throttled", retryUnavailable, "The pull was queued for too long. Retry later.")
	}
	push, err := s.o.Pull(ctx, w.steamID, w.place)
	if err != nil {
		if s.ctx.Err() == nil {
			s.o.Logger.Warn("inventory pull failed", "app", w.place.AppID, "context", w.place.ContextID, "error", err)
		}
		return result, err
	}
	push.SteamID = w.steamID
	return s.o.Sync(ctx, w.userID, push, s.removePull(w, p))
}

// removePull removes a pull, so that no more callers join it. It returns the mode of the pull.
func (s *Syncer) removePull(w pullKey, p *pull) inventory.Mode {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pulls[w] == p {
		delete(s.pulls, w)
	}
	return p.mode
}
