package provider

import (
	"io"
	"log/slog"
	"net/http"
	"time"
)

// Options configures a Client. Only Provider is required.
type Options struct {
	Provider string // the provider's name, in errors and logs

	// AllowHosts lists hosts ("sim.test", "127.0.0.1:8081") that may have any address,
	// loopback included. An entry without a port allows ports 80 and 443; see HostPort.
	AllowHosts []string

	Limit    Limit         // requests that the provider allows; zero: no limit
	Headers  Headers       // which budget the rate headers describe
	MaxBody  int64         // bytes of an inflated response; default 256 MiB
	Timeout  time.Duration // one attempt, with body and decoding; default 60 s
	Total    time.Duration // all attempts and the waits between them; default 2 min
	Attempts int           // maximum requests per Do, without redirects; default 4
	Backoff  time.Duration // upper bound of the first wait between attempts; default 500 ms
	Pause    time.Duration // first pause of the breaker; default 30 s, negative: it never opens

	// Patience, if set, is the longest retry-after that a call waits for. With a longer one
	// it fails at once.
	Patience time.Duration

	// Wait is the wait after a refusal without Retry-After; default DefaultWait. It doubles
	// up to MostWait while the provider refuses again soon after it. MostWait defaults to
	// Wait: no doubling.
	Wait, MostWait time.Duration

	// Classify, if set, may refine the Kind of an error response; Detail holds the
	// beginning of its body. KindBudget means that the quota of Headers is used up.
	Classify func(*Error)

	// Allowance, if set, is taken from before each request, in addition to Limit. All
	// processes share it.
	Allowance Allowance

	// Secrets are masked in every recorded path, host and error. Query values and headers
	// are never recorded.
	Secrets []string

	Now    func() time.Time // wall clock, for display; default time.Now
	Logger *slog.Logger     // default: nothing is logged
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

// withDefaults fills in the fields that are not set.
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

// Request is one request to a provider. It must be safe to repeat: the client resends it
// after a failure.
type Request struct {
	Method string // "" is GET
	URL    string // http or https
	Header http.Header
	Body   []byte
	Meter  *Meter // counts requests and bytes; may be nil
}

// Response is a response of status 200. Body is inflated and bounded, and valid only within
// decode.
type Response struct {
	Status int
	Header http.Header
	Body   io.Reader
}
