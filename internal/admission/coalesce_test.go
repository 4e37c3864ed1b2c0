package admission

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestCoalescer_SharesTheNextRead makes many calls while a read runs. The calls share the
// next read, because the current read started before them.
func TestCoalescer_SharesTheNextRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := NewCoalescer[time.Time](false)
		var mu sync.Mutex
		reads := 0
		read := func(context.Context) (time.Time, error) {
			mu.Lock()
			reads++
			mu.Unlock()
			began := time.Now()
			<-time.After(time.Second)
			return began, nil
		}
		var wg sync.WaitGroup
		const callers = 50
		for i := range callers {
			<-time.After(100 * time.Millisecond)
			wg.Go(func() {
				called := time.Now()
				began, err := shared.Do(t.Context(), read)
				if err != nil || began.Before(called) || time.Since(called) > 2*time.Second {
					t.Errorf("call %d at %v: got a read from %v after %v, %v, want a read that started later", i, called, began, time.Since(called), err)
				}
			})
		}
		wg.Wait()
		if reads > 7 { // five seconds of calls, one read before and one after
			t.Errorf("got %d reads for %d calls, want at most 7", reads, callers)
		}
	})
}

// TestCoalescer_CancelledCallsDoNotAffectOthers cancels the call that reads and the call
// that would read next.
func TestCoalescer_CancelledCallsDoNotAffectOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := NewCoalescer[int](false)
		read := func(ctx context.Context) (int, error) {
			select {
			case <-ctx.Done():
				return 0, ctx.Err()
			case <-time.After(time.Second):
				return 1, nil
			}
		}
		var wg sync.WaitGroup
		for _, timeout := range []time.Duration{500 * time.Millisecond, 100 * time.Millisecond, time.Hour, time.Hour} {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), timeout)
				defer cancel()
				got, err := shared.Do(ctx, read)
				if timeout == time.Hour && (got != 1 || err != nil) {
					t.Errorf("call with a timeout of %v: got %d, %v, want 1, nil", timeout, got, err)
				}
				if timeout < time.Second && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("call with a timeout of %v: got %d, %v, want %v", timeout, got, err, context.DeadlineExceeded)
				}
			})
			synctest.Wait()
		}
		wg.Wait()
	})
}

// TestCoalescer_NeverReadsConcurrently makes calls that share a read. The read fails, either by
// itself or because the context of its caller ends.
func TestCoalescer_NeverReadsConcurrently(t *testing.T) {
	failed := errors.New("failed")
	for name, c := range map[string]struct {
		timeout time.Duration // of the first call that shares the read
		want    error         // of the other calls
		reads   int           // at most
	}{
		"the read fails":      {time.Hour, failed, 2},
		"its caller has left": {1500 * time.Millisecond, nil, 4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared := NewCoalescer[int](false)
				var mu sync.Mutex
				reads, running, most := 0, 0, 0
				read := func(ctx context.Context) (int, error) {
					mu.Lock()
					reads++
					running++
					number := reads
					most = max(most, running)
					mu.Unlock()
					defer func() {
						mu.Lock()
						running--
						mu.Unlock()
					}()
					select {
					case <-ctx.Done():
						return 0, ctx.Err()
					case <-time.After(time.Second):
					}
					if number == 2 {
						return 0, failed
					}
					return number, nil
				}
				var wg sync.WaitGroup
				for i, timeout := range []time.Duration{time.Hour, c.timeout, time.Hour, time.Hour, time.Hour} {
					wg.Go(func() {
						ctx, cancel := context.WithTimeout(t.Context(), timeout)
						defer cancel()
						if _, err := shared.Do(ctx, read); i > 1 && !errors.Is(err, c.want) {
							t.Errorf("call %d: got error %v, want %v", i, err, c.want)
						}
					})
					synctest.Wait()
				}
				wg.Wait()
				if reads > c.reads || most != 1 {
					t.Errorf("got %d reads and up to %d at once, want at most %d and 1", reads, most, c.reads)
				}
			})
		})
	}
}

// TestCoalescer_RestsBetweenSharedReads runs callers that call again immediately after each
// result.
func TestCoalescer_RestsBetweenSharedReads(t *testing.T) {
	const callers, each = 20, 5
	for took, rest := range map[time.Duration]time.Duration{
		time.Millisecond: (callers - 1) * minRest, 30 * time.Millisecond: 30 * time.Millisecond, time.Second: maxRest,
	} {
		synctest.Test(t, func(t *testing.T) {
			shared := NewCoalescer[int](true)
			var wg sync.WaitGroup
			start := time.Now()
			reads := 0
			for range callers {
				wg.Go(func() {
					for range each {
						if _, err := shared.Do(t.Context(), func(context.Context) (int, error) {
							reads++
							<-time.After(took)
							return reads, nil
						}); err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
			// The first read may serve only one caller. The other callers share later reads.
			if least := each*took + (each-2)*rest; reads > each+1 || time.Since(start) < least {
				t.Errorf("reads of %v: got %d reads in %v, want at most %d in at least %v", took, reads, time.Since(start), each+1, least)
			}
		})
	}
}

func TestCoalescer_DoesNotRestForASingleCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		alone := NewCoalescer[int](true)
		start := time.Now()
		for range 3 {
			_, _ = alone.Do(t.Context(), func(context.Context) (int, error) {
				<-time.After(time.Second)
				return 0, nil
			})
		}
		if got := time.Since(start); got != 3*time.Second {
			t.Errorf("three calls of one second each: took %v, want 3s", got)
		}
	})
}
