package provider

import (
	"context"
	"errors"
	"time"
)

// maxBackoff limits the wait between two attempts. It does not limit a retry-after.
const maxBackoff = 30 * time.Second

// retry makes attempts until one succeeds, one fails permanently, or the next one would start
// after the deadline.
func (c *Client) retry(ctx context.Context, deadline time.Duration, attempt func(n int, probe bool) error) error {
	var last error
	for n := 1; ; n++ {
		probe, err := c.admit(ctx, deadline)
		if err != nil {
			return c.lastErrorOr(ctx, last, err)
		}
		last = attempt(n, probe)
		var e *Error
		if last == nil || !errors.As(last, &e) || !retryable(e.Kind) {
			return last
		}
		if ctx.Err() != nil {
			return c.ended(ctx.Err())
		}
		if n >= c.o.Attempts {
			return last
		}
		// The jitter makes calls that failed together retry at different times.
		remaining := c.retryWait.remaining(c.clock())
		wait := c.jitter(backoff(c.o.Backoff, n)) + remaining
		if c.beyondPatience(remaining) || c.clock()+wait >= deadline {
			return last
		}
		if err := c.sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// backoff returns the longest wait after attempt n. It starts at first and doubles each time.
func backoff(first time.Duration, n int) time.Duration {
	for ; n > 1 && first < maxBackoff; n-- {
		first *= 2
	}
	return min(first, maxBackoff)
}

// lastErrorOr returns the error of the last attempt. It returns the refusal of the next attempt if
// there was no attempt or the caller cancelled the request.
func (c *Client) lastErrorOr(ctx context.Context, last error, refused *Error) error {
	if last == nil || ctx.Err() != nil {
		return refused
	}
	return last
}

// admit waits until a request may be sent. It fails immediately if the wait passes the
// deadline, if a retry-after exceeds Options.Patience, or if the breaker is open. After a nil
// error the caller must report the outcome.
func (c *Client) admit(ctx context.Context, deadline time.Duration) (probe bool, err *Error) {
	for {
		if ctx.Err() != nil {
			return false, c.ended(ctx.Err())
		}
		now := c.clock()
		r := Refusal{Kind: KindRateLimited, Wait: c.retryWait.remaining(now)}
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

// admitHop is admit for a redirect. The breaker has already admitted the attempt.
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

// waitFor waits as long as r requires. It fails immediately if the wait is too long.
func (c *Client) waitFor(ctx context.Context, deadline time.Duration, r Refusal) *Error {
	late := c.clock()+r.Wait >= deadline || (r.Kind == KindRateLimited && c.beyondPatience(r.Wait))
	if r.Kind == KindBreaker || r.Err != nil || late {
		return c.deferred(ctx, r)
	}
	return c.sleep(ctx, r.Wait)
}

// beyondPatience reports whether a retry-after is too long to wait for.
func (c *Client) beyondPatience(remaining time.Duration) bool {
	return c.o.Patience > 0 && remaining >= c.o.Patience
}

// report passes the outcome of an attempt to the breaker and the log, and shares it with other
// processes.
func (c *Client) report(ctx context.Context, probe bool, err error) {
	var e *Error
	if errors.As(err, &e) && e.RetryAfter > 0 && (e.Kind == KindRateLimited || e.Kind == KindServer) && e.Status != 0 {
		demand := RetryAfter{Wait: e.RetryAfter}
		if e.defaultWait {
			demand.Most = c.o.MostWait
		}
		switch left := c.retryWait.remaining(c.clock()); {
		case e.waitStored && left > 0:
			e.RetryAfter = (left + time.Second - 1).Truncate(time.Second) // stored when the header arrived
		case e.waitStored:
			e.RetryAfter = c.retryWait.extend(c.clock(), demand)
		default:
			e.RetryAfter = c.pauseAll(ctx, demand)
		}
		c.o.Logger.Warn("provider demands wait", "provider", c.o.Provider, "status", e.Status, "seconds", e.RetryAfter.Seconds())
	}
	outcome := outcomeOf(err)
	opened, closed := c.breaker.report(c.clock(), probe, outcome)
	c.shareHealth(ctx, outcome == responded, KindOf(err))
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
