package provider

import (
	"io"
	"log/slog"
	"net/http"
	"time"
)

// Options configures a Client. Only Provider is required.
type Options struct {
	Provider string // provider name in errors and logs

	// AllowHosts lists hosts ("sim.test", "127.0.0.1:8081") that may have any address,
	// including loopback. An entry without a port allows ports 80 and 443; see HostPort.
	AllowHosts []string

	Limit    Limit         // rate limit; zero: none
	Headers  Headers       // budget that the rate-limit headers describe
	MaxBody  int64         // maximum bytes of a decompressed response; default 256 MiB
	Timeout  time.Duration // timeout of one attempt, including body and decoding; default 60 s
	Total    time.Duration // timeout of all attempts and the waits between them; default 2 min
	Attempts int           // maximum attempts per Do; redirects do not count; default 4
	Backoff  time.Duration // upper bound of the first wait between attempts; default 500 ms
	Pause    time.Duration // first pause of the breaker; default 30 s; negative: the breaker never opens

	// Patience, if set, limits how long a call waits for a retry-after. With a longer
	// retry-after, the call fails immediately.
	Patience time.Duration

	// Wait is the wait after a refusal without Retry-After; default DefaultWait. It doubles up
	// to MostWait each time the provider refuses again soon after the wait. By default
	// MostWait equals Wait, so the wait does not double.
	Wait, MostWait time.Duration

	// Classify, if set, may change the Kind of an error response. Detail holds the beginning
	// of the body. KindBudget means that the quota described by Headers is exhausted.
	Classify func(*Error)

	// Allowance, if set, counts each request in addition to Limit. All processes share it.
	Allowance Allowance

	// Secrets are masked in every recorded path, host and error. Query values and headers are
	// never recorded.
	Secrets []string

	Now    func() time.Time // wall clock; default time.Now
	Logger *slog.Logger     // default: no logging
}

// Defaults of Options.
const (
	DefaultMaxBody  = 256 << 20
	DefaultTimeout  = 60 * time.Second
	DefaultTotal    = 2 * time.Minute
	DefaultAttempts = 4
	DefaultBackoff  = 500 * time.Millisecond
	DefaultPause    = 30 * time.Second
)

// withDefaults sets the default values of unset fields.
func (o Options) withDefaults() Options {
	if o.MaxBody <= 0 {
		o.MaxBody = DefaultMaxBody
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Total <= 0 {
		o.Total = DefaultTotal
	}
	if o.Attempts <= 0 {
		o.Attempts = DefaultAttempts
	}
	if o.Backoff <= 0 {
		o.Backoff = DefaultBackoff
	}
	if o.Pause == 0 {
		o.Pause = DefaultPause
	}
	if o.Wait <= 0 {
		o.Wait = DefaultWait
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Request is one request to a provider. It must be safe to repeat, because the client retries
// it after a failure.
type Request struct {
	Method string // default GET
	URL    string // http or https
	Header http.Header
	Body   []byte
	Meter  *Meter // counts requests and bytes; may be nil
}

// Response is a response of status 200. Body is decompressed and limited in size. It is valid
// only during the call of decode.
type Response struct {
	Status int
	Header http.Header
	Body   io.Reader
}
