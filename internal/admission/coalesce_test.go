package admission

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestCoalescer_SharesTheNextRead has many callers while a read runs: they share the
// next one, which begins after they called.
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
					t.Errorf("call %d of %v got after %v what was read at %v, %v", i, called, time.Since(called), began, err)
				}
			})
		}
		wg.Wait()
		if reads > 7 { // in five seconds, and one before and after
			t.Errorf("%d reads for %d callers", reads, callers)
		}
	})
}

// TestCoalescer_LeavingFailsNoOtherCaller has the caller that reads, and the one that
// would be next, leave.
func TestCoalescer_LeavingFailsNoOtherCaller(t *testing.T) {
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
		for _, stays := range []time.Duration{500 * time.Millisecond, 100 * time.Millisecond, time.Hour, time.Hour} {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), stays)
				defer cancel()
				got, err := shared.Do(ctx, read)
				if stays == time.Hour && (got != 1 || err != nil) || stays < time.Second && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("a caller that stays for %v got %d, %v", stays, got, err)
				}
			})
			synctest.Wait()
		}
		wg.Wait()
	})
}

// TestCoalescer_RestsBetweenSharedReads has callers that call again as soon as they have
// an answer.
func TestCoalescer_RestsBetweenSharedReads(t *testing.T) {
	const callers, each = 20, 5
	for took, rest := range map[time.Duration]time.Duration{
		time.Millisecond: (callers - 1) * leastRest, 30 * time.Millisecond: 30 * time.Millisecond, time.Second: mostRest,
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
			// The first read may be of one caller, after which the others share theirs.
			if least := each*took + (each-2)*rest; reads > each+1 || time.Since(start) < least {
				t.Errorf("%d reads of %v took %v, want %d, and at least %v", reads, took, time.Since(start), each, least)
			}
		})
	}
}

func TestCoalescer_OneCallerWaitsForNoRest(t *testing.T) {
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
			t.Errorf("three calls of a second took %v", got)
		}
	})
}
