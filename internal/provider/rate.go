package provider

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Headers is the budget that the rate headers of a host's responses describe:
// RateLimit-Limit, -Remaining and -Reset, and the same with X- before it. Names with
// a further ending (X-RateLimit-Remaining-Second) are not read.
type Headers string

// The budgets that rate headers may describe.
const (
	HeadersOfLimit Headers = ""        // the host's limit, or a window of no more than a day that the headers alone know
	HeadersOfDay   Headers = "day"     // the day's quota
	HeadersOfMonth Headers = "month"   // the month's quota
	HeadersIgnored Headers = "ignored" // no budget of ours: they count other requests, or those of another key
)

// Period returns the period of the quota that the headers describe; empty: no quota.
func (h Headers) Period() Period {
	switch h {
	case HeadersOfDay:
		return Day
	case HeadersOfMonth:
		return Month
	default:
		return ""
	}
}

// longest is the longest accepted time to a reset.
func (h Headers) longest() time.Duration {
	if h == HeadersOfMonth {
		return 31 * 24 * time.Hour
	}
	return MaxWait
}

// Rate is the quota in the headers of one response: Left of Limit requests until Reset has
// passed.
type Rate struct {
	Limit int64 // 0: not reported
	Left  int64
	Reset time.Duration // above 0
}

// ReportedQuota is the quota that the latest responses reported, less the requests sent
// since. It ends with its reset.
type ReportedQuota struct {
	Limit    int64 // 0: not reported
	Left     int64
	At       time.Time // time of the latest response that reported it
	ResetsAt time.Time
	Period   Period   // the quota it describes; empty: a limit
	Forecast Forecast // of a window that lasts longer than an hour; else zero
}

// SameReset is the largest difference between the resets of two responses for the same
// window. Resets are whole seconds, and latency varies.
const SameReset = 2 * time.Second

// maxReported is the largest accepted number.
const maxReported = 1_000_000_000_000

// rateOf reads the rate headers of a response. Of two sets it takes the one that leaves
// less. It ignores impossible values: not a number, a limit of 0, more left than the limit,
// a reset in the past or too far ahead. It also ignores the headers of a cached response,
// because they describe an earlier moment.
func rateOf(h http.Header, about Headers, limit Limit, wall time.Time) (rate Rate, ok bool) {
	if age := h.Get("Age"); about == HeadersIgnored || age != "" && age != "0" {
		return Rate{}, false
	}
	for _, prefix := range [...]string{"RateLimit-", "X-RateLimit-"} {
		r, valid := rateSet(h, prefix, about, limit, wall)
		if valid && (!ok || r.Left < rate.Left) {
			rate, ok = r, true
		}
	}
	return rate, ok
}

func rateSet(h http.Header, prefix string, about Headers, limit Limit, wall time.Time) (r Rate, ok bool) {
	if r.Left, ok = rateNumber(h, prefix+"Remaining"); !ok {
		return r, false
	}
	if h.Get(prefix+"Limit") != "" {
		if r.Limit, ok = rateNumber(h, prefix+"Limit"); !ok || r.Limit == 0 || r.Left > r.Limit {
			return r, false
		}
	}
	r.Reset, ok = rateReset(h, prefix+"Reset", about, limit, wall)
	return r, ok && r.Reset > 0 && r.Reset <= about.longest()
}

// rateNumber reads a field with one number and optional policies: "100, 100;w=60".
func rateNumber(h http.Header, key string) (int64, bool) {
	values := h.Values(key)
	if len(values) != 1 {
		return 0, false
	}
	value, _, _ := strings.Cut(values[0], ",")
	value, _, _ = strings.Cut(value, ";")
	if value = strings.TrimSpace(value); !isDigits(value) {
		return 0, false
	}
	n, err := strconv.ParseInt(value, 10, 64)
	return n, err == nil && n <= maxReported
}

// unixFrom separates Unix times from seconds from now: numbers from it on (30 years) are
// Unix times.
const unixFrom = 1_000_000_000

