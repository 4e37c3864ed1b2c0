package provider

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"
)

// maxDetail bounds the detail of an error, in bytes.
const maxDetail = 300

// retryable reports whether a failure of this kind may be temporary.
func retryable(k Kind) bool {
	switch k {
	case KindConnect, KindTimeout, KindCut, KindServer, KindRateLimited:
		return true
	default:
		return false
	}
}

// outcomeOf returns the outcome of an attempt for the breaker. A complete response counts as a
// success, even if its content is invalid.
func outcomeOf(err error) outcome {
	var e *Error
	if err == nil || !errors.As(err, &e) {
		return responded
	}
	switch e.Kind {
	case KindConnect, KindTimeout, KindCut, KindServer:
		return failed
	case KindCancelled, KindBlocked, KindBudget, KindBreaker:
		return neutral
	case KindRateLimited:
		if e.Status == 0 {
			return neutral // nothing was sent
		}
	}
	return responded
}

// classifier converts request failures to an *Error without secrets.
type classifier struct {
	o      Options
	masker *masker
}

// ended returns the error for a call whose context ended. The caller cancelled it, or its
// deadline passed.
func (c *classifier) ended(cause error) *Error {
	if errors.Is(cause, context.DeadlineExceeded) {
		return &Error{Provider: c.o.Provider, Kind: KindTimeout, Detail: "the caller's deadline has passed", Err: cause}
	}
	return &Error{Provider: c.o.Provider, Kind: KindCancelled, Err: cause}
}

// deferred returns the error for a request that is not sent.
func (c *classifier) deferred(ctx context.Context, r Refusal) *Error {
	if ctx.Err() != nil {
		return c.ended(ctx.Err())
	}
	e := &Error{Provider: c.o.Provider, Kind: r.Kind, RetryAfter: r.Wait, Err: r.Err}
	switch {
	case r.Err != nil:
		e.Detail = "not sent: rate-limit state unavailable"
	case r.Quota != "":
		e.Detail = "not sent: the quota for the " + string(r.Quota) + " is used up until " + r.ResetsAt.UTC().Format(time.RFC3339)
	case r.Kind == KindBreaker:
		e.Detail = "not sent: circuit breaker open after repeated failures"
	case r.Kind == KindBudget:
		e.Detail = "not sent: the rate limit allows no request before the deadline"
	default:
		e.Detail = "not sent: the provider demanded a wait (Retry-After)"
	}
	return e
}

// sendError returns the error for a request without a response.
func (c *classifier) sendError(err error) *Error {
	e := &Error{Provider: c.o.Provider, Kind: KindConnect, Err: cause(err)}
	var (
		dns  *net.DNSError
		op   *net.OpError
		cert *tls.CertificateVerificationError
	)
	e.Step = stepOf(err)
	switch {
	case errors.Is(err, ErrGuarded):
		e.Kind, e.Err = KindBlocked, ErrGuarded
		e.Detail = "the host's address is not public: add the host to the allowed hosts if you trust it"
	case isTimeout(err):
		e.Kind, e.Detail = KindTimeout, "no response in time"
	case errors.As(err, &dns):
		e.Detail = "the host's name cannot be resolved"
	case errors.As(err, &cert):
		e.Detail = c.detail("certificate: " + cert.Err.Error())
	case e.Err != nil && errors.Is(err, io.EOF):
		e.Detail = "the connection was closed without a response"
	case e.Err != nil:
		e.Detail = e.Err.Error()
	case errors.As(err, &op):
		e.Detail = c.detail(op.Err.Error())
	case e.Step == StepTLS:
		e.Detail = c.detail(err.Error())
	default:
		// The remaining errors mean that the response is not valid HTTP.
		e.Kind, e.Detail = KindProtocol, c.detail("invalid HTTP response: "+err.Error())
	}
	return e
}

// stepOf returns the step at which a request failed. It returns "" if the step is unknown or
// if all steps succeeded.
func stepOf(err error) Step {
	if errors.Is(err, ErrGuarded) {
		return StepAddress
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return StepName
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return StepConnect
	}
	_, cert := errors.AsType[*tls.CertificateVerificationError](err)
	_, record := errors.AsType[tls.RecordHeaderError](err)
	_, alert := errors.AsType[tls.AlertError](err)
	if cert || record || alert {
		return StepTLS
	}
	return ""
}

// bodyError returns the error for an incomplete body. wireErr is the error of the connection,
// or nil if the decoder failed.
func (c *classifier) bodyError(err, wireErr error) *Error {
	e := &Error{Provider: c.o.Provider, Kind: KindCut, Status: 200, Err: cause(err)}
	switch {
	case errors.Is(err, errTooLarge):
		e.Kind, e.Err = KindTooLarge, errTooLarge
		e.Detail = "the body exceeds " + strconv.FormatInt(c.o.MaxBody, 10) + " bytes"
	case isTimeout(err):
		e.Kind, e.Detail = KindTimeout, "the body did not arrive in time"
	case wireErr != nil, errors.Is(err, io.ErrUnexpectedEOF):
		e.Detail = "the connection ended before the body was complete"
	default:
		e.Kind, e.Detail = KindProtocol, c.detail("the body cannot be decompressed: "+err.Error())
	}
	return e
}

// detail returns external text as one printable line without secrets.
func (c *classifier) detail(text string) string {
	return printable(c.masker.mask(text), maxDetail)
}

// cause returns the first known error in the chain of err, or nil. Callers test for these
// errors, and none of them can contain a secret.
func cause(err error) error {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno
	}
	for _, known := range []error{context.DeadlineExceeded, context.Canceled, io.ErrUnexpectedEOF, io.EOF} {
		if errors.Is(err, known) {
			return known
		}
	}
	return nil
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.As(err, &n) && n.Timeout()
}
