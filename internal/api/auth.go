package api

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"assay/internal/access"
	"assay/internal/fault"
)

// credentials are the results of checking the credentials of a request.
type credentials struct {
	roles []string // roles of the valid credentials
	wrong bool     // true if at least one credential is invalid
}

// presented checks the credentials of a request. Each header accepts the secret of one
// role or the admin token.
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

// authorise returns the role of a request, or an empty role if the operation is public and
// no valid credential was sent. It returns an error if the request is not allowed.
// A valid credential is accepted regardless of earlier failures from the same address. A
// wrong credential is always counted, even if the operation needs none.
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

// unauthorized returns the same error for a missing and for a wrong credential.
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
		detail: "This address sent too many wrong secrets. Send a valid secret; it is accepted at any time.",
		header: http.Header{
			"Retry-After":      {seconds(wait)},
			"Ratelimit-Policy": {`"failures";q=20;w=60`},
			"Ratelimit":        {`"failures";r=0;t=` + seconds(wait)},
		},
	}
}
