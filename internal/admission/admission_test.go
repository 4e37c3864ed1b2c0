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

// enter takes a slot that must be free.
func enter(t *testing.T, g *Gate, c Class) (leave func()) {
	t.Helper()
	leave, err := g.Enter(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return leave
}

func TestGate_RefusesAfterPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(2)
		first, second := enter(t, g, Search), enter(t, g, Search)
		start := time.Now()
		if _, err := g.Enter(t.Context(), Search); !isBusy(err) || time.Since(start) != Patience {
			t.Errorf("a third: %v after %v, want busy after %v", err, time.Since(start), Patience)
		}
		time.AfterFunc(Patience/2, first)
		start = time.Now()
		third, err := g.Enter(t.Context(), Search)
		if want := Patience/2 + mostRest; err != nil || time.Since(start) != want {
			t.Fatalf("a third, once a slot is free: %v after %v, want %v", err, time.Since(start), want)
		}
		second()
		third()
		if g.free != 2 || len(g.queues[Search]) != 0 {
			t.Errorf("%d slots are free and %d wait, want 2 and 0", g.free, len(g.queues[Search]))
		}
	})
}

func TestGate_RefusesBeyondTheQueueWhenPatienceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(1)
		leave := enter(t, g, Search)
		var wg sync.WaitGroup
		for range Queue {
			wg.Go(func() {
				if _, err := g.Enter(t.Context(), Search); !isBusy(err) {
					t.Errorf("queued: %v", err)
				}
			})
		}
		synctest.Wait()
		start := time.Now()
		if _, err := g.Enter(t.Context(), Search); !isBusy(err) || time.Since(start) != Patience {
			t.Errorf("beyond the queue: %v after %v, want busy after %v", err, time.Since(start), Patience)
		}
		wg.Wait()
		leave()
		enter(t, g, Search)()
	})
}

func TestGate_GoesRoundTheClasses(t *testing.T) {
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
			t.Errorf("admitted %v, want %v", order, want)
		}
	})
}

func TestGate_ForgetsReadsWhoseClientLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(1)
		leave := enter(t, g, List)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := g.Enter(ctx, List); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want the error of the context", err)
		}
		if _, err := g.Enter(ctx, List); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want the error of the context", err)
		}
		if len(g.queues[List]) != 0 {
			t.Error("it still waits")
		}
		leave()
		if g.free != 1 {
			t.Errorf("%d slots are free, want 1", g.free)
		}
	})
}

func TestGate_RestsWhileReadsWait(t *testing.T) {
	for took, rest := range map[time.Duration]time.Duration{0: leastRest, 80 * time.Millisecond: 80 * time.Millisecond, 400 * time.Millisecond: mostRest} {
		synctest.Test(t, func(t *testing.T) {
			g := New(1)
			reads := 5
			if took > mostRest {
				reads = 2 // more would lose their patience
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
					synctest.Wait() // until the others wait
					<-time.After(took)
					leave()
				})
			}
			wg.Wait()
			if got, want := time.Since(start), time.Duration(reads)*took+time.Duration(reads-1)*rest; got != want {
				t.Errorf("%d reads at once took %v, want %v", reads, got, want)
			}
		})
	}
}
