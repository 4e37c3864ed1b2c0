package view

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestTurns_AreSharedByWhoAsksMeanwhile has many ask while somebody reads: they share
// the next reading, which begins after they asked.
func TestTurns_AreSharedByWhoAsksMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := newTurns[time.Time]()
		var mu sync.Mutex
		readings := 0
		read := func(context.Context) (time.Time, error) {
			mu.Lock()
			readings++
			mu.Unlock()
			began := time.Now()
			time.Sleep(time.Second)
			return began, nil
		}
		var wg sync.WaitGroup
		const askers = 50
		for i := range askers {
			time.Sleep(100 * time.Millisecond)
			wg.Go(func() {
				asked := time.Now()
				began, err := shared.get(t.Context(), read)
				if err != nil || began.Before(asked) || time.Since(asked) > 2*time.Second {
					t.Errorf("%d asked at %v and was told after %v what was read at %v, %v", i, asked, time.Since(asked), began, err)
				}
			})
		}
		wg.Wait()
		if readings > 7 { // in five seconds, and one before and after
			t.Errorf("%d readings for %d who asked", readings, askers)
		}
	})
}

// TestTurns_OfWhoGoesAwayFailNobody has the one who reads, and the one who would be
// next, go away.
func TestTurns_OfWhoGoesAwayFailNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := newTurns[int]()
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
				got, err := shared.get(ctx, read)
				if stays == time.Hour && (got != 1 || err != nil) || stays < time.Second && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("who stays for %v was told %d, %v", stays, got, err)
				}
			})
			synctest.Wait()
		}
		wg.Wait()
	})
}
