package admission

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestHold_KeepsTheSlotAfterTheRead(t *testing.T) {
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
			t.Errorf("other request while the slot is in use: got %v, want busy", err)
		}
		release()
		enter(t, g, List)()
		// After release, as in a request that streams its response, leave frees the slot.
		leave, err := g.Enter(ctx, List)
		if err != nil {
			t.Fatal(err)
		}
		leave()
		release()
		enter(t, g, List)()
	})
}

func TestHold_ConcurrentReadsShareTheSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(1)
		leave := enter(t, g, List)
		ctx, release := Hold(t.Context())
		for range 3 {
			go func() {
				leave, err := g.Enter(ctx, List)
				if err != nil {
					t.Errorf("concurrent read of a request: got %v, want a slot", err)
					return
				}
				leave()
			}()
		}
		synctest.Wait() // all reads wait
		leave()
		synctest.Wait()
		release()
		enter(t, g, List)()
	})
}

func TestHold_CountsEncodingAsPartOfTheRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(1)
		g.useUpBurst()
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
			t.Errorf("got the next read after %v, want it after 10ms of encoding and 10ms of rest", took)
		}
	})
}

func TestHold_ReleaseWithoutASlotDoesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(1)
		first := enter(t, g, Search)
		ctx, release := Hold(t.Context())
		if _, err := g.Enter(ctx, Search); !isBusy(err) {
			t.Errorf("got error %v, want busy", err)
		}
		release()
		release()
		first()
		if g.free != 1 {
			t.Errorf("got %d free slots, want 1", g.free)
		}
	})
}

func TestHold_ExpensiveReadReplacesTheSlotOfAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithLists(1, 1)
		ctx, release := Hold(t.Context())
		for _, c := range []Class{List, Search, List} { // the last read shares the slot of the search
			leave, err := g.Enter(ctx, c)
			if err != nil {
				t.Fatal(err)
			}
			leave()
		}
		if g.free != 0 || g.lists.free != 1 {
			t.Errorf("got %d free slots and %d free slots of lists, want 0 and 1", g.free, g.lists.free)
		}
		release()
		if g.free != 1 {
			t.Errorf("after release: got %d free slots, want 1", g.free)
		}
	})
}
