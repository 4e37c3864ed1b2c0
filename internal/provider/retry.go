package provider

import (
	"context"
	"errors"
	"time"
)

// maxBackoff bounds the wait between two attempts, orders to wait aside.
const maxBackoff = 30 * time.Second

// retry makes attempts until one succeeds, fails for good, or nothing more fits
// before the deadline.
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
		// Full jitter: callers that failed together do not come back together.
		wait := c.jitter(backoff(c.o.Backoff, n)) + c.hold.remaining(c.clock())
		if c.clock()+wait >= deadline {
			return last
		}
		if err := c.sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// backoff is the longest wait after attempt n: first, and twice as long each
// time.
func backoff(first time.Duration, n int) time.Duration {
	for ; n > 1 && first < maxBackoff; n-- {
		first *= 2
	}
	return min(first, maxBackoff)
}

// lastOr prefers what an attempt failed with over why there is no further one,
// unless the caller went away.
func (c *Client) lastOr(ctx context.Context, last error, refused *Error) error {
	if last == nil || ctx.Err() != nil {
		return refused
	}
	return last
}

// admit waits until a request may be sent. It fails at once when that cannot be
// before the deadline, or when the breaker is open. When it lets pass, the
// outcome must be reported.
func (c *Client) admit(ctx context.Context, deadline time.Duration) (probe bool, err *Error) {
	for {
		if ctx.Err() != nil {
			return false, c.ended(ctx.Err())
		}
		now := c.clock()
		wait, kind := c.hold.remaining(now), KindRateLimited
		if wait == 0 {
			probe, wait = c.breaker.acquire(now)
			kind = KindBreaker
		}
		if wait == 0 {
			wait, kind = c.limit.take(now), KindBudget
			if wait == 0 {
				return probe, nil
			}
			c.breaker.report(now, probe, neutral)
		}
		if kind == KindBreaker || now+wait >= deadline {
			return false, c.deferred(kind, wait)
		}
		if err := c.sleep(ctx, wait); err != nil {
			return false, err
		}
	}
}

// admitHop is admit for a further request of an attempt under way, which the
// breaker let pass already.
func (c *Client) admitHop(ctx context.Context, deadline time.Duration) *Error {
	for {
		now := c.clock()
		wait := c.limit.take(now)
		if wait == 0 {
			return nil
		}
		if now+wait >= deadline {
			return c.deferred(KindBudget, wait)
		}
		if err := c.sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// deferred says that nothing was sent, and why.
func (c *Client) deferred(kind Kind, wait time.Duration) *Error {
	e := &Error{Source: c.o.Source, Kind: kind, RetryAfter: wait}
	switch kind {
	case KindBreaker:
		e.Detail = "not asked: it failed too often of late"
	case KindBudget:
		e.Detail = "not asked: its limit leaves no request in time"
	default:
		e.Detail = "not asked: it wants to be left alone for a while"
	}
	return e
}

// report tells breaker, hold and log what became of an attempt.
func (c *Client) report(probe bool, err error) {
	var e *Error
	if errors.As(err, &e) && e.RetryAfter > 0 && (e.Kind == KindRateLimited || e.Kind == KindServer) && e.Status != 0 {
		c.hold.extend(c.clock(), e.RetryAfter)
		if until := c.BlockedUntil(); c.o.Held != nil && !until.IsZero() {
			c.o.Held(until)
		}
		c.o.Logger.Warn("source wants to be left alone", "source", c.o.Source, "status", e.Status, "seconds", e.RetryAfter.Seconds())
	}
	opened, closed := c.breaker.report(c.clock(), probe, outcomeOf(err))
	switch {
	case opened:
		c.o.Logger.Warn("source keeps failing and is not asked for a while", "source", c.o.Source, "kind", string(e.Kind))
	case closed:
		c.o.Logger.Info("source answers again", "source", c.o.Source)
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
