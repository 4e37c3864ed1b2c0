package view

import (
	"context"
	"sync"
	"time"
)

// headline caches the first verdict of the overview.
type headline struct {
	reading sync.Mutex // held while the verdict is read

	mu      sync.Mutex
	at      time.Time // zero: not read yet
	used    time.Time // last call of Headline
	last    Verdict
	actions int64 // calls of ExpireHeadline
	expired bool  // by an action after the read
}

// unknownState returns the headline while the state is not known: before the first read, and after
// a failed read.
func unknownState() Verdict {
	return Verdict{Level: "calm", Text: "The state is not known yet."}
}

// Headline returns the first verdict of the overview, at most 15 seconds old. While one call reads
// it, the others return the last one, unless an action expired it.
func (r *OverviewReader) Headline(ctx context.Context) Verdict {
	h := &r.headline
	now := r.o.Now()
	h.mu.Lock()
	h.used = now
	expired := h.expired
	h.mu.Unlock()
	if h.younger(now, resultKept) {
		return h.get()
	}
	if expired {
		h.reading.Lock()
	} else if !h.reading.TryLock() {
		return h.get()
	}
	defer h.reading.Unlock()
	if h.younger(r.o.Now(), resultKept) {
		return h.get()
	}
	actions := h.begin()
	if _, err := r.Overview(ctx); err != nil && ctx.Err() == nil {
		h.set(r.o.Now(), unknownState(), actions)
	}
	return h.get()
}

// LastHeadline returns the last result of Headline or of the overview.
func (r *OverviewReader) LastHeadline() Verdict { return r.headline.get() }

// ExpireHeadline makes the next call of Headline read it again. Call it after an action, which may
// have changed the state.
func (r *OverviewReader) ExpireHeadline() {
	h := &r.headline
	h.mu.Lock()
	defer h.mu.Unlock()
	h.actions++
	h.expired = true
}

// renewHeadline reads the headline if it is in use and soon too old.
func (r *OverviewReader) renewHeadline(ctx context.Context) error {
	h := &r.headline
	now := r.o.Now()
	h.mu.Lock()
	idle := now.Sub(h.used)
	h.mu.Unlock()
	if idle >= inUse || h.younger(now, resultRenew) || !h.reading.TryLock() {
		return nil
	}
	defer h.reading.Unlock()
	_, err := r.Overview(ctx)
	return err
}

// younger reports whether the headline is younger than kept and not expired.
func (h *headline) younger(now time.Time, kept time.Duration) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	age := now.Sub(h.at)
	return !h.at.IsZero() && !h.expired && age >= 0 && age < kept
}

// begin returns the parameter actions of set. Call it before the state is read.
func (h *headline) begin() (actions int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.actions
}

// set stores a headline that was read now. It stays expired after an action during the read.
func (h *headline) set(now time.Time, v Verdict, actions int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at, h.last, h.expired = now, v, h.actions != actions
}

func (h *headline) get() Verdict {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.at.IsZero() {
		return unknownState()
	}
	return h.last
}
