// Package fault gives errors that a user caused, or can do something about, a
// kind and a stable code. What has no fault in its chain is ours alone and is
// shown to nobody but the log.
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
	Forbidden                 // a good credential of another role
	NotFound                  // what was named does not exist
	Conflict                  // the state of things forbids it
	Unprocessable             // well-formed, and still impossible
	TooLarge                  // over a limit of size
	Unavailable               // not now; try again
	Upstream                  // another service that was asked does not answer, or not well
	Busy                      // over a limit of load; retry later. Unlike Unavailable it is no failure of the server
	Damaged                   // what is stored is not what was written: an operator must repair it, and a retry does not help
)

// Field is one faulty part of an input.
type Field struct {
	Pointer string `json:"pointer"`        // JSON pointer into the input
	Code    string `json:"code,omitempty"` // stable, snake_case: "out_of_range"; not every fault has one
	Detail  string `json:"detail"`         // what is wrong and what is wanted
}

// Error is an error for the eyes of whoever called.
type Error struct {
	Kind   Kind
	Code   string // stable, snake_case: "already_listed"
	Detail string // a sentence that says what to do; no secret, path or SQL
	Fields []Field
	// RetryAfter is when to come back, of one of kind Unavailable or Busy; 0: soon.
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
