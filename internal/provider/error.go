package provider

import (
	"fmt"
	"time"
)

// Kind is the class of a failure, by what to do about it. Operators see the values.
type Kind string

// The kinds of failure.
const (
	KindConnect     Kind = "connect"     // refused, reset, DNS, TLS: no server responded
	KindTimeout     Kind = "timeout"     // no response, or not all of it, in time
	KindCut         Kind = "cut"         // the connection ended within the body
	KindRateLimited Kind = "rateLimited" // 429, or a demanded wait
	KindAuth        Kind = "auth"        // 401, 403: the key is missing, wrong or lacks a permission
	KindServer      Kind = "server"      // 5xx
	KindStatus      Kind = "status"      // any other status except 200
	KindProtocol    Kind = "protocol"    // not the promised format: HTML, null, a wrong type, malformed
	KindTooLarge    Kind = "tooLarge"    // the inflated body exceeds its limit
	KindBlocked     Kind = "blocked"     // the address guard forbids the host
	KindBreaker     Kind = "breaker"     // not sent: too many recent failures
	KindBudget      Kind = "budget"      // not sent: the limit allows no request before the deadline
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

// Error is a failed call. Its text never holds a secret, a query string or a header.
type Error struct {
	Provider   string
	Kind       Kind
	Status     int           // HTTP status; 0 without a response
	RetryAfter time.Duration // wait before the next request; 0: not stated
	Detail     string        // the fault, for operators
	Step       Step          // where a request without a response failed
	ETag       string        // of a 304 response; may be empty
	Page       bool          // the response is an HTML page, for example of a bot check
	Err        error         // cause, or nil

	unstated bool // RetryAfter is a default: the provider stated no wait
	held     bool // the wait is stored
}

// Error returns the provider, the fault and the status, without secrets.
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
// retry-after. It is no evidence about the provider's prices.
func (e *Error) Deferred() bool {
	switch e.Kind {
	case KindBreaker, KindBudget, KindRateLimited:
		return true
	default:
		return false
	}
}
