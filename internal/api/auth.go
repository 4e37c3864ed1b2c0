package api

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"assay/internal/access"
	"assay/internal/fault"
)

// credentials is what a request presents, sorted into what is right and wrong.
type credentials struct {
	roles []string // of the right ones
	wrong bool     // one of them belongs to no role
}

// presented compares what a request presents with all live secrets. A header
// carries its own role's secret or the admin token.
func (s *server) presented(r *http.Request) credentials {
	var c credentials
	s.compare(&c, r.Header.Get("X-Market-Sync-Secret"), Market)
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if strings.EqualFold(scheme, "Bearer") {
		s.compare(&c, strings.TrimSpace(token), Platform)
	}
	return c
}

func (s *server) compare(c *credentials, secret, role string) {
	if secret == "" {
		return
	}
	isAdmin, isRole := s.Credentials.Match(Admin, secret), s.Credentials.Match(role, secret)
	switch {
	case isAdmin:
		c.roles = append(c.roles, Admin)
	case isRole:
		c.roles = append(c.roles, role)
	default:
		c.wrong = true
	}
}

// authorise returns the role that a request acts in, empty for none, or why it
// may not use the operation. A right credential is never refused for wrong ones
// before it. Where no credential is needed a wrong one does no harm, but counts.
func (s *server) authorise(op *operation, c *call) (role string, err error) {
	r := c.Request
	creds := s.presented(r)
	for _, role := range creds.roles {
		if role == Admin || slices.Contains(op.access, role) {
			return role, nil
		}
	}
	var failure access.Failure
	if creds.wrong {
		client := access.Client(r, s.TrustedProxies)
		failure = s.Failures.Fail(client)
		c.quiet = !failure.Log
		if failure.Log {
			s.Logger.WarnContext(r.Context(), "wrong secret", "route", op.path, "client", client.String(),
				"limited", failure.Over(), "unlogged", failure.Unlogged)
		}
	}
	if op.access == nil || slices.Contains(op.access, local) && access.Local(r, s.TrustedProxies) && access.LocalHost(r.Host, s.Host) {
		return "", nil
	}
	if failure.Delay > 0 {
		s.Failures.Wait(r.Context(), failure.Delay)
	}
	switch {
	case failure.Over():
		return "", tooManyFailures(failure.RetryAfter)
	case len(creds.roles) > 0:
		return "", fault.New(fault.Forbidden, "forbidden", "This credential has no access to this route.")
	default:
		return "", unauthorized()
	}
}

// unauthorized is the same for a missing and for a wrong credential.
func unauthorized() error {
	return &refusal{
		status: http.StatusUnauthorized, code: "unauthorized",
		detail: "This route needs a valid credential: the header x-market-sync-secret, or Authorization: Bearer with a token.",
		header: http.Header{"Www-Authenticate": {`Bearer realm="assay"`}},
	}
}

func tooManyFailures(wait time.Duration) error {
	return &refusal{
		status: http.StatusTooManyRequests, code: "too_many_failures",
		detail: "Too many wrong secrets came from this address. A right one is taken at any time.",
		header: http.Header{
			"Retry-After":      {seconds(wait)},
			"Ratelimit-Policy": {`"failures";q=20;w=60`},
			"Ratelimit":        {`"failures";r=0;t=` + seconds(wait)},
		},
	}
}

// Credentials are the live secrets. Match compares in constant time, is safe
// for concurrent use and sees a rotation at once.
type Credentials interface {
	Match(role, presented string) bool
}

// FailureLimiter counts wrong secrets by client address, together with those
// that the page saw.
type FailureLimiter interface {
	// Fail counts one and returns what follows from it.
	Fail(client netip.Addr) access.Failure
	// Wait waits before the response.
	Wait(ctx context.Context, delay time.Duration)
}
