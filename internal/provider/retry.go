package provider

import (
	"context"
	"errors"
	"time"
)

// maxBackoff bounds the wait between two attempts, except a retry-after.
const maxBackoff = 30 * time.Second

// retry makes attempts until one succeeds, one fails permanently, or no further attempt
// fits before the deadline.
func (c *Client) retry(ctx context.Context, deadline time.Duration, attempt func(n int, probe bool) error) error {
	var last error
	for n := 1; ; n++ {
		probe, err := c.admit(ctx, deadline)
		if err != nil {
			return c.lastOr(ctx, last, err)
		}
		last = attempt(n, probe)
		var e *Error
		if last == nil || !errors.As(last, &e) || !retried(e.Kind) {
			return last
		}
		if ctx.Err() != nil {
			return c.ended(ctx.Err())
		}
		if n >= c.o.Attempts {
			return last
		}
		// Full jitter: calls that failed together retry at different times.
		held := c.hold.remaining(c.clock())
		wait := c.jitter(backoff(c.o.Backoff, n)) + held
		if c.beyondPatience(held) || c.clock()+wait >= deadline {
			return last
		}
		if err := c.sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// backoff returns the longest wait after attempt n. It starts at first and doubles each
// time.
func backoff(first time.Duration, n int) time.Duration {
	for ; n > 1 && first < maxBackoff; n-- {
		first *= 2
	}
	return min(first, maxBackoff)
}

// lastOr returns the error of the last attempt rather than the reason against another one,
// unless the caller cancelled the request.
func (c *Client) lastOr(ctx context.Context, last error, refused *Error) error {
	if last == nil || ctx.Err() != nil {
		return refused
	}
	return last
}

// admit waits until a request may be sent. It fails at once if that is after the deadline,
// if a retry-after exceeds Options.Patience, or if the breaker is open. After a nil error
// the caller must report the outcome.
func (c *Client) admit(ctx context.Context, deadline time.Duration) (probe bool, err *Error) {
	for {
		if ctx.Err() != nil {
			return false, c.ended(ctx.Err())
		}
		now := c.clock()
		r := Refusal{Kind: KindRateLimited, Wait: c.hold.remaining(now)}
		if r.Wait == 0 {
			r.Kind = KindBreaker
			probe, r.Wait = c.breaker.acquire(now)
		}
		if r.Wait == 0 {
			if r = c.spend(ctx); r.Wait == 0 {
				return probe, nil
			}
			c.breaker.report(c.clock(), probe, neutral)
		}
		if err := c.waitFor(ctx, deadline, r); err != nil {
			return false, err
		}
	}
}

// admitHop is admit for a redirect within an attempt that the breaker has already admitted.
func (c *Client) admitHop(ctx context.Context, deadline time.Duration) *Error {
	for {
		r := c.spend(ctx)
		if r.Wait == 0 {
			return nil
		}
		if err := c.waitFor(ctx, deadline, r); err != nil {
			return err
		}
	}
}

// waitFor waits as r demands, or fails if that is too late.
func (c *Client) waitFor(ctx context.Context, deadline time.Duration, r Refusal) *Error {
	late := c.clock()+r.Wait >= deadline || (r.Kind == KindRateLimited && c.beyondPatience(r.Wait))
	if r.Kind == KindBreaker || r.Err != nil || late {
		return c.deferred(ctx, r)
	}
	return c.sleep(ctx, r.Wait)
}

// beyondPatience reports whether a retry-after is too long to wait for.
func (c *Client) beyondPatience(held time.Duration) bool {
	return c.o.Patience > 0 && held >= c.o.Patience
}

// deferred returns the error for a request that was not sent.
func (c *Client) deferred(ctx context.Context, r Refusal) *Error {
	if ctx.Err() != nil {
		return c.ended(ctx.Err())
	}
	e := &Error{Provider: c.o.Provider, Kind: r.Kind, RetryAfter: r.Wait, Err: r.Err}
	switch {
	case r.Err != nil:
		e.Detail = "not sent: rate-limit state unavailable"
	case r.Quota != "":
		e.Detail = "not sent: the quota for the " + string(r.Quota) + " is used up until " + r.ResetsAt.UTC().Format(time.RFC3339)
	case r.Kind == KindBreaker:
		e.Detail = "not sent: circuit breaker open after repeated failures"
	case r.Kind == KindBudget:
		e.Detail = "not sent: the rate limit allows no request before the deadline"
	default:
		e.Detail = "not sent: the provider demanded a wait (Retry-After)"
	}
	return e
}

// report passes the outcome of an attempt to the breaker, the hold, the log and the other
// processes.
func (c *Client) report(ctx context.Context, probe bool, err error) {
	var e *Error
	if errors.As(err, &e) && e.RetryAfter > 0 && (e.Kind == KindRateLimited || e.Kind == KindServer) && e.Status != 0 {
		order := RetryAfter{Wait: e.RetryAfter}
		if e.unstated {
			order.Most = c.o.MostWait
		}
		switch left := c.hold.remaining(c.clock()); {
		case e.held && left > 0:
			e.RetryAfter = (left + time.Second - 1).Truncate(time.Second) // stored when the header arrived
		case e.held:
			e.RetryAfter = c.hold.extend(c.clock(), order)
		default:
			e.RetryAfter = c.pauseAll(ctx, order)
		}
		c.o.Logger.Warn("provider demands wait", "provider", c.o.Provider, "status", e.Status, "seconds", e.RetryAfter.Seconds())
	}
	outcome := outcomeOf(err)
	opened, closed := c.breaker.report(c.clock(), probe, outcome)
	c.shareHealth(ctx, outcome == answered, KindOf(err))
	switch {
	case opened:
		c.o.Logger.Warn("circuit breaker opened", "provider", c.o.Provider, "kind", string(e.Kind))
	case closed:
		c.o.Logger.Info("circuit breaker closed", "provider", c.o.Provider)
	}
}

func (c *Client) sleep(ctx context.Context, d time.Duration) *Error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return c.ended(ctx.Err())
	case <-timer.C:
		return nil
	}
}
