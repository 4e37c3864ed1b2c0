package provider

import (
	"context"
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
	ResetsAt time.Time     // when the quota resets
	Err      error         // set when the allowance is unavailable
}
