// Package fault defines errors with a kind and a stable code, for problems that a caller
// can fix. An error without a fault in its chain is internal and appears only in the log.
package fault

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Kind classifies a fault. It determines the HTTP status and the exit code.
type Kind uint8

// The kinds of faults.
const (
	Internal      Kind = iota // not caused by the caller
	Invalid                   // malformed or unknown input
	Unauthorized              // missing or wrong credential
	Forbidden                 // valid credential without the required role
	NotFound                  // the named resource does not exist
	Conflict                  // the current state does not allow the request
	Unprocessable             // well-formed but not acceptable
	TooLarge                  // exceeds a size limit
	Unavailable               // temporary failure; retry later
	Upstream                  // another service failed or returned an unusable response
	Busy                      // a load limit was reached; retry later. Unlike Unavailable, this is not a failure of the server
	Expired                   // the named state existed and is no longer stored
	Damaged                   // stored data is corrupt or was tampered with; an operator must repair it, and a retry does not help
)

// Field describes an error in one part of an input.
type Field struct {
	Pointer string `json:"pointer"`        // JSON pointer into the input
	Code    string `json:"code,omitempty"` // stable and in snake_case, such as "out_of_range"; may be empty
	Detail  string `json:"detail"`         // the error and the expected value
}

// Error is an error with a text that the caller may see.
type Error struct {
	Kind   Kind
	Code   string // stable and in snake_case, such as "already_listed"
	Detail string // a sentence with the error and the fix; contains no secret, path or SQL
	Fields []Field
	// RetryAfter is the time to wait before a retry, for Unavailable and Busy. 0 means
	// unknown.
	RetryAfter time.Duration
	// Change is set only for the code cursor_expired. In the change feed, it is the number of
	// the last price change. In the event feed, it is the lowest number that is still accepted.
	Change string
}

// New returns an Error with a formatted detail.
func New(kind Kind, code, format string, args ...any) *Error {
	return &Error{Kind: kind, Code: code, Detail: fmt.Sprintf(format, args...)}
}

// InvalidParameter returns an Error for one parameter of a query. The formatted text continues a
// sentence about the parameter, such as "must be a whole number".
func InvalidParameter(name, format string, args ...any) *Error {
	text := fmt.Sprintf(format, args...)
	f := New(Invalid, "invalid_parameters", "The parameter %s %s.", name, text)
	f.Fields = []Field{{Pointer: "/query/" + name, Detail: text}}
	return f
}

// Error returns the detail and the errors of all fields.
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
