package provider

import (
	"context"
	"net/http"
	"time"
)

// Limit allows Requests requests within any interval of length Per. The zero value means no
// limit.
type Limit struct {
	Requests int
	Per      time.Duration
}

// None reports whether there is no limit.
func (l Limit) None() bool { return l.Requests <= 0 || l.Per <= 0 }

// Stretch returns how long a request counts against the limit. It is a little longer than Per.
// Latency varies, so requests sent Per apart may arrive closer together.
func (l Limit) Stretch() time.Duration { return l.Per + min(l.Per/25, 250*time.Millisecond) }

// Time returns how long n requests take at the limit. It returns 0 without a limit.
func (l Limit) Time(n int64) time.Duration {
	limit := int64(l.Requests)
	if limit <= 0 {
		return 0
	}
	// Compute whole periods and the remainder separately, because a single product could
	// overflow.
	return time.Duration(n/limit)*l.Per + time.Duration(n%limit)*l.Per/time.Duration(limit)
}

// Quota is the number of requests that a host allows per calendar day and month in UTC. 0
// means no quota.
type Quota struct{ Day, Month int64 }

// Period is a calendar day or month in UTC.
type Period string

// The periods of a quota.
const (
	Day   Period = "day"
	Month Period = "month"
)

// Of returns the quota of a period, or 0 if there is none.
func (q Quota) Of(p Period) int64 {
	if p == Month {
		return q.Month
	}
	return q.Day
}

// Periods returns the periods that have a quota, shortest first.
func (q Quota) Periods() []Period {
	var out []Period
	for _, p := range []Period{Day, Month} {
		if q.Of(p) > 0 {
			out = append(out, p)
		}
	}
	return out
}

// Bounds returns the start and the end of the period that contains t.
func (p Period) Bounds(t time.Time) (begin, end time.Time) {
	y, m, d := t.UTC().Date()
	if p == Month {
		return time.Date(y, m, 1, 0, 0, 0, 0, time.UTC), time.Date(y, m+1, 1, 0, 0, 0, 0, time.UTC)
	}
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC), time.Date(y, m, d+1, 0, 0, 0, 0, time.UTC)
}

// Allowance is the budget of a host: its limit, quotas and retry-after. All processes share
// it. Its methods may be called concurrently.
type Allowance interface {
	// Take counts one request that is about to be sent. The request must not be sent if Take
	// returns a Refusal with a Wait, or an error.
	Take(ctx context.Context) (Refusal, error)
	// StoreRetryAfter stores a retry-after of the host for all processes. It returns the
	// remaining wait.
	StoreRetryAfter(ctx context.Context, r RetryAfter) (time.Duration, error)
	// StoreReported stores the quota that the host reports, for all processes. Until that
	// quota resets, Take checks both this quota and the requests that the allowance counted.
	StoreReported(ctx context.Context, r Rate) error
	// Down stores for all processes that the host keeps failing. The host then gets no
	// requests for a while. The text why is for operators. Up stores that the host responds
	// again. Both methods are idempotent.
	Down(ctx context.Context, why string) error
	Up(ctx context.Context) error
}

// Refusal is the reason why a request must not be sent now. The zero value means that it may
// be sent.
type Refusal struct {
	Wait     time.Duration // until the next attempt
	Kind     Kind          // KindRateLimited: retry-after; KindBudget: limit or quota; KindBreaker: circuit breaker
	Quota    Period        // the exhausted quota; empty: none
	ResetsAt time.Time     // when the quota renews
	Err      error         // set when the allowance is unavailable
}

const (
	// retryUnavailable is the wait before a retry after an Allowance error.
	retryUnavailable = 5 * time.Second
	// storeTimeout is the timeout for storing a wait, a quota or a health state.
	storeTimeout = 5 * time.Second
)

// spend counts a request against the limit of this process and then against the shared
// allowance. The local check comes first because it is cheap and independent of the wall
// clock.
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
		c.retryWait.extend(c.clock(), RetryAfter{Wait: r.Wait})
	}
	return r
}

// storeDemand stores the wait that a response demands. It reports whether the response demands
// one. It runs before the body is read, because reading takes time and the process may crash
// meanwhile.
func (c *Client) storeDemand(ctx context.Context, h *hop, resp *http.Response) bool {
	if resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode < http.StatusInternalServerError {
		return false
	}
	wait, found := parseRetryAfter(resp.Header, c.o.Now())
	if !found || wait == 0 {
		return false
	}
	if r, ok := rateOf(resp.Header, c.o.Headers, c.o.Limit, c.o.Now()); ok && !h.otherHost && r.Left == 0 && r.Reset >= wait {
		return false // storeRateHeaders stores the longer wait until the quota resets
	}
	if c.o.Classify == nil { // with Classify, the body may show that a quota is exhausted
		c.pauseAll(ctx, RetryAfter{Wait: wait})
	} else {
		c.storeWait(ctx, RetryAfter{Wait: wait})
	}
	return true
}

// pauseAll stops the requests of all processes for a while. It returns the remaining wait.
func (c *Client) pauseAll(ctx context.Context, r RetryAfter) time.Duration {
	wait := c.retryWait.extend(c.clock(), r)
	if shared := c.storeWait(ctx, r); shared > 0 {
		return c.retryWait.extend(c.clock(), RetryAfter{Wait: shared})
	}
	return wait
}

// storeWait stores a wait for all processes and returns the remaining wait. It returns 0 if
// storing fails.
func (c *Client) storeWait(ctx context.Context, r RetryAfter) time.Duration {
	if c.o.Allowance == nil {
		return 0
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	shared, err := c.o.Allowance.StoreRetryAfter(ctx, r)
	if err != nil {
		c.o.Logger.Error("retry-after not stored; other processes may send requests too early", "provider", c.o.Provider, "error", err)
		return 0
	}
	return shared
}
