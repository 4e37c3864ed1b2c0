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
	// PullTime is how long a pull may take, its wait for its turn included.
	PullTime = 5 * time.Minute
	// AnswerTime is how long a caller waits for a pull. The pull continues after
	// that, so that a retry finds it further or done.
	AnswerTime = 90 * time.Second
	// maxPulls bounds running and queued pulls.
	maxPulls = 1000
	// atOnce is how many are under way. All of them share one pace; a second one
	// asks while the first waits for an answer.
	atOnce = 2
)

// Options are what a Syncer is made of.
type Options struct {
	// SteamID returns whose inventory is meant: a fault if there is none.
	SteamID func(ctx context.Context, userID string) (string, error)
	Pull    func(ctx context.Context, steamID string, place Place) (inventory.Push, error)
	Held    func() time.Duration // for which Steam wants to be left alone; 0: it does not
	Sync    func(ctx context.Context, userID string, push inventory.Push, mode inventory.Mode) (inventory.Result, error)
	Logger  *slog.Logger
}

// Syncer makes what is stored of users what Steam shows of them. Its methods may
// be used concurrently; pulls of the same inventory at once are one. Close it
// when done.
type Syncer struct {
	o     Options
	ctx   context.Context // of all pulls
	close context.CancelFunc
	slots chan struct{}
	wg    sync.WaitGroup

	mu    sync.Mutex
	pulls map[pullKey]*pull
}

// pullKey identifies what a pull reads. Calls with the same key are coalesced.
type pullKey struct {
	userID, steamID string
	place           Place
}

// pull is one that is under way.
type pull struct {
	mode   inventory.Mode // Listing only while all waiting callers want that
	done   chan struct{}  // closed when the rest is set
	result inventory.Result
	err    error
}

// NewSyncer returns a Syncer.
func NewSyncer(o Options) *Syncer {
	s := &Syncer{o: o, slots: make(chan struct{}, atOnce), pulls: map[pullKey]*pull{}}
	s.ctx, s.close = context.WithCancel(context.Background())
	return s
}

// Close ends all pulls and waits for them. What is stored stays as it is.
func (s *Syncer) Close() {
	s.mu.Lock()
	s.close() // no pull starts after this
	s.mu.Unlock()
	s.wg.Wait()
}

// Sync pulls a user's inventory and makes the stored rows those that came. It
// returns within AnswerTime: with a fault of kind Unavailable where that was not
// enough, while the pull goes on. Where Steam wants to be left alone for longer than
// that it says so at once.
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
	timer := time.NewTimer(AnswerTime)
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

// join returns the pull of what is wanted, and starts it unless it is under way.
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
		s.forget(w, p)
		close(p.done)
	})
	return p, nil
}

// run executes a pull. It belongs to no request, because its callers may be gone.
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
		return result, later("steam_throttled", retryUnavailable, "Other pulls were ahead of this one. Retry later.")
	}
	push, err := s.o.Pull(ctx, w.steamID, w.place)
	if err != nil {
		if s.ctx.Err() == nil {
			s.o.Logger.Warn("inventory pull failed", "app", w.place.AppID, "context", w.place.ContextID, "error", err)
		}
		return result, err
	}
	push.SteamID = w.steamID
	return s.o.Sync(ctx, w.userID, push, s.forget(w, p))
}

// forget removes a pull, so that no caller joins it any more, and returns its mode.
func (s *Syncer) forget(w pullKey, p *pull) inventory.Mode {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pulls[w] == p {
		delete(s.pulls, w)
	}
	return p.mode
}
