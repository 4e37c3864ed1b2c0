package provider

import (
	"context"
	"net/http"
	"time"
)

// Limit is a number of requests within any interval of length Per. The zero value is no
// limit.
type Limit struct {
	Requests int
	Per      time.Duration
}

// None reports whether there is no limit.
func (l Limit) None() bool { return l.Requests <= 0 || l.Per <= 0 }

// Stretch is how long a request counts against the limit: a little longer than the period.
// Latency varies, so requests sent one period apart may arrive closer together.
func (l Limit) Stretch() time.Duration { return l.Per + min(l.Per/25, 250*time.Millisecond) }

// Time returns how long that many requests take at the limit; 0 without a limit.
func (l Limit) Time(requests int64) time.Duration {
	n := int64(l.Requests)
	if n <= 0 {
		return 0
	}
	// Compute whole periods and the remainder separately: one product could overflow.
	return time.Duration(requests/n)*l.Per + time.Duration(requests%n)*l.Per/time.Duration(n)
}

// Quota is how many requests a host allows per calendar day and month, in UTC. 0 means no
// quota.
type Quota struct{ Day, Month int64 }

// Period is a calendar period.
type Period string

// The periods of a quota.
const (
	Day   Period = "day"
	Month Period = "month"
)

// Of returns the quota of a period; 0 means none.
func (q Quota) Of(p Period) int64 {
	if p == Month {
		return q.Month
	}
	return q.Day
}

// Periods returns the periods that have a quota, the shorter first.
func (q Quota) Periods() []Period {
	var out []Period
	for _, p := range []Period{Day, Month} {
		if q.Of(p) > 0 {
			out = append(out, p)
		}
	}
	return out
}

// Bounds returns the begin and the end of the period that contains t.
func (p Period) Bounds(t time.Time) (begin, end time.Time) {
	y, m, d := t.UTC().Date()
	if p == Month {
		return time.Date(y, m, 1, 0, 0, 0, 0, time.UTC), time.Date(y, m+1, 1, 0, 0, 0, 0, time.UTC)
	}
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC), time.Date(y, m, d+1, 0, 0, 0, 0, time.UTC)
}

// Allowance is the budget of a host that all processes share: its limit, its quotas and its
// retry-after. Its methods may be called concurrently.
type Allowance interface {
	// Take counts one request that is about to be sent. If it returns a Refusal or an
	// error, the request must not be sent.
	Take(ctx context.Context) (Refusal, error)
	// StoreRetryAfter stores a wait that the host demands, for all processes. It returns
	// the remaining wait.
	StoreRetryAfter(ctx context.Context, o RetryAfter) (time.Duration, error)
	// StoreReported stores the quota that the host reports, for all processes. Until its
	// reset, a request needs both this quota and the allowance's own count.
	StoreReported(ctx context.Context, r Rate) error
	// Down stores, for all processes, that the host keeps failing and gets no requests for
	// a while; why is for operators. Up stores that the host responds again. Both are
	// idempotent.
	Down(ctx context.Context, why string) error
	Up(ctx context.Context) error
}

// Refusal is the reason why a request must not be sent now. The zero value allows it.
type Refusal struct {
	Wait     time.Duration // until the next attempt
	Kind     Kind          // KindRateLimited: a retry-after; KindBudget: limit or quota; KindBreaker
	Quota    Period        // the quota that is used up; empty: none
	ResetsAt time.Time     // when the quota renews
	Err      error         // set when the allowance is unavailable
}

const (
	// retryUnavailable is the wait after an error of the Allowance.
	retryUnavailable = 5 * time.Second
	// holdTime is the timeout for storing a wait, a quota or a health state.
	holdTime = 5 * time.Second
)

// spend counts a request against the limit of this process first, which is cheap and
// independent of the wall clock, then against the shared allowance.
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

// storeDemand stores the wait that a response demands and reports whether it demands one.
// It runs before the body is read, which may take long, because the process may crash
// meanwhile.
func (c *Client) storeDemand(ctx context.Context, h *hop, resp *http.Response) bool {
	if resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode < http.StatusInternalServerError {
		return false
	}
	wait, stated := retryAfter(resp.Header, c.o.Now())
	if !stated || wait == 0 {
		return false
	}
	if r, ok := rateOf(resp.Header, c.o.Headers, c.o.Limit, c.o.Now()); ok && !h.otherHost && r.Left == 0 && r.Reset >= wait {
		return false // learn stores the longer wait for the quota next
	}
	if c.o.Classify == nil { // otherwise the body may show that a quota is used up
		c.pauseAll(ctx, RetryAfter{Wait: wait})
	} else {
		c.storeWait(ctx, RetryAfter{Wait: wait})
	}
	return true
}

// pauseAll stops the requests of all processes for a while and returns for how long.
func (c *Client) pauseAll(ctx context.Context, o RetryAfter) time.Duration {
	wait := c.hold.extend(c.clock(), o)
	if shared := c.storeWait(ctx, o); shared > 0 {
		return c.hold.extend(c.clock(), RetryAfter{Wait: shared})
	}
	return wait
}

// storeWait stores a wait for all processes and returns how long it lasts now; 0 if it
// could not be stored.
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
