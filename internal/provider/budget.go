package provider

import (
	"context"
	"net/http"
	"time"
)

// Limit is a number of requests in any stretch of a period. The zero value is no
// limit.
type Limit struct {
	Requests int
	Per      time.Duration
}

// None reports whether there is no limit.
func (l Limit) None() bool { return l.Requests <= 0 || l.Per <= 0 }

// Stretch is for how long a request counts: a little longer than the period.
// Requests do not all travel at the same speed, so what leaves us a period apart
// may arrive a little closer together.
func (l Limit) Stretch() time.Duration { return l.Per + min(l.Per/25, 250*time.Millisecond) }

// Time returns how long so many requests take at the limit; 0 without one.
func (l Limit) Time(requests int64) time.Duration {
	n := int64(l.Requests)
	if n <= 0 {
		return 0
	}
	// Whole periods and the rest apart: their product with the requests of a year
	// would not fit.
	return time.Duration(requests/n)*l.Per + time.Duration(requests%n)*l.Per/time.Duration(n)
}

// Quota is how many requests a host allows in a day and in a month, both of the
// calendar and UTC. A number of 0 is no quota.
type Quota struct{ Day, Month int64 }

// Period is a stretch of the calendar.
type Period string

// The periods of a quota.
const (
	Day   Period = "day"
	Month Period = "month"
)

// Of returns the quota of a period; 0: it has none.
func (q Quota) Of(p Period) int64 {
	if p == Month {
		return q.Month
	}
	return q.Day
}

// Periods lists those that have a quota, the shorter first.
func (q Quota) Periods() []Period {
	var out []Period
	for _, p := range []Period{Day, Month} {
		if q.Of(p) > 0 {
			out = append(out, p)
		}
	}
	return out
}

// Bounds returns when the period that t lies in begins, and when it ends.
func (p Period) Bounds(t time.Time) (begin, end time.Time) {
	y, m, d := t.UTC().Date()
	if p == Month {
		return time.Date(y, m, 1, 0, 0, 0, 0, time.UTC), time.Date(y, m+1, 1, 0, 0, 0, 0, time.UTC)
	}
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC), time.Date(y, m, d+1, 0, 0, 0, 0, time.UTC)
}

// Allowance is what a host allows all processes together: its limit, its quotas and
// its retry-after. Its methods may be used concurrently.
type Allowance interface {
	// Take counts one request that is about to be sent, or returns why it must not be
	// sent. After an error it must not be sent either.
	Take(ctx context.Context) (Refusal, error)
	// StoreRetryAfter stores, for all processes, that the host demands a wait. It returns how long
	// the wait lasts now.
	StoreRetryAfter(ctx context.Context, o RetryAfter) (time.Duration, error)
	// StoreReported stores, for all processes, the quota that the host reports. Until its reset
	// requests need both this quota and the allowance's own count.
	StoreReported(ctx context.Context, r Rate) error
	// Down stores, for all processes, that the host keeps failing and gets no requests
	// for a while, with a reason for operators. Up stores that it responds. Both may
	// be repeated.
	Down(ctx context.Context, why string) error
	Up(ctx context.Context) error
}

// Refusal is why a request must not be sent now. The zero value allows it.
type Refusal struct {
	Wait     time.Duration // until the next attempt
	Kind     Kind          // KindRateLimited: a retry-after; KindBudget: limit or quota; KindBreaker
	Quota    Period        // that is used up; empty: no quota is
	ResetsAt time.Time     // when that ends
	Err      error         // why the allowance is unavailable
}

const (
	// retryUnavailable is the wait after an Allowance that returned an error.
	retryUnavailable = 5 * time.Second
	// holdTime bounds storing a wait, a quota or a state for all processes.
	holdTime = 5 * time.Second
)

// spend counts a request: in this process first, which is cheap and independent of the
// wall clock, then in the shared allowance.
func (c *Client) spend(ctx context.Context) Refusal {
	now := c.clock()
	if wait := c.limit.take(now); wait > 0 {
		return Refusal{Kind: KindBudget, Wait: wait}
	}
	if wait := c.reported.take(now); wait > 0 {
		c.limit.untake(now)
		return Refusal{Kind: KindBudget, Wait: wait, Quota: c.o.Headers.Period(), ResetsAt: c.o.Now().Add(wait)}
	}
	if c.o.Allowance == nil {
		return Refusal{}
	}
	r, err := c.o.Allowance.Take(ctx)
	if err != nil {
		r = Refusal{Kind: KindBudget, Wait: retryUnavailable, Err: err}
		if ctx.Err() == nil {
			c.o.Logger.Error("rate-limit state unavailable; request not sent", "provider", c.o.Provider, "error", err)
		}
	}
	if r.Wait == 0 {
		return Refusal{}
	}
	c.limit.untake(now)
	c.reported.untake(c.clock())
	if r.Kind == KindRateLimited {
		c.hold.extend(c.clock(), RetryAfter{Wait: r.Wait})
	}
	return r
}

// obey stores the wait that a response demands. It does so before the body is read,
// which may take long, because the process may end at any moment. It reports whether
// the response demanded a wait.
func (c *Client) obey(ctx context.Context, h *hop, resp *http.Response) bool {
	if resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode < http.StatusInternalServerError {
		return false
	}
	wait, stated := retryAfter(resp.Header, c.o.Now())
	if !stated || wait == 0 {
		return false
	}
	if r, ok := rateOf(resp.Header, c.o.Headers, c.o.Limit, c.o.Now()); ok && !h.elsewhere && r.Left == 0 && r.Reset >= wait {
		return false // learn stores the longer wait for the quota next
	}
	if c.o.Classify == nil { // otherwise the body may name a quota as the reason
		c.leaveAlone(ctx, RetryAfter{Wait: wait})
	} else {
		c.storeWait(ctx, RetryAfter{Wait: wait})
	}
	return true
}

// leaveAlone stops all requests of all processes for a while, and returns for how long.
func (c *Client) leaveAlone(ctx context.Context, o RetryAfter) time.Duration {
	wait := c.hold.extend(c.clock(), o)
	if shared := c.storeWait(ctx, o); shared > 0 {
		return c.hold.extend(c.clock(), RetryAfter{Wait: shared})
	}
	return wait
}

// storeWait stores a wait for all processes, and returns how long it lasts now; 0:
// it is not stored.
func (c *Client) storeWait(ctx context.Context, o RetryAfter) time.Duration {
	if c.o.Allowance == nil {
		return 0
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), holdTime)
	defer cancel()
	shared, err := c.o.Allowance.StoreRetryAfter(ctx, o)
	if err != nil {
		c.o.Logger.Error("retry-after not stored; other processes may send requests too early", "provider", c.o.Provider, "error", err)
		return 0
	}
	return shared
}
