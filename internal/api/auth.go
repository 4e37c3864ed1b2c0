package api

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"assay/internal/access"
	"assay/internal/apikey"
	"assay/internal/fault"
)

// credentials is the result of checking the credentials of a request.
type credentials struct {
	roles []string    // roles of the valid credentials
	key   *apikey.Key // valid API key; nil: none
	wrong bool        // true if at least one credential is invalid
}

// presented checks the credentials of a request. Each header accepts the secret of one
// role or the admin token. Authorization also accepts an API key.
func (s *server) presented(r *http.Request) (c credentials, err error) {
	s.compare(&c, r.Header.Get("X-Market-Sync-Secret"), Market)
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return c, nil
	}
	token = strings.TrimSpace(token)
	if !strings.HasPrefix(token, apikey.Prefix) {
		s.compare(&c, token, Platform)
		return c, nil
	}
	if c.key, err = s.Keys.Find(r.Context(), token); err == nil && c.key == nil {
		s.compare(&c, token, Platform) // an operator may have set a token that looks like a key
	}
	return c, err
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

// keyActor is the prefix of the role of a request with an API key. The name of the key follows it.
const keyActor = "key:"

// authorise returns the role of a request, or an empty role if the operation is public and
// no valid credential was sent. It returns an error if the request is not allowed.
// A valid credential is accepted regardless of earlier failures from the same address. A
// wrong credential is always counted, even if the operation needs none.
func (s *server) authorise(op *operation, c *call) (role string, err error) {
	r := c.Request
	creds, err := s.presented(r)
	if err != nil {
		return "", err
	}
	for _, role := range creds.roles {
		if role == Admin || slices.Contains(op.access, role) {
			return role, nil
		}
	}
	if creds.key != nil && op.access != nil {
		c.apiKey = creds.key
		return keyActor + creds.key.Name, s.authoriseKey(op, c, creds.key)
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
		return "", noAccess()
	default:
		return "", unauthorized()
	}
}

// authoriseKey returns an error if an API key lacks the scope of an operation or has reached its
// limit. It sets the headers that report the limit.
func (s *server) authoriseKey(op *operation, c *call, key *apikey.Key) error {
	scope := op.scope()
	switch {
	case scope == "":
		return fault.New(fault.Forbidden, "forbidden", "API keys have no access to this route. The route requires the admin token.")
	case !key.Allows(scope):
		return fault.New(fault.Forbidden, "forbidden", "This API key has no access to this route. The route requires the scope %s.", scope)
	case key.PerMinute == 0:
		return nil
	}
	left, renews, ok := s.Keys.Spend(key)
	h := http.Header{
		"Ratelimit-Policy": {`"key";q=` + strconv.Itoa(key.PerMinute) + `;w=60`},
		"Ratelimit":        {`"key";r=` + strconv.Itoa(left) + `;t=` + seconds(renews)},
	}
	if ok {
		maps.Copy(c.w.Header(), h)
		return nil
	}
	h.Set("Retry-After", seconds(renews))
	return &refusal{
		status: http.StatusTooManyRequests, code: "rate_limited", header: h,
		detail: "This API key has reached its limit of requests per minute. Retry after the time in Retry-After.",
	}
}

// scope returns the scope that an API key needs for an operation. It is empty if no key has
// access.
func (op *operation) scope() string {
	if op.access == nil {
		return ""
	}
	var area string
	switch tag(op.path) {
	case "prices", "events":
		area = apikey.Prices
	case "users", "inventory":
		area = apikey.Inventory
	case "listings", "trades":
		area = apikey.Market
	case "wallet-ledger", "payment-fee-rules":
		area = apikey.Wallet
	case "market-prices", "server", "webhooks", "keys", "audit":
		area = apikey.Operate
	default:
		return ""
	}
	if op.writes() {
		return area + ":write"
	}
	return area + ":read"
}

// writes reports whether every request of an operation changes something. Some reads are POST requests
// because they need a body. A lookup only writes if it queues items.
func (op *operation) writes() bool {
	reads := strings.HasPrefix(op.path, "/api/prices/") || strings.HasSuffix(op.path, "/quote")
	return op.method != http.MethodGet && !reads
}

func noAccess() error {
	return fault.New(fault.Forbidden, "forbidden", "This credential has no access to this route.")
}

// unauthorized returns the same error for a missing and for a wrong credential.
func unauthorized() error {
	return &refusal{
		status: http.StatusUnauthorized, code: "unauthorized",
		detail: "This route needs a valid credential: the header x-market-sync-secret, or Authorization: Bearer with a token or an API key.",
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
