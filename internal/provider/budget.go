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

// Allowance is what a host allows all processes together that ask it: its limit,
// its quotas and its orders to wait. Its methods may be used concurrently.
type Allowance interface {
	// Take counts one request that is about to be sent, or says why it may not be.
	// After an error, too, it must not be sent.
	Take(ctx context.Context) (Refusal, error)
	// Hold notes, for everybody, that the host wants to be left alone, and returns for
	// how long that is now.
	Hold(ctx context.Context, o Order) (time.Duration, error)
	// Tell notes, for everybody, what the host says it leaves. Until its reset no
	// more is let through than that, nor more than the allowance's own count leaves.
	Tell(ctx context.Context, r Rate) error
	// Down notes, for everybody, that the host keeps failing and is not asked for a
	// while, with a reason for people; Up that it answers. Either may be said again.
	Down(ctx context.Context, why string) error
	Up(ctx context.Context) error
}

// Refusal says why a request may not be sent now. The zero value lets it pass.
type Refusal struct {
	Wait     time.Duration // until it may be worth asking again
	Kind     Kind          // KindRateLimited: an order to wait; KindBudget: limit or quota; KindBreaker
	Quota    Period        // which is used up; empty: it is not for a quota
	ResetsAt time.Time     // when that ends
	Err      error         // why nobody can tell
}

const (
	// untold is when to ask again after an Allowance that could not be asked.
	untold = 5 * time.Second
	// holdTime is how long it may take to tell everybody of an order to wait.
	holdTime = 5 * time.Second
)

// spend counts a request: with this process first, which costs nothing and knows
// no wall clock, then with all that share the allowance.
func (c *Client) spend(ctx context.Context) Refusal {
	now := c.clock()
	if wait := c.limit.take(now); wait > 0 {
		return Refusal{Kind: KindBudget, Wait: wait}
	}
	if wait := c.told.take(now); wait > 0 {
		c.limit.untake(now)
		return Refusal{Kind: KindBudget, Wait: wait, Quota: c.o.Headers.Period(), ResetsAt: c.o.Now().Add(wait)}
	}
	if c.o.Allowance == nil {
		return Refusal{}
	}
	r, err := c.o.Allowance.Take(ctx)
	if err != nil {
		r = Refusal{Kind: KindBudget, Wait: untold, Err: err}
		if ctx.Err() == nil {
			c.o.Logger.Error("budget cannot be told, so the source is not asked", "source", c.o.Source, "error", err)
		}
	}
	if r.Wait == 0 {
		return Refusal{}
	}
	c.limit.untake(now)
	c.told.untake(c.clock())
	if r.Kind == KindRateLimited {
		c.hold.extend(c.clock(), Order{Wait: r.Wait})
	}
	return r
}

// obey stores the wait that a response demands, before anything else is done with
// the response: a body may take its time, and the process may end any moment. It
// reports whether there was such a wait.
func (c *Client) obey(ctx context.Context, h *hop, resp *http.Response) bool {
	if resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode < http.StatusInternalServerError {
		return false
	}
	wait, stated := retryAfter(resp.Header, c.o.Now())
	if !stated || wait == 0 {
		return false
	}
	if r, ok := rateOf(resp.Header, c.o.Headers, c.o.Limit, c.o.Now()); ok && !h.elsewhere && r.Left == 0 && r.Reset >= wait {
		return false // learn stores next that nothing is left for longer than that
	}
	if c.o.Judge == nil { // otherwise the body may say that it is a quota, which is another reason
		c.leaveAlone(ctx, Order{Wait: wait})
	} else {
		c.storeWait(ctx, Order{Wait: wait})
	}
	return true
}

// leaveAlone keeps everybody from the source for a while, and returns for how long.
func (c *Client) leaveAlone(ctx context.Context, o Order) time.Duration {
	wait := c.hold.extend(c.clock(), o)
	if everybody := c.storeWait(ctx, o); everybody > 0 {
		return c.hold.extend(c.clock(), Order{Wait: everybody})
	}
	return wait
}

// storeWait stores a wait for all processes, and returns how long it lasts now; 0:
// it is not stored.
func (c *Client) storeWait(ctx context.Context, o Order) time.Duration {
	if c.o.Allowance == nil {
		return 0
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), holdTime)
	defer cancel()
	everybody, err := c.o.Allowance.Hold(ctx, o)
	if err != nil {
		c.o.Logger.Error("order to wait not stored: others may ask the source too early, and so may a restart", "source", c.o.Source, "error", err)
		return 0
	}
	return everybody
}
