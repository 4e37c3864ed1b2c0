package api

import (
	"context"
	"net/http"
	"time"
)

// Limits of large bodies: of two of the largest, or of more that are smaller,
// everything that is made of them fits into memory at once.
const (
	gateRoom = 2 * maxPush
	gateWait = 30 * time.Second // for room
	gateUnit = 1 << 20          // room is counted in units of so many bytes
)

// gate bounds how many bytes of large bodies are in work at once. Bodies of at
// most maxBody pass freely.
type gate struct {
	turn chan struct{} // held while units are taken: two that each wait with half of theirs would wait forever
	used chan struct{} // one for each unit in use
}

func newGate() *gate {
	return &gate{turn: make(chan struct{}, 1), used: make(chan struct{}, gateRoom/gateUnit)}
}

// enter waits until there is room for a request's body, whose length counts as
// limit where the client does not tell it. The caller calls leave when nothing
// of the body is needed any more. After gateWait it refuses.
func (g *gate) enter(r *http.Request, limit int64) (leave func(), err error) {
	length := r.ContentLength
	if length < 0 {
		length = limit
	}
	if length <= maxBody {
		return func() {}, nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), gateWait)
	defer cancel()
	taken := 0
	leave = func() {
		for range taken {
			<-g.used
		}
	}
	select {
	case g.turn <- struct{}{}:
		defer func() { <-g.turn }()
	case <-ctx.Done():
		return nil, busy()
	}
	for range (length + gateUnit - 1) / gateUnit {
		select {
		case g.used <- struct{}{}:
			taken++
		case <-ctx.Done():
			leave()
			return nil, busy()
		}
	}
	return leave, nil
}

// busy is nobody's fault, and no failure of ours.
func busy() error {
	return &refusal{
		status: http.StatusServiceUnavailable, code: "busy",
		detail: "Other large bodies are in work; send this one again later.",
		header: http.Header{"Retry-After": {seconds(retryAfter)}},
	}
}
