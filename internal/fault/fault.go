// Package fault gives a kind and a stable code to errors that a caller caused or
// can fix. An error without a fault in its chain is internal: it is
// only written to the log.
package fault

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Kind decides the HTTP status and the exit code.
type Kind uint8

// The kinds.
const (
	Internal      Kind = iota // not a fault of the caller
	Invalid                   // malformed or unknown input
	Unauthorized              // no credential, or a wrong one
	Forbidden                 // a valid credential of another role
	NotFound                  // the named resource does not exist
	Conflict                  // the current state does not allow it
	Unprocessable             // well-formed but not acceptable
	TooLarge                  // over a limit of size
	Unavailable               // not now; try again
	Upstream                  // another service failed or returned an unusable response
	Busy                      // over a load limit; retry later. Unlike Unavailable this is no failure of the server
	Damaged                   // stored data was changed: an operator must repair it, a retry does not help
)

// Field is one faulty part of an input.
type Field struct {
	Pointer string `json:"pointer"`        // JSON pointer into the input
	Code    string `json:"code,omitempty"` // stable, snake_case: "out_of_range"; not every fault has one
	Detail  string `json:"detail"`         // the fault and the expected value
}

// Error is an error whose text the caller may see.
type Error struct {
	Kind   Kind
	Code   string // stable, snake_case: "already_listed"
	Detail string // the fault and the fix, as a sentence; no secret, path or SQL
	Fields []Field
	// RetryAfter is how long to wait before a retry, for Unavailable and Busy; 0: not known.
	RetryAfter time.Duration
}

// New makes an Error whose detail is formatted.
func New(kind Kind, code, format string, args ...any) *Error {
	return &Error{Kind: kind, Code: code, Detail: fmt.Sprintf(format, args...)}
}

// Error returns the detail and the faulty fields.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Detail)
	for _, f := range e.Fields {
		b.WriteString("; " + f.Pointer + ": " + f.Detail)
	}
	return b.String()
}

// Of returns the Error in err's chain, or nil.
func Of(err error) *Error {
	e, _ := errors.AsType[*Error](err)
	return e
}
