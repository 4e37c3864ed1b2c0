package provider

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Headers states which budget the rate-limit headers of a host describe. The client reads
// RateLimit-Limit, RateLimit-Remaining and RateLimit-Reset, also with the prefix X-. It
// ignores headers with a suffix, such as X-RateLimit-Remaining-Second.
type Headers string

// The budgets that rate headers may describe.
const (
	HeadersOfLimit Headers = ""        // the host's limit, or another window of at most a day
	HeadersOfDay   Headers = "day"     // the daily quota
	HeadersOfMonth Headers = "month"   // the monthly quota
	HeadersIgnored Headers = "ignored" // the headers count other requests or another key; ignore them
)

// Period returns the period of the quota that the headers describe, or "" if they describe
// none.
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

// longest returns the longest accepted time until a reset.
func (h Headers) longest() time.Duration {
	if h == HeadersOfMonth {
		return 31 * 24 * time.Hour
	}
	return MaxWait
}

// Rate is the quota in the headers of one response: Left of Limit requests remain until Reset
// has passed.
type Rate struct {
	Limit int64 // 0: not reported
	Left  int64
	Reset time.Duration // always above 0
}

// ReportedQuota is the quota in the latest responses minus the requests sent since then. It is
// valid until it resets.
type ReportedQuota struct {
	Limit    int64 // 0: not reported
	Left     int64
	At       time.Time // time of the latest response that reported it
	ResetsAt time.Time
	Period   Period   // period of the reported quota; empty: a limit
	Forecast Forecast // for a window longer than an hour; else zero
}

// SameReset is the largest difference between the resets of two responses for the same window.
// Resets are whole seconds, and latency varies.
const SameReset = 2 * time.Second

// maxReported is the largest accepted number in a header.
const maxReported = 1_000_000_000_000

// rateOf reads the rate-limit headers of a response. If both sets of headers are present, it
// returns the set with less left. It ignores impossible values: not a number, a limit of 0,
// more left than the limit, a reset in the past or too far ahead. It also ignores cached
// responses, because their headers are outdated.
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

// rateNumber reads a header with one number and optional policies: "100, 100;w=60".
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

// unixFrom is the smallest reset value that is read as a Unix time. Smaller values are seconds
// from now.
const unixFrom = 1_000_000_000

// rateReset returns the time until a window ends. The header holds seconds from now or a Unix
// time. A Unix time is compared with the Date header of the response, as for Retry-After.
// Without a reset header, the window ends with the period of the quota, or after the period of
// the limit.
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

// storeRateHeaders stores the quota that a response reports, for all processes. It runs before
// the body is read, because reading takes time.
func (b *hostBudget) storeRateHeaders(ctx context.Context, h http.Header) (Rate, bool) {
	r, ok := rateOf(h, b.o.Headers, b.o.Limit, b.o.Now())
	if ok {
		b.storeReported(ctx, r)
	}
	return r, ok
}

// quotaUsedUp stores for all processes that the reported quota is exhausted. It returns the
// time until the quota resets. It prefers the reported reset, then the retry-after of the
// response, then the end of the period.
func (b *hostBudget) quotaUsedUp(ctx context.Context, r Rate, wait time.Duration) time.Duration {
	// storeRateHeaders has stored this quota already.
	if r.Reset > 0 && r.Left == 0 {
		return r.Reset
	}
	if wait == 0 {
		now := b.o.Now()
		_, end := b.o.Headers.Period().Bounds(now)
		wait = end.Sub(now)
	}
	b.storeReported(ctx, Rate{Reset: wait})
	return wait
}

// storeReported stores a reported quota in the shared allowance, where an operator can reset
// it. If storing fails, this process enforces the quota.
func (b *hostBudget) storeReported(ctx context.Context, r Rate) {
	shared := false
	if b.o.Allowance != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
		defer cancel()
		err := b.o.Allowance.StoreReported(ctx, r)
		if shared = err == nil; !shared {
			b.o.Logger.Warn("reported quota not stored", "provider", b.o.Provider, "error", err)
		}
	}
	b.reported.update(b.clock(), r, shared)
}

// reportedQuota is the quota that responses to this process reported. All times are readings
// of a monotonic clock. The zero value means no quota.
type reportedQuota struct {
	mu     sync.Mutex
	rate   Rate          // Left is reduced by the requests sent since then
	lowest int64         // smallest Left reported in this window
	shared bool          // the quota is also stored in the shared Allowance, which enforces it for all processes
	at     time.Duration // time of the latest report
	until  time.Duration // end of the window
}

// update records a reported quota. Responses for one window may arrive in any order, so the
// smallest value is used.
func (q *reportedQuota) update(now time.Duration, r Rate, shared bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.at, q.shared = now, shared
	if until := now + r.Reset; now >= q.until || (until-q.until).Abs() > SameReset {
		q.rate, q.lowest, q.until = r, r.Left, until
		return
	}
	q.rate.Limit, q.rate.Left, q.lowest = r.Limit, min(q.rate.Left, r.Left), min(q.lowest, r.Left)
}

// take counts a request and returns 0. If the quota is exhausted, it returns how long to wait.
func (q *reportedQuota) take(now time.Duration) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	if now >= q.until {
		return 0
	}
	if q.rate.Left <= 0 && !q.shared {
		return q.until - now
	}
	q.rate.Left = max(0, q.rate.Left-1)
	return 0
}

// untake removes a request that take counted and that was not sent.
func (q *reportedQuota) untake(now time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if now < q.until {
		q.rate.Left = min(q.rate.Left+1, q.lowest)
	}
}

// state returns the quota, or nil if there is none or its window has ended.
func (q *reportedQuota) state(now time.Duration, wall time.Time, about Headers) *ReportedQuota {
	q.mu.Lock()
	defer q.mu.Unlock()
	if now >= q.until {
		return nil
	}
	return &ReportedQuota{
		Limit: q.rate.Limit, Left: q.rate.Left, At: wall.Add(q.at - now), ResetsAt: wall.Add(q.until - now), Period: about.Period(),
	}
}
