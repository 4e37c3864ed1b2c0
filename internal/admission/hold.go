package admission

import (
	"context"
	"sync"
)

// Hold returns a context for one request. The request keeps the first slot that it gets
// from a Gate until release is called, and its other reads share that slot. The slot
// therefore covers the encoding of the result, which takes as much processor time as the read.
// A request with a slot of the class List gives it back before an expensive read waits for one.
// release may be called more than once.
func Hold(ctx context.Context) (held context.Context, release func()) {
	h := &holder{entering: make(chan struct{}, 1)}
	return context.WithValue(ctx, holderKey{}, h), h.release
}

type holderKey struct{}

// holder is the slot of one request.
type holder struct {
	// entering has an element while a read of the request waits for a slot. Another read of the
	// request would otherwise wait for a slot that this one keeps.
	entering chan struct{}

	mu    sync.Mutex
	leave func() // frees the slot; nil: no slot
	cheap bool   // the slot is one of the class List
	over  bool   // release was called
}

// holderOf returns the holder in ctx, or nil.
func holderOf(ctx context.Context) *holder {
	h, _ := ctx.Value(holderKey{}).(*holder)
	return h
}

// holds reports whether the request has a slot that admits a read. If an expensive read has only a
// slot of the class List, holds frees that slot.
func (h *holder) holds(cheap bool) bool {
	if h == nil {
		return false
	}
	h.mu.Lock()
	leave := h.leave
	if leave == nil || cheap || !h.cheap {
		h.mu.Unlock()
		return leave != nil
	}
	h.leave, h.cheap = nil, false
	h.mu.Unlock()
	leave()
	return false
}

// keep stores the slot of a read in h until release. It returns the leave function for
// the caller of Enter. That function does nothing if h keeps the slot.
func (h *holder) keep(leave func(), cheap bool) func() {
	if h == nil {
		return leave
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over || h.leave != nil {
		return leave
	}
	h.leave, h.cheap = leave, cheap
	return func() {}
}

func (h *holder) release() {
	h.mu.Lock()
	leave := h.leave
	h.leave, h.over = nil, true
	h.mu.Unlock()
	if leave != nil {
		leave()
	}
}
