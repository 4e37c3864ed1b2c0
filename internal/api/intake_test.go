package api

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"assay/internal/randtest"
)

func TestIntake_OnlyTheFirstUploadContinuesAtTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newIntake(true)
		first, second, third := in.begin(), in.begin(), in.begin()
		must := func(u *upload, n int64, want time.Duration) {
			t.Helper()
			began := time.Now()
			if waited, err := u.take(t.Context(), n); err != nil || waited != (want > 0) || time.Since(began) != want {
				t.Fatalf("got waited %v after %v, error %v; want a wait of %v", waited, time.Since(began), err, want)
			}
		}
		must(first, maxPush, 0)
		must(second, intakeRoom/2, 0)
		must(third, intakeRoom/2, 0)
		began := time.Now()
		_, err := third.take(t.Context(), 1)
		if p, header, ours := explain(err); p.Status != http.StatusServiceUnavailable || header.Get("Retry-After") == "" || ours || time.Since(began) != intakeWait {
			t.Errorf("above the limit: got %v after %v, want a refusal after %v", err, time.Since(began), intakeWait)
		}
		time.AfterFunc(time.Second, first.end)
		must(second, maxPush, time.Second) // it is now the first upload
		third.end()
		second.end()
		if in.used != 0 || len(in.uploads) != 0 {
			t.Errorf("got %d bytes in %d uploads, want none", in.used, len(in.uploads))
		}
	})
}

func TestIntake_StopsWaitingWhenTheRequestEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newIntake(true)
		in.begin()
		u := in.begin()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := u.take(ctx, intakeRoom+1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got error %v, want context.DeadlineExceeded", err)
		}
	})
}

// TestIntake_StaysWithinItsLimit runs random uploads in parallel. All uploads must end. Without
// the first upload, their total size must stay within intakeRoom.
func TestIntake_StaysWithinItsLimit(t *testing.T) {
	seed := randtest.Seed(t)
	synctest.Test(t, func(t *testing.T) {
		in := newIntake(true)
		var wg sync.WaitGroup
		for n := range uint64(40) {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(seed, n))
				<-time.After(time.Duration(r.IntN(1000)) * time.Millisecond)
				u := in.begin()
				defer u.end()
				for range r.IntN(64) {
					n := int64(r.IntN(512 << 10))
					if _, err := u.take(t.Context(), n); err != nil {
						t.Error(err)
						return
					}
					u.release(n / 4)
					in.mu.Lock()
					total := int64(0)
					for _, other := range in.uploads[1:] {
						total += other.bytes
					}
					if total != in.used || total > intakeRoom {
						t.Errorf("got %d bytes in uploads, %d counted; want both equal and at most %d", total, in.used, intakeRoom)
					}
					in.mu.Unlock()
					<-time.After(time.Duration(r.IntN(10)) * time.Millisecond)
				}
			})
		}
		wg.Wait()
		if in.used != 0 || len(in.uploads) != 0 {
			t.Errorf("got %d bytes in %d uploads, want none", in.used, len(in.uploads))
		}
	})
}