// rateReset returns the time until a window ends. The field holds seconds from now, or a
// Unix time, which counts from the response's own Date like Retry-After. Without a reset,
// the window ends with the quota's period or after the limit's.
func rateReset(h http.Header, key string, about Headers, limit Limit, wall time.Time) (time.Duration, bool) {
	if h.Get(key) == "" {
		if p := about.Period(); p != "" {
			_, end := p.Bounds(wall)
			return end.Sub(wall), true
		}
		return limit.Per, !limit.None()
	}
	n, ok := rateNumber(h, key)
	if !ok {
		return 0, false
	}
	if n >= unixFrom {
		from, err := http.ParseTime(h.Get("Date"))
		if err != nil {
			from = wall
		}
		n -= from.Unix()
	}
	if n > int64(HeadersOfMonth.longest()/time.Second) {
		return 0, false
	}
	return time.Duration(n) * time.Second, true
}

// learn stores the quota that a response reports, for this process and all that share the
// allowance. It runs before the body is read, which may take long.
func (c *Client) learn(ctx context.Context, h http.Header) (Rate, bool) {
	r, ok := rateOf(h, c.o.Headers, c.o.Limit, c.o.Now())
	if ok {
		c.storeReported(ctx, r)
	}
	return r, ok
}

// quotaUsedUp stores, for all processes, that the reported quota is used up. It returns for
// how long: until the reported reset, else the response's retry-after, else until the
// period ends.
func (c *Client) quotaUsedUp(ctx context.Context, r Rate, wait time.Duration) time.Duration {
	if r.Reset > 0 && r.Left == 0 {
		return r.Reset // learn has stored it
	}
	if wait == 0 {
		now := c.o.Now()
		_, end := c.o.Headers.Period().Bounds(now)
		wait = end.Sub(now)
	}
	c.storeReported(ctx, Rate{Reset: wait})
	return wait
}

// storeReported stores a reported quota. The shared allowance enforces it, where an
// operator can reset it; if it cannot be stored there, this process enforces it.
func (c *Client) storeReported(ctx context.Context, r Rate) {
	shared := false
	if c.o.Allowance != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), holdTime)
		defer cancel()
		err := c.o.Allowance.StoreReported(ctx, r)
		if shared = err == nil; !shared {
			c.o.Logger.Warn("reported quota not stored", "provider", c.o.Provider, "error", err)
		}
	}
	c.reported.update(c.clock(), r, shared)
}

// reportedQuota is the quota that responses to this process reported. Times are readings of
// a monotonic clock. The zero value has none.
type reportedQuota struct {
	mu    sync.Mutex
	rate  Rate          // Left less the requests sent since
	most  int64         // the least Left reported for this window
	noted bool          // stored in the allowance, which enforces it
	at    time.Duration // when it was reported
	until time.Duration // end of the window
}

// update takes a reported quota. Responses of one window may arrive in any order, so the
// least value counts.
func (t *reportedQuota) update(now time.Duration, r Rate, noted bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at, t.noted = now, noted
	if until := now + r.Reset; now >= t.until || (until-t.until).Abs() > SameReset {
		t.rate, t.most, t.until = r, r.Left, until
		return
	}
	t.rate.Limit, t.rate.Left, t.most = r.Limit, min(t.rate.Left, r.Left), min(t.most, r.Left)
}

// take counts a request, or returns how long the quota stays used up.
func (t *reportedQuota) take(now time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now >= t.until {
		return 0
	}
	if t.rate.Left <= 0 && !t.noted {
		return t.until - now
	}
	t.rate.Left = max(0, t.rate.Left-1)
	return 0
}

// untake removes a request that was counted and not sent.
func (t *reportedQuota) untake(now time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now < t.until {
		t.rate.Left = min(t.rate.Left+1, t.most)
	}
}

// state returns the quota; nil if there is none or its window has ended.
func (t *reportedQuota) state(now time.Duration, wall time.Time, about Headers) *ReportedQuota {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now >= t.until {
		return nil
	}
	return &ReportedQuota{
		Limit: t.rate.Limit, Left: t.rate.Left, At: wall.Add(t.at - now), ResetsAt: wall.Add(t.until - now), Period: about.Period(),
	}
}
