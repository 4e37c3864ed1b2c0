package provider

import (
	"cmp"
	"fmt"
	"net/http"
	"time"
)

// Kind is the class of a failure. Each class needs a different reaction. The values are
// visible to operators.
type Kind string

// The kinds of failure.
const (
	KindConnect     Kind = "connect"     // no connection or no response: refused, reset, DNS, TLS
	KindTimeout     Kind = "timeout"     // no complete response in time
	KindCut         Kind = "cut"         // the connection ended before the body was complete
	KindRateLimited Kind = "rateLimited" // status 429, or a retry-after is still running
	KindAuth        Kind = "auth"        // status 401 or 403: the key is missing, wrong or lacks a permission
	KindServer      Kind = "server"      // status 5xx
	KindStatus      Kind = "status"      // any other status except 200
	KindProtocol    Kind = "protocol"    // unexpected format: HTML, null, a wrong type, malformed data
	KindTooLarge    Kind = "tooLarge"    // the decompressed body exceeds its limit
	KindBlocked     Kind = "blocked"     // the address guard blocks the host
	KindBreaker     Kind = "breaker"     // not sent: the circuit breaker is open
	KindBudget      Kind = "budget"      // the limit or a quota allows no request before the deadline
	KindQuarantine  Kind = "quarantine"  // the response failed validation as a whole
	KindCancelled   Kind = "cancelled"   // the caller cancelled the request
)

// Step is a step of an HTTP request.
type Step string

// The steps, in order.
const (
	StepName    Step = "name"    // resolving the host's name
	StepAddress Step = "address" // the address guard
	StepConnect Step = "connect"
	StepTLS     Step = "tls" // certificate and handshake
)

// Error is a failed call. Its text never contains a secret, a query string or a header.
type Error struct {
	Provider   string
	Kind       Kind
	Status     int           // HTTP status; 0 without a response
	RetryAfter time.Duration // wait before the next request; 0: not reported
	Detail     string        // description of the fault, for operators
	Step       Step          // failed step, if there is no response
	ETag       string        // ETag of a 304 response; may be empty
	Page       bool          // the response is an HTML page, such as a bot check
	Err        error         // cause, or nil

	defaultWait bool // RetryAfter is a default, because the provider reported none
	waitStored  bool // the wait is already stored
}

// kindTexts describe the kinds in an error's text.
var kindTexts = map[Kind]string{
	KindConnect:     "no connection",
	KindTimeout:     "timeout",
	KindCut:         "the response was cut off",
	KindRateLimited: "rate limit reached",
	KindAuth:        "access refused",
	KindServer:      "server error",
	KindStatus:      "unexpected status",
	KindProtocol:    "unexpected response",
	KindTooLarge:    "the response is too large",
	KindBlocked:     "address blocked",
	KindBreaker:     "circuit breaker open",
	KindBudget:      "limit or quota used up",
	KindQuarantine:  "in quarantine",
	KindCancelled:   "cancelled",
}

// Error returns the provider, the fault and the status, without secrets.
func (e *Error) Error() string {
	s := e.Provider + ": " + cmp.Or(kindTexts[e.Kind], string(e.Kind))
	if e.Status != 0 && e.Status != http.StatusOK { // a successful status is not the fault
		s += fmt.Sprintf(" (HTTP status %d)", e.Status)
	}
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Deferred reports whether the call failed because of a limit, an open breaker or a
// retry-after. Such an error is no evidence about the provider's current prices.
func (e *Error) Deferred() bool {
	switch e.Kind {
	case KindBreaker, KindBudget, KindRateLimited:
		return true
	default:
		return false
	}
}
