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

	// AllowHosts lists hosts ("sim.test", "127.0.0.1:8081") that the operator named:
	// the address guard lets them pass, loopback included. An entry without a port
	// stands for ports 80 and 443; see HostPort.
	AllowHosts []string

	Limit    Limit         // requests that the provider allows; zero: no limit
	Headers  Headers       // which budget the rate headers of its responses speak of
	MaxBody  int64         // bytes of a response, inflated; default 256 MiB
	Timeout  time.Duration // one attempt, its body and decoding included; default 60 s
	Total    time.Duration // all attempts and the waits between them; default 2 min
	Attempts int           // requests at most for one Do, redirects aside; default 4
	Backoff  time.Duration // upper end of the first wait between attempts; default 500 ms
	Pause    time.Duration // how long the breaker first stays open; default 30 s, negative: it never opens

	// Patience, when set, is how long a call waits at most for a provider that wants to
	// be left alone: it fails at once where that lasts longer.
	Patience time.Duration

	// Wait is how long the provider is left alone when it refuses without saying for
	// how long; default DefaultWait. It doubles up to MostWait for as long as the
	// provider refuses again soon after; default Wait, which is not at all.
	Wait, MostWait time.Duration

	// Classify, when set, may classify better than its status a response that is
	// neither a success nor a redirect: it may change Kind. Detail is how its body
	// begins. KindBudget means that the quota of Headers is used up.
	Classify func(*Error)

	// Allowance, when set, is queried before each request, in addition to Limit. All
	// processes share it.
	Allowance Allowance

	// Secrets are masked wherever a path, a host or an error is recorded or shown. Query
	// values and headers are never recorded.
	Secrets []string

	Now    func() time.Time // wall clock, for what is shown; default time.Now
	Logger *slog.Logger     // default: nothing is logged
}

// The defaults of Options.
const (
	DefaultMaxBody  = 256 << 20
	DefaultTimeout  = 60 * time.Second
	DefaultTotal    = 2 * time.Minute
	DefaultAttempts = 4
	DefaultBackoff  = 500 * time.Millisecond
	DefaultPause    = 30 * time.Second
)

// withDefaults fills in what was left out.
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

// Request is one question to a provider. It must only read: it is sent again
// when its response fails.
type Request struct {
	Method string // "" is GET
	URL    string // http or https
	Header http.Header
	Body   []byte
	Meter  *Meter // counts what is sent and received; may be nil
}

// Response is a response of status 200. Body is inflated and bounded; it is read
// within decode only.
type Response struct {
	Status int
	Header http.Header
	Body   io.Reader
}
