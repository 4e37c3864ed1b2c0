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
	KindConnect     Kind = "connect"     // refused, reset, DNS, TLS: nobody answered
	KindTimeout     Kind = "timeout"     // no answer, or not all of it, in time
	KindCut         Kind = "cut"         // the connection ended within the body
	KindRateLimited Kind = "rateLimited" // 429, or told to wait
	KindAuth        Kind = "auth"        // 401, 403: the key is missing, wrong or not enough
	KindServer      Kind = "server"      // 5xx
	KindStatus      Kind = "status"      // any other status than 200
	KindProtocol    Kind = "protocol"    // HTML, null, a wrong type, malformed: not what was promised
	KindTooLarge    Kind = "tooLarge"    // the body, inflated, exceeds its limit
	KindBlocked     Kind = "blocked"     // the address guard forbids the host
	KindBreaker     Kind = "breaker"     // not asked: too many failures of late
	KindBudget      Kind = "budget"      // not asked: the limit leaves no request in time
	KindQuarantine  Kind = "quarantine"  // asked, and the answer is not to be believed as a whole
	KindCancelled   Kind = "cancelled"   // the caller went away
)

// Step is a step on the way to an answer.
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
	Source     string
	Kind       Kind
	Status     int           // HTTP status, 0 without an answer
	RetryAfter time.Duration // how long to wait before asking again; 0: not stated
	Detail     string        // what was wrong, for operators
	Step       Step          // where it failed, of one that got no answer
	ETag       string        // of an answer of status 304: what it says is unchanged; perhaps empty
	Page       bool          // a refusal in HTML: of a bot check, say, and not of the source itself
	Err        error         // cause, or nil

	unstated bool // RetryAfter is ours: the source did not say how long
	held     bool // the wait is stored
}

// Error returns the source, what was wrong and the status, without any secret.
func (e *Error) Error() string {
	s := e.Source + ": " + string(e.Kind)
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

// Deferred reports whether nothing could be asked because of a limit, a
// breaker or an order to wait: the source is not at fault and the item is not
// without a price for it.
func (e *Error) Deferred() bool {
	switch e.Kind {
	case KindBreaker, KindBudget, KindRateLimited:
		return true
	default:
		return false
	}
}
