package api

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// push is a request with a body of that length.
func push(t *testing.T, length int64) *http.Request {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.ContentLength = length
	return r
}

func TestGate_LetsTwoOfTheLargestInAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		first, err := g.enter(push(t, maxPush), maxPush)
		if err != nil {
			t.Fatal(err)
		}
		second, err := g.enter(push(t, -1), maxPush) // may be as large
		if err != nil {
			t.Fatal(err)
		}
		for range 100 {
			if _, err := g.enter(push(t, maxBody), maxPush); err != nil {
				t.Fatalf("a small one: %v", err)
			}
		}
		start := time.Now()
		_, err = g.enter(push(t, maxPush), maxPush)
		if p, header, ours := explain(err); p.Status != http.StatusServiceUnavailable || header.Get("Retry-After") == "" || ours || time.Since(start) != gateWait {
			t.Errorf("a third: %v after %v, want it refused after %v", err, time.Since(start), gateWait)
		}
		time.AfterFunc(time.Second, first)
		start = time.Now()
		third, err := g.enter(push(t, maxPush), maxPush)
		if err != nil || time.Since(start) != time.Second {
			t.Fatalf("a third, once there is room: %v after %v", err, time.Since(start))
		}
		second()
		third()
		if len(g.used) != 0 || len(g.turn) != 0 {
			t.Errorf("%d units are in use, want none", len(g.used))
		}
	})
}

func TestGate_HasRoomForManyThatAreSmaller(t *testing.T) {
	g := newGate()
	for range gateRoom / (4 * maxBody) {
		if _, err := g.enter(push(t, 4*maxBody), maxPush); err != nil {
			t.Fatal(err)
		}
	}
}

func TestGate_EndsItsWaitWithTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		if _, err := g.enter(push(t, maxPush+gateUnit), maxPush); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if _, err := g.enter(push(t, maxPush).WithContext(ctx), maxPush); err == nil || time.Since(start) != time.Second {
			t.Errorf("%v after %v, want an error after a second", err, time.Since(start))
		}
		if want := maxPush/gateUnit + 1; len(g.used) != want || len(g.turn) != 0 {
			t.Errorf("%d units are in use, want %d", len(g.used), want)
		}
	})
}
