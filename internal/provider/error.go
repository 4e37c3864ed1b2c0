package provider

import (
	"fmt"
	"time"
)

// Kind groups failures by what is to be done about them. The values are shown
// to operators.
type Kind string

// The kinds of failure.
const (
	KindConnect     Kind = "connect"     // refused, reset, DNS, TLS: no server responded
	KindTimeout     Kind = "timeout"     // no response, or not all of it, in time
	KindCut         Kind = "cut"         // the connection ended within the body
	KindRateLimited Kind = "rateLimited" // 429, or a demanded wait
	KindAuth        Kind = "auth"        // 401, 403: the key is missing, wrong or not enough
	KindServer      Kind = "server"      // 5xx
	KindStatus      Kind = "status"      // any other status than 200
	KindProtocol    Kind = "protocol"    // HTML, null, a wrong type, malformed: not what was promised
	KindTooLarge    Kind = "tooLarge"    // the body, inflated, exceeds its limit
	KindBlocked     Kind = "blocked"     // the address guard forbids the host
	KindBreaker     Kind = "breaker"     // not sent: too many recent failures
	KindBudget      Kind = "budget"      // not sent: the limit allows no request in time
	KindQuarantine  Kind = "quarantine"  // the response failed validation as a whole
	KindCancelled   Kind = "cancelled"   // the caller cancelled the request
)

// Step is a step on the way to a response.
type Step string

// The steps, in their order.
const (
	StepName    Step = "name"    // resolving the host's name
	StepAddress Step = "address" // the address guard
	StepConnect Step = "connect"
	StepTLS     Step = "tls" // certificate and handshake
)

// Error is a call that failed. Its text names no secret: it never holds a
// query string or a header.
type Error struct {
	Provider   string
	Kind       Kind
	Status     int           // HTTP status, 0 without a response
	RetryAfter time.Duration // how long to wait before requesting again; 0: not stated
	Detail     string        // what was wrong, for operators
	Step       Step          // where it failed without a response
	ETag       string        // of a 304 response: of the unchanged content; may be empty
	Page       bool          // an HTML page, for example of a bot check, instead of the provider's own response
	Err        error         // cause, or nil

	unstated bool // RetryAfter is ours: the provider did not state the wait
	held     bool // the wait is stored
}

// Error returns the provider, what was wrong and the status, without any secret.
func (e *Error) Error() string {
	s := e.Provider + ": " + string(e.Kind)
	if e.Status != 0 {
		s += fmt.Sprintf(" (status %d)", e.Status)
	}
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Deferred reports whether no request was sent because of a limit, a breaker or a
// retry-after. It says nothing about the provider's prices.
func (e *Error) Deferred() bool {
	switch e.Kind {
	case KindBreaker, KindBudget, KindRateLimited:
		return true
	default:
		return false
	}
}
