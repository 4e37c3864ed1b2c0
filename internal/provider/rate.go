package provider

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Headers tells which budget the rate headers of a host's answers speak of:
// RateLimit-Limit, -Remaining and -Reset, and the same with X- before it. Names with
// a further ending (X-RateLimit-Remaining-Second) are not read.
type Headers string

// What rate headers may speak of.
const (
	HeadersOfLimit Headers = ""        // the host's limit, or a window of no more than a day that the headers alone know
	HeadersOfDay   Headers = "day"     // the day's quota
	HeadersOfMonth Headers = "month"   // the month's quota
	HeadersIgnored Headers = "ignored" // nothing that bounds what we ask: not what is asked for, or not of this key
)

// Period returns the period of the quota that the headers speak of; empty: of none.
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

// longest is the longest time to a reset that is believed.
func (h Headers) longest() time.Duration {
	if h == HeadersOfMonth {
		return 31 * 24 * time.Hour
	}
	return MaxWait
}

// Rate is what one answer's headers tell: Left of Limit requests until Reset has
// passed.
type Rate struct {
	Limit int64 // 0: not told
	Left  int64
	Reset time.Duration // above 0
}

// Told is the budget as the source counts it: what its last answers told, less
// what was sent since. It ends with its reset.
type Told struct {
	Limit    int64 // 0: not told
	Left     int64
	At       time.Time // of the last answer that told
	ResetsAt time.Time
	Period   Period  // whose quota it is about; empty: a limit
	Outlook  Outlook // of a window that lasts longer than an hour; else zero
}

// SameReset is how far the resets of two answers may lie apart that speak of one
// window: they are told in whole seconds, and travel.
const SameReset = 2 * time.Second

// maxTold bounds the numbers that are believed.
const maxTold = 1_000_000_000_000

// rateOf reads the rate headers of an answer. Of two sets it takes the one that
// leaves less. Those that make no sense, alone or together, do not count: no
// number, none left of a limit of 0, more left than the limit, a reset that is past
// or too far off. Nor do those of an answer out of a cache: they are of another
// moment.
func rateOf(h http.Header, about Headers, limit Limit, wall time.Time) (rate Rate, ok bool) {
	if age := h.Get("Age"); about == HeadersIgnored || age != "" && age != "0" {
		return Rate{}, false
	}
	for _, prefix := range [...]string{"RateLimit-", "X-RateLimit-"} {
		r, told := rateSet(h, prefix, about, limit, wall)
		if told && (!ok || r.Left < rate.Left) {
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

// rateNumber reads a field that holds one number, which policies may follow:
// "100, 100;w=60".
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
	return n, err == nil && n <= maxTold
}

// unixFrom is the least number that is a time in Unix seconds and not a number of
// them from now: 30 years.
const unixFrom = 1_000_000_000

// rateReset reads when a window ends: in seconds from now, or as a Unix time, which
// counts from the answer's own Date, as that of Retry-After does. Where it is not
// told, the window ends with what it is known to be of.
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

// learn takes what an answer tells of the budget, for this process and for all that
// share the allowance. It is read before the body, which may take long.
func (c *Client) learn(ctx context.Context, h http.Header) (Rate, bool) {
	r, ok := rateOf(h, c.o.Headers, c.o.Limit, c.o.Now())
	if ok {
		c.believe(ctx, r)
	}
	return r, ok
}

// spent notes, for everybody, that nothing is left of the quota that the headers are
// about, and returns for how long: as they told, or as long as the answer wants to
// be waited for, or until the calendar's period ends.
func (c *Client) spent(ctx context.Context, r Rate, wait time.Duration) time.Duration {
	if r.Reset > 0 && r.Left == 0 {
		return r.Reset // noted with the headers
	}
	if wait == 0 {
		now := c.o.Now()
		_, end := c.o.Headers.Period().Bounds(now)
		wait = end.Sub(now)
	}
	c.believe(ctx, Rate{Reset: wait})
	return wait
}

// believe notes what the source says is left. Where all processes know it, their
// allowance keeps to it, in which an operator may take it back.
func (c *Client) believe(ctx context.Context, r Rate) {
	shared := false
	if c.o.Allowance != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), holdTime)
		defer cancel()
		err := c.o.Allowance.Tell(ctx, r)
		if shared = err == nil; !shared {
			c.o.Logger.Warn("what the source says is left not stored: others go by their own count", "source", c.o.Source, "error", err)
		}
	}
	c.told.tell(c.clock(), r, shared)
}

// told keeps what this process was told, by readings of a monotonic clock. The
// zero value knows nothing.
type told struct {
	mu    sync.Mutex
	rate  Rate          // Left less what was sent since
	most  int64         // the least that was told for this window
	noted bool          // with the allowance, so that it refuses and not this
	at    time.Duration // when it was told
	until time.Duration // when it no longer counts
}

// tell takes what an answer said. Answers that are about one window may come in
// any order, so of those the least counts.
func (t *told) tell(now time.Duration, r Rate, noted bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at, t.noted = now, noted
	if until := now + r.Reset; now >= t.until || (until-t.until).Abs() > SameReset {
		t.rate, t.most, t.until = r, r.Left, until
		return
	}
	t.rate.Limit, t.rate.Left, t.most = r.Limit, min(t.rate.Left, r.Left), min(t.most, r.Left)
}

// take counts a request, or returns how long nothing is left.
func (t *told) take(now time.Duration) time.Duration {
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

// untake forgets a request that was counted and not sent.
func (t *told) untake(now time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now < t.until {
		t.rate.Left = min(t.rate.Left+1, t.most)
	}
}

// state returns what is known; nil: nothing that still counts.
func (t *told) state(now time.Duration, wall time.Time, about Headers) *Told {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now >= t.until {
		return nil
	}
	return &Told{
		Limit: t.rate.Limit, Left: t.rate.Left, At: wall.Add(t.at - now), ResetsAt: wall.Add(t.until - now), Period: about.Period(),
	}
}
