package admission

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"assay/internal/fault"
)

func isBusy(err error) bool {
	f := fault.Of(err)
	return f != nil && f.Kind == fault.Busy && f.RetryAfter > 0
}

// useUpBurst makes the reads rest from now on, if other reads wait.
func (g *Gate) useUpBurst() { g.worked, g.seen = burst, time.Now() }

// enter takes a slot and fails the test if Enter returns an error.
func enter(t *testing.T, g *Gate, c Class) (leave func()) {
	t.Helper()
	leave, err := g.Enter(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return leave
}

func TestGate_RejectsReadsAfterMaxWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(2)
		g.useUpBurst()
		first, second := enter(t, g, Search), enter(t, g, Search)
		start := time.Now()
		if _, err := g.Enter(t.Context(), Search); !isBusy(err) || time.Since(start) != MaxWait {
			t.Errorf("third read: got %v after %v, want busy after %v", err, time.Since(start), MaxWait)
		}
		time.AfterFunc(MaxWait/2, first)
		start = time.Now()
		third, err := g.Enter(t.Context(), Search)
		if want := MaxWait/2 + maxRest; err != nil || time.Since(start) != want {
			t.Fatalf("third read after a slot became free: got %v after %v, want nil after %v", err, time.Since(start), want)
		}
		second()
		third()
		if g.free != 2 || len(g.queues[Search]) != 0 {
			t.Errorf("got %d free slots and %d waiting reads, want 2 and 0", g.free, len(g.queues[Search]))
		}
	})
}

func TestGate_RejectsReadsAfterMaxWaitIfTheQueueIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(1)
		leave := enter(t, g, Search)
		var wg sync.WaitGroup
		for range QueueSize {
			wg.Go(func() {
				if _, err := g.Enter(t.Context(), Search); !isBusy(err) {
					t.Errorf("queued read: got %v, want busy", err)
				}
			})
		}
		synctest.Wait()
		start := time.Now()
		if _, err := g.Enter(t.Context(), Search); !isBusy(err) || time.Since(start) != MaxWait {
			t.Errorf("read with a full queue: got %v after %v, want busy after %v", err, time.Since(start), MaxWait)
		}
		wg.Wait()
		leave()
		enter(t, g, Search)()
	})
}

func TestGate_ServesTheClassesRoundRobin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(1)
		leave := enter(t, g, Search)
		var mu sync.Mutex
		var order []Class
		read := func(c Class) {
			leave, err := g.Enter(t.Context(), c)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			order = append(order, c)
			mu.Unlock()
			leave()
		}
		var wg sync.WaitGroup
		for _, c := range []Class{Search, Search, Search, DryRun, Inventory} {
			wg.Go(func() { read(c) })
			synctest.Wait()
		}
		leave()
		wg.Wait()
		if want := []Class{Inventory, DryRun, Search, Search, Search}; !slices.Equal(order, want) {
			t.Errorf("got the order %v, want %v", order, want)
		}
	})
}

func TestGate_DropsCancelledReadsFromTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(1)
		leave := enter(t, g, List)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := g.Enter(ctx, List); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got error %v, want %v", err, context.DeadlineExceeded)
		}
		if _, err := g.Enter(ctx, List); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got error %v, want %v", err, context.DeadlineExceeded)
		}
		if len(g.queues[List]) != 0 {
			t.Errorf("got %d waiting reads, want 0", len(g.queues[List]))
		}
		leave()
		if g.free != 1 {
			t.Errorf("got %d free slots, want 1", g.free)
		}
	})
}

func TestGate_RestsWhileReadsWait(t *testing.T) {
	for took, rest := range map[time.Duration]time.Duration{0: minRest, 80 * time.Millisecond: 80 * time.Millisecond, 400 * time.Millisecond: maxRest} {
		synctest.Test(t, func(t *testing.T) {
			g := New(1)
			g.useUpBurst()
			reads := 5
			if took > maxRest {
				reads = 2 // a third one would wait longer than MaxWait
			}
			var wg sync.WaitGroup
			start := time.Now()
			for range reads {
				wg.Go(func() {
					leave, err := g.Enter(t.Context(), Search)
					if err != nil {
						t.Error(err)
						return
					}
					synctest.Wait() // until the other reads are in the queue
					<-time.After(took)
					leave()
				})
			}
			wg.Wait()
			if got, want := time.Since(start), time.Duration(reads)*took+time.Duration(reads-1)*rest; got != want {
				t.Errorf("%d concurrent reads: took %v, want %v", reads, got, want)
			}
		})
	}
}

// TestGate_DoesNotRestInABurst sends a few reads at once, as a page or a person does.
func TestGate_DoesNotRestInABurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(1)
		reads := func(n int, want time.Duration) {
			t.Helper()
			var wg sync.WaitGroup
			start := time.Now()
			for range n {
				wg.Go(func() {
					leave := enter(t, g, Search)
					synctest.Wait() // until the other reads are in the queue
					<-time.After(burst / 4)
					leave()
				})
			}
			wg.Wait()
			if took := time.Since(start); took != want {
				t.Errorf("%d concurrent reads: took %v, want %v", n, took, want)
			}
		}
		reads(4, burst)
		reads(3, 3*burst/4+2*burst/4) // the burst is used up
		<-time.After(burst)
		reads(4, burst)
	})
}

// TestGate_FloodUsesHalfOfASlot sends reads without a pause for longer than a burst.
func TestGate_FloodUsesHalfOfASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(1)
		const lasts, took = 10 * time.Second, 20 * time.Millisecond
		var wg sync.WaitGroup
		var worked time.Duration
		start := time.Now()
		for range 8 {
			wg.Go(func() {
				for time.Since(start) < lasts {
					leave := enter(t, g, Search)
					<-time.After(took)
					worked += took
					leave()
				}
			})
		}
		wg.Wait()
		if most := lasts/2 + burst + 8*took; worked > most {
			t.Errorf("a flood of %v worked for %v, want at most %v", lasts, worked, most)
		}
	})
}

func TestGate_ListsDoNotWaitForExpensiveReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithLists(1, 1)
		search := enter(t, g, Search)
		start := time.Now()
		list := enter(t, g, List)
		if took := time.Since(start); took != 0 {
			t.Errorf("list during a search: waited %v, want 0s", took)
		}
		if _, err := g.Enter(t.Context(), List); !isBusy(err) {
			t.Errorf("second list: got %v, want busy", err)
		}
		if _, err := g.Enter(t.Context(), Inventory); !isBusy(err) {
			t.Errorf("inventory during a search: got %v, want busy", err)
		}
		search()
		list()
	})
}
