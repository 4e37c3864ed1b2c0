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

// fakeAllowance refuses with what it is given, one after the other, and then lets
// everything pass.
type fakeAllowance struct {
	refusals []Refusal
	err      error
	tellErr  error // of Tell
	asked    int
	held     []time.Duration
	reported []Rate
	standing []string
	deaf     bool // to those
}

func (f *fakeAllowance) Take(context.Context) (r Refusal, err error) {
	f.asked++
	if len(f.refusals) > 0 {
		r, f.refusals = f.refusals[0], f.refusals[1:]
	}
	return r, f.err
}

func (f *fakeAllowance) StoreRetryAfter(_ context.Context, o RetryAfter) (time.Duration, error) {
	f.held = append(f.held, min(o.Wait, MaxWait))
	return o.Wait, f.err
}

func (f *fakeAllowance) StoreReported(_ context.Context, r Rate) error {
	f.reported = append(f.reported, r)
	return cmp.Or(f.tellErr, f.err)
}

func (f *fakeAllowance) Down(_ context.Context, why string) error {
	f.standing = append(f.standing, "down: "+why)
	if f.deaf {
		return errors.New("no database")
	}
	return nil
}

func (f *fakeAllowance) Up(context.Context) error {
	f.standing = append(f.standing, "up")
	return nil
}

func ok(int) (*http.Response, error) { return reply(200, "ok"), nil }

func TestAllowance_IsAskedBeforeEveryRequest(t *testing.T) {
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
		if f.count() != 3 || a.asked != 2+3 || f.at[0] < 8*time.Second {
			t.Errorf("asked %d times for requests at %v; want each, and none before 8s", a.asked, f.at)
		}
	})
}

func TestAllowance_ThatCannotBeAskedLetsNothingPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &fakeAllowance{err: errors.New("relation does not exist")}
		c, f := newFake(Options{Allowance: a, Limit: Limit{Requests: 1, Per: time.Hour}}, ok)
		begun := time.Now()
		err := c.Do(t.Context(), get, discard)
		kind, wait := kindOf(t, err)
		if kind != KindBudget || wait <= 0 || wait > time.Minute || time.Since(begun) > 0 || f.count() > 0 {
			t.Errorf("kind %v, wait %v after %v, %d sent", kind, wait, time.Since(begun), f.count())
		}
		if e, ok := errors.AsType[*Error](err); !ok || !e.Deferred() || strings.Contains(e.Error(), "relation") {
			t.Errorf("error %v", err)
		}
		a.err = nil
		if err := c.Do(t.Context(), get, discard); err != nil || f.count() != 1 {
			t.Errorf("error %v, %d sent: what was not sent must not count", err, f.count())
		}
	})
}

func TestAllowance_IsToldOfOrdersBeforeAnythingWaits(t *testing.T) {
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
			t.Errorf("kind %v, asked at %v", kind, f.at)
		}
		if len(a.held) != 2 || a.held[0] != 20*time.Second || a.held[1] != MaxWait {
			t.Errorf("told of %v", a.held)
		}
	})
}

func TestAllowance_OrderThatAnotherProcessGotIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &fakeAllowance{refusals: []Refusal{{Kind: KindRateLimited, Wait: time.Hour}}}
		c, f := newFake(Options{Allowance: a}, ok)
		for range 3 {
			if kind, wait := kindOf(t, c.Do(t.Context(), get, discard)); kind != KindRateLimited || wait != time.Hour {
				t.Errorf("kind %v, wait %v", kind, wait)
			}
		}
		if a.asked != 1 || f.count() > 0 || c.BlockedUntil().IsZero() {
			t.Errorf("asked %d times, %d sent, blocked until %v", a.asked, f.count(), c.BlockedUntil())
		}
	})
}

func TestAllowance_QuotaIsToldWithItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC)
		a := &fakeAllowance{refusals: []Refusal{{Kind: KindBudget, Wait: 90 * time.Hour, Quota: Month, ResetsAt: end}}}
		c, f := newFake(Options{Allowance: a}, ok)
		err := c.Do(t.Context(), get, discard)
		kind, wait := kindOf(t, err)
		if kind != KindBudget || wait != 90*time.Hour || f.count() > 0 {
			t.Errorf("kind %v, wait %v", kind, wait)
		}
		if want := "fake: budget: not sent: the quota for the month is used up until 2026-04-01T00:00:00Z"; err.Error() != want {
			t.Errorf("%q, want %q", err, want)
		}
	})
}

func TestPeriod_IsOfTheCalendarInUTC(t *testing.T) {
	at := time.Date(2026, 12, 31, 23, 30, 0, 0, time.FixedZone("", -3600)) // already 2027
	for p, want := range map[Period][2]string{Day: {"2027-01-01", "2027-01-02"}, Month: {"2027-01-01", "2027-02-01"}} {
		begin, end := p.Bounds(at)
		if got := [2]string{begin.Format(time.DateOnly), end.Format(time.DateOnly)}; got != want {
			t.Errorf("%s: %v, want %v", p, got, want)
		}
	}
}
