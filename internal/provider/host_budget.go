package provider

import (
	"context"
	"net/http"
	"time"
)

const (
	// retryUnavailable is the wait before a retry after an Allowance error.
	retryUnavailable = 5 * time.Second
	// storeTimeout is the timeout for storing a wait, a quota or a health state.
	storeTimeout = 5 * time.Second
)

// hostBudget is the budget of a Client's host: the limit, the reported quota and the retry-after
// of this process, and the Allowance that all processes share. Its times are readings of a
// monotonic clock.
type hostBudget struct {
	classifier
	start     time.Time // origin of the monotonic clock
	limit     *window
	reported  reportedQuota
	retryWait retryWait
}

// clock reads the monotonic clock. All waits use it, because the wall clock may jump.
func (b *hostBudget) clock() time.Duration { return time.Since(b.start) }

// usage returns the used and the remaining requests.
func (b *hostBudget) usage(now time.Duration, wall time.Time) Budget {
	out := Budget{Limit: b.o.Limit, Reported: b.reported.state(now, wall, b.o.Headers)}
	used, reset := b.limit.state(now)
	if used == 0 {
		out.Left = out.Limit.Requests
		return out
	}
	out.Used, out.Left, out.ResetsAt = used, out.Limit.Requests-used, wall.Add(reset)
	return out
}

// spend counts a request against the limit of this process and then against the shared
// allowance. The local check comes first because it is cheap and independent of the wall
// clock.
func (b *hostBudget) spend(ctx context.Context) Refusal {
	now := b.clock()
	if wait := b.limit.take(now); wait > 0 {
		return Refusal{Kind: KindBudget, Wait: wait}
	}
	if wait := b.reported.take(now); wait > 0 {
		b.limit.untake(now)
		return Refusal{Kind: KindBudget, Wait: wait, Quota: b.o.Headers.Period(), ResetsAt: b.o.Now().Add(wait)}
	}
	if b.o.Allowance == nil {
		return Refusal{}
	}
	r, err := b.o.Allowance.Take(ctx)
	if err != nil {
		r = Refusal{Kind: KindBudget, Wait: retryUnavailable, Err: err}
		if ctx.Err() == nil {
			b.o.Logger.Error("rate-limit state unavailable; request not sent", "provider", b.o.Provider, "error", err)
		}
	}
	if r.Wait == 0 {
		return Refusal{}
	}
	b.limit.untake(now)
	b.reported.untake(b.clock())
	if r.Kind == KindRateLimited {
		b.retryWait.extend(b.clock(), RetryAfter{Wait: r.Wait})
	}
	return r
}

// storeRetryAfter stores the wait that a response demands. It reports whether the response demands
// one. It runs before the body is read, because reading takes time and the process may crash
// meanwhile.
func (b *hostBudget) storeRetryAfter(ctx context.Context, h *hop, resp *http.Response) bool {
	if resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode < http.StatusInternalServerError {
		return false
	}
	wait, found := parseRetryAfter(resp.Header, b.o.Now())
	if !found || wait == 0 {
		return false
	}
	if r, ok := rateOf(resp.Header, b.o.Headers, b.o.Limit, b.o.Now()); ok && !h.otherHost && r.Left == 0 && r.Reset >= wait {
		return false // storeRateHeaders stores the longer wait until the quota resets
	}
	if b.o.Classify == nil { // with Classify, the body may show that a quota is exhausted
		b.pauseAll(ctx, RetryAfter{Wait: wait})
	} else {
		b.storeWait(ctx, RetryAfter{Wait: wait})
	}
	return true
}

// pauseAll stops the requests of all processes for a while. It returns the remaining wait.
func (b *hostBudget) pauseAll(ctx context.Context, r RetryAfter) time.Duration {
	wait := b.retryWait.extend(b.clock(), r)
	if shared := b.storeWait(ctx, r); shared > 0 {
		return b.retryWait.extend(b.clock(), RetryAfter{Wait: shared})
	}
	return wait
}

// storeWait stores a wait for all processes and returns the remaining wait. It returns 0 if
// storing fails.
func (b *hostBudget) storeWait(ctx context.Context, r RetryAfter) time.Duration {
	if b.o.Allowance == nil {
		return 0
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	shared, err := b.o.Allowance.StoreRetryAfter(ctx, r)
	if err != nil {
		b.o.Logger.Error("retry-after not stored; other processes may send requests too early", "provider", b.o.Provider, "error", err)
		return 0
	}
	return shared
}
