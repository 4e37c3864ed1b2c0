package provider

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// fakeAllowance returns the given refusals in order and then admits every request.
type fakeAllowance struct {
	refusals    []Refusal
	err         error
	reportErr   error // returned by StoreReported
	downErr     error // returned by Down
	takes       int
	retryAfters []time.Duration
	reported    []Rate
	health      []string
}

func (f *fakeAllowance) Take(context.Context) (r Refusal, err error) {
	f.takes++
	if len(f.refusals) > 0 {
		r, f.refusals = f.refusals[0], f.refusals[1:]
	}
	return r, f.err
}

func (f *fakeAllowance) StoreRetryAfter(_ context.Context, r RetryAfter) (time.Duration, error) {
	f.retryAfters = append(f.retryAfters, min(r.Wait, MaxWait))
	return r.Wait, f.err
}

func (f *fakeAllowance) StoreReported(_ context.Context, r Rate) error {
	f.reported = append(f.reported, r)
	return cmp.Or(f.reportErr, f.err)
}

func (f *fakeAllowance) Down(_ context.Context, why string) error {
	f.health = append(f.health, "down: "+why)
	return f.downErr
}

func (f *fakeAllowance) Up(context.Context) error {
	f.health = append(f.health, "up")
	return nil
}

func ok(int) (*http.Response, error) { return reply(200, "ok"), nil }

func TestAllowance_CountsEveryRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &fakeAllowance{refusals: []Refusal{{Kind: KindBudget, Wait: 3 * time.Second}, {Kind: KindRateLimited, Wait: 5 * time.Second}}}
		c, f := newFake(Options{Allowance: a}, func(n int) (*http.Response, error) {
			switch n {
			case 1:
				return reply(302, "", "Location", "/next"), nil
			case 2:
				return reply(500, ""), nil
			}
			return reply(200, "ok"), nil
		})
		if err := c.Do(t.Context(), get, discard); err != nil {
			t.Fatal(err)
		}
		if f.count() != 3 || a.takes != 2+3 || f.at[0] < 8*time.Second {
			t.Errorf("got %d calls of Take for requests at %v; want 5 calls, no request before 8s", a.takes, f.at)
		}
	})
}

func TestAllowance_ErrorPreventsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &fakeAllowance{err: errors.New("relation does not exist")}
		c, f := newFake(Options{Allowance: a, Limit: Limit{Requests: 1, Per: time.Hour}}, ok)
		begun := time.Now()
		err := c.Do(t.Context(), get, discard)
		kind, wait := kindOf(t, err)
		if kind != KindBudget || wait <= 0 || wait > time.Minute || time.Since(begun) > 0 || f.count() > 0 {
			t.Errorf("got kind %v, wait %v after %v, %d requests; want %v, no request", kind, wait, time.Since(begun), f.count(), KindBudget)
		}
		if e, ok := errors.AsType[*Error](err); !ok || !e.Deferred() || strings.Contains(e.Error(), "relation") {
			t.Errorf("got error %v, want a deferred error without the cause", err)
		}
		a.err = nil
		if err := c.Do(t.Context(), get, discard); err != nil || f.count() != 1 {
			t.Errorf("got error %v, %d requests; want no error, 1 request (the first call sent none)", err, f.count())
		}
	})
}

func TestAllowance_StoresEveryRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &fakeAllowance{}
		c, f := newFake(Options{Allowance: a}, func(n int) (*http.Response, error) {
			switch n {
			case 1:
				return reply(429, "", "Retry-After", "20"), nil
			case 2:
				return reply(429, "", "Retry-After", "99999999999"), nil
			}
			return reply(200, ""), nil
		})
		begun := time.Now()
		kind, _ := kindOf(t, c.Do(t.Context(), get, discard))
		if kind != KindRateLimited || f.count() != 2 || time.Since(begun) < 20*time.Second {
			t.Errorf("got kind %v, requests at %v; want %v, two requests 20s apart", kind, f.at, KindRateLimited)
		}
		if len(a.retryAfters) != 2 || a.retryAfters[0] != 20*time.Second || a.retryAfters[1] != MaxWait {
			t.Errorf("got stored waits %v, want 20s and %v", a.retryAfters, MaxWait)
		}
	})
}

func TestAllowance_RetryAfterOfAnotherProcessApplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &fakeAllowance{refusals: []Refusal{{Kind: KindRateLimited, Wait: time.Hour}}}
		c, f := newFake(Options{Allowance: a}, ok)
		for range 3 {
			if kind, wait := kindOf(t, c.Do(t.Context(), get, discard)); kind != KindRateLimited || wait != time.Hour {
				t.Errorf("got kind %v, wait %v, want rate limited, 1h", kind, wait)
			}
		}
		if a.takes != 1 || f.count() > 0 || c.BlockedUntil().IsZero() {
			t.Errorf("got %d calls of Take, %d requests, blocked until %v; want 1 call, no request", a.takes, f.count(), c.BlockedUntil())
		}
	})
}

func TestAllowance_QuotaErrorNamesItsReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC)
		a := &fakeAllowance{refusals: []Refusal{{Kind: KindBudget, Wait: 90 * time.Hour, Quota: Month, ResetsAt: end}}}
		c, f := newFake(Options{Allowance: a}, ok)
		err := c.Do(t.Context(), get, discard)
		kind, wait := kindOf(t, err)
		if kind != KindBudget || wait != 90*time.Hour || f.count() > 0 {
			t.Errorf("got kind %v, wait %v, want budget, 90h, no request", kind, wait)
		}
		if want := "fake: limit or quota used up: not sent: the quota for the month is used up until 2026-04-01T00:00:00Z"; err.Error() != want {
			t.Errorf("got error %q, want %q", err, want)
		}
	})
}

func TestPeriod_UsesUTCCalendar(t *testing.T) {
	at := time.Date(2026, 12, 31, 23, 30, 0, 0, time.FixedZone("", -3600)) // 2027 in UTC
	for p, want := range map[Period][2]string{Day: {"2027-01-01", "2027-01-02"}, Month: {"2027-01-01", "2027-02-01"}} {
		begin, end := p.Bounds(at)
		if got := [2]string{begin.Format(time.DateOnly), end.Format(time.DateOnly)}; got != want {
			t.Errorf("period %s: got %v, want %v", p, got, want)
		}
	}
}
