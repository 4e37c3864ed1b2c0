package provider

import (
	"context"
	"fmt"
	"net/http"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestDo_WaitsForRetryAfter(t *testing.T) {
	for _, wait := range []string{"45", "Fri, 20 Nov 2026 12:00:45 GMT"} {
		for _, status := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
			synctest.Test(t, func(t *testing.T) {
				c, f := newFake(Options{}, func(n int) (*http.Response, error) {
					if n == 1 {
						return reply(status, "", "Retry-After", wait, "Date", "Fri, 20 Nov 2026 12:00:00 GMT"), nil
					}
					return reply(200, "ok"), nil
				})
				if err := c.Do(t.Context(), get, discard); err != nil {
					t.Fatal(err)
				}
				if f.count() != 2 || f.at[1] < 45*time.Second || f.at[1] > 46*time.Second {
					t.Errorf("status %d, Retry-After %s: got requests at %v, want the second after 45s", status, wait, f.at)
				}
			})
		}
	}
}

func TestDo_FailsWhenRetryAfterExceedsPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(Options{Total: 5 * time.Minute, Patience: time.Minute}, func(n int) (*http.Response, error) {
			if n == 1 {
				return reply(429, "", "Retry-After", "120"), nil
			}
			return reply(200, "ok"), nil
		})
		for _, left := range []time.Duration{120 * time.Second, 90 * time.Second, 60 * time.Second} {
			begun := time.Now()
			kind, wait := kindOf(t, c.Do(t.Context(), get, discard))
			if kind != KindRateLimited || wait != left || time.Since(begun) != 0 {
				t.Errorf("got kind %v, wait %v, after %v; want %v, wait %v, immediately", kind, wait, time.Since(begun), KindRateLimited, left)
			}
			time.Sleep(30 * time.Second)
		}
		if err := c.Do(t.Context(), get, discard); err != nil || f.count() != 2 || f.at[1] < 2*time.Minute {
			t.Errorf("got error %v, requests at %v; want the second after 2m", err, f.at)
		}
	})
}

func TestDo_FailsFastDuringLongRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(Options{}, func(n int) (*http.Response, error) {
			if n == 1 {
				return reply(429, "", "Retry-After", "1800"), nil
			}
			return reply(200, "ok"), nil
		})
		for range 3 {
			begun := time.Now()
			kind, wait := kindOf(t, c.Do(t.Context(), get, discard))
			if kind != KindRateLimited || wait < 29*time.Minute || time.Since(begun) != 0 {
				t.Errorf("got kind %v, wait %v, after %v; want %v, at least 29m, immediately", kind, wait, time.Since(begun), KindRateLimited)
			}
			time.Sleep(10 * time.Second)
		}
		if got := time.Until(c.BlockedUntil()); got != 30*time.Minute-30*time.Second {
			t.Errorf("got a block of %v, want 29m30s", got)
		}
		time.Sleep(30*time.Minute - 31*time.Second) // a remaining wait of one second is short enough to wait for
		if err := c.Do(t.Context(), get, discard); err != nil {
			t.Fatal(err)
		}
		if f.count() != 2 || f.at[1] < 30*time.Minute {
			t.Errorf("got requests at %v, want the second after 30m", f.at)
		}
		if until := c.BlockedUntil(); !until.IsZero() {
			t.Errorf("after the wait: got the client blocked until %v, want no block", until)
		}
	})
}

func TestDo_WaitsDefaultAfter429WithoutRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newFake(Options{Total: 90 * time.Second}, func(int) (*http.Response, error) { return reply(429, "null"), nil })
		kind, wait := kindOf(t, c.Do(t.Context(), get, discard))
		if kind != KindRateLimited || wait != DefaultWait {
			t.Errorf("got kind %v, wait %v, want rate limited, the default wait", kind, wait)
		}
		if f.count() != 2 || f.at[1] < DefaultWait {
			t.Errorf("got requests at %v, want two with the default wait between them", f.at)
		}
	})
}

func TestDo_PendingWaitSurvivesClockJumps(t *testing.T) {
	for _, jump := range []time.Duration{time.Hour, -time.Hour, 400 * 24 * time.Hour, -400 * 24 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			var offset time.Duration
			now := func() time.Time { return time.Now().Add(offset).Round(0) }
			c, f := newFake(Options{Now: now}, func(n int) (*http.Response, error) {
				if n == 1 {
					return reply(429, "", "Retry-After", "600"), nil
				}
				return reply(200, ""), nil
			})
			_ = c.Do(t.Context(), get, discard)
			offset = jump
			if got := c.BlockedUntil().Sub(now()); got != 10*time.Minute {
				t.Errorf("jump %v: got a block of %v, want 10m", jump, got)
			}
			if kind, _ := kindOf(t, c.Do(t.Context(), get, discard)); kind != KindRateLimited {
				t.Errorf("jump %v: got kind %v, want %v", jump, kind, KindRateLimited)
			}
			time.Sleep(10 * time.Minute)
			if err := c.Do(t.Context(), get, discard); err != nil || f.count() != 2 {
				t.Errorf("jump %v: after the wait: got error %v, %d requests, want none, 2", jump, err, f.count())
			}
		})
	}
}

func TestDo_BacksOffWithFullJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var limits []time.Duration
		c, f := newFake(Options{Attempts: 9, Pause: time.Millisecond, Total: time.Hour}, func(int) (*http.Response, error) {
			return reply(500, ""), nil
		})
		c.breaker.base = 0 // never opens
		c.jitter = func(limit time.Duration) time.Duration {
			limits = append(limits, limit)
			return limit / 2
		}
		c.breaker.failures = -100
		if kind, _ := kindOf(t, c.Do(t.Context(), get, discard)); kind != KindServer {
			t.Errorf("got kind %v, want server", kind)
		}
		want := []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, maxBackoff, maxBackoff}
		if fmt.Sprint(limits) != fmt.Sprint(want) {
			t.Errorf("got maximum waits %v, want %v", limits, want)
		}
		if f.count() != 9 {
			t.Errorf("got %d requests, want 9", f.count())
		}
	})
}

func TestDo_StopsBeforeTotalOrDeadline(t *testing.T) {
	for _, c := range []struct{ total, deadline time.Duration }{{10 * time.Second, time.Hour}, {time.Hour, 10 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			client, _ := newFake(Options{Total: c.total, Attempts: 100}, func(int) (*http.Response, error) { return nil, syscall.ECONNREFUSED })
			client.breaker.failures = -1000
			ctx, cancel := context.WithTimeout(t.Context(), c.deadline)
			defer cancel()
			begun := time.Now()
			if kind, _ := kindOf(t, client.Do(ctx, get, discard)); kind != KindConnect {
				t.Errorf("got kind %v, want connect", kind)
			}
			if took := time.Since(begun); took > 10*time.Second {
				t.Errorf("got a call of %v, want at most 10s", took)
			}
		})
	}
}
