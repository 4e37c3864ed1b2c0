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

func TestIntake_LetsTheFirstGoOnWhenTheRoomIsUsedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newIntake(true)
		first, second, third := in.begin(), in.begin(), in.begin()
		must := func(u *upload, n int64, want time.Duration) {
			t.Helper()
			began := time.Now()
			if waited, err := u.take(t.Context(), n); err != nil || waited != (want > 0) || time.Since(began) != want {
				t.Fatalf("waited %v for %v: %v, want %v", waited, time.Since(began), err, want)
			}
		}
		must(first, maxPush, 0)
		must(second, intakeRoom/2, 0)
		must(third, intakeRoom/2, 0)
		began := time.Now()
		_, err := third.take(t.Context(), 1)
		if p, header, ours := explain(err); p.Status != http.StatusServiceUnavailable || header.Get("Retry-After") == "" || ours || time.Since(began) != intakeWait {
			t.Errorf("beyond the room: %v after %v, want it refused after %v", err, time.Since(began), intakeWait)
		}
		time.AfterFunc(time.Second, first.end)
		must(second, maxPush, time.Second) // as the first one now
		third.end()
		second.end()
		if in.used != 0 || len(in.uploads) != 0 {
			t.Errorf("%d bytes of %d uploads are in use, want none", in.used, len(in.uploads))
		}
	})
}

func TestIntake_EndsItsWaitWithTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newIntake(true)
		in.begin()
		u := in.begin()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := u.take(ctx, intakeRoom+1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want the error of the context", err)
		}
	})
}

// TestIntake_StaysWithinItsRoom lets random uploads come and go: all of them end,
// and never hold more together than the room and what the first one may have.
func TestIntake_StaysWithinItsRoom(t *testing.T) {
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
						t.Errorf("uploads hold %d bytes, %d are counted, %d are allowed", total, in.used, intakeRoom)
					}
					in.mu.Unlock()
					<-time.After(time.Duration(r.IntN(10)) * time.Millisecond)
				}
			})
		}
		wg.Wait()
		if in.used != 0 || len(in.uploads) != 0 {
			t.Errorf("%d bytes of %d uploads are in use, want none", in.used, len(in.uploads))
		}
	})
}
