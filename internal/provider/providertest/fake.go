package providertest

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"assay/internal/provider"
)

// Window is the rate limit of a fake: at most Calls within any interval of length Per. It is
// not safe for concurrent use.
type Window struct {
	Calls int
	Per   time.Duration
	taken []time.Time
}

// Take counts a call. If the limit is reached, it returns false and the remaining wait.
func (w *Window) Take(now time.Time) (wait time.Duration, ok bool) {
	for len(w.taken) > 0 && now.Sub(w.taken[0]) >= w.Per {
		w.taken = w.taken[1:]
	}
	if len(w.taken) >= w.Calls {
		if w.Calls == 0 {
			return w.Per, false
		}
		return w.Per - now.Sub(w.taken[0]), false
	}
	w.taken = append(w.taken, now)
	return 0, true
}

// Left returns the number of calls left.
func (w *Window) Left() int { return w.Calls - len(w.taken) }

// NewClient returns a client for the server at baseURL, with short waits between attempts. It
// applies tweak to the options if tweak is not nil. The client is closed at the end of the
// test.
func NewClient(t testing.TB, baseURL string, o provider.Options, tweak func(*provider.Options)) *provider.Client {
	t.Helper()
	o.AllowHosts, o.Backoff = []string{strings.TrimPrefix(baseURL, "http://")}, time.Millisecond
	if tweak != nil {
		tweak(&o)
	}
	c := provider.NewClient(o)
	t.Cleanup(c.Close)
	return c
}

// Seconds formats a wait for Retry-After in seconds, rounded up.
func Seconds(wait time.Duration) string {
	return strconv.FormatInt(int64((wait+time.Second-1)/time.Second), 10)
}

// Quote returns s as a JSON string with as few escapes as possible. It keeps invalid UTF-8.
func Quote(s string) string {
	const hex = "0123456789abcdef"
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range []byte(s) {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ':
			b.WriteString(`\u00`)
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
