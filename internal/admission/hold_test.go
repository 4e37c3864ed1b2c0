package admission

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestHold_KeepsTheSlotBeyondTheRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(1)
		ctx, release := Hold(t.Context())
		defer release()
		for range 2 { // the reads of a request share a slot
			leave, err := g.Enter(ctx, List)
			if err != nil {
				t.Fatal(err)
			}
			leave()
		}
		if _, err := g.Enter(t.Context(), List); !isBusy(err) {
			t.Errorf("another request while the slot is held: %v, want busy", err)
		}
		release()
		enter(t, g, List)()
		// A request that has begun to answer, as one that streams, holds no slot any more.
		leave, err := g.Enter(ctx, List)
		if err != nil {
			t.Fatal(err)
		}
		leave()
		release()
		enter(t, g, List)()
	})
}

func TestHold_CountsWhatIsMadeOfAReadAsPartOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(1)
		ctx, release := Hold(t.Context())
		leave, err := g.Enter(ctx, Search)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		go func() {
			leave()
			<-time.After(10 * time.Millisecond)
			release()
		}()
		enter(t, g, Search)()
		if took := time.Since(start); took != 20*time.Millisecond {
			t.Errorf("the next read began after %v, want 10 ms of encoding and 10 ms of rest", took)
		}
	})
}

func TestHold_OfARequestWithoutASlotHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(1)
		first := enter(t, g, Search)
		ctx, release := Hold(t.Context())
		if _, err := g.Enter(ctx, Search); !isBusy(err) {
			t.Errorf("%v, want busy", err)
		}
		release()
		release()
		first()
		if g.free != 1 {
			t.Errorf("%d slots are free, want 1", g.free)
		}
	})
}
