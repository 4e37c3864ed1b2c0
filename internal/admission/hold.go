package admission

import (
	"context"
	"sync"
)

// Hold returns a context for one request. A slot that the request enters with it is held
// until release is called, not only while it reads, because encoding the result costs as
// much processor time as the read. All reads of the request until then share the slot.
// release may be called more than once.
func Hold(ctx context.Context) (held context.Context, release func()) {
	h := &holder{}
	return context.WithValue(ctx, holderKey{}, h), h.release
}

type holderKey struct{}

// holder is the slot of one request.
type holder struct {
	mu    sync.Mutex
	leave func() // nil: it has none
	over  bool   // the request was released
}

// holderOf returns the holder of a context, nil if there is none.
func holderOf(ctx context.Context) *holder {
	h, _ := ctx.Value(holderKey{}).(*holder)
	return h
}

// holds reports whether the request has a slot already.
func (h *holder) holds() bool {
	if h == nil {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.leave != nil
}

// keep takes over the slot of a read. It returns the function that ends the read, which
// does nothing while the request holds the slot.
func (h *holder) keep(leave func()) func() {
	if h == nil {
		return leave
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over || h.leave != nil {
		return leave
	}
	h.leave = leave
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
