package steaminv

import (
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"assay/internal/fault"
	"assay/internal/provider"
)

// The HTTP statuses with a particular meaning for Steam.
const (
	statusBadRequest   = 400
	statusUnauthorized = 401
	statusForbidden    = 403
	statusServerError  = 500
)

// retryUnavailable is the Retry-After where Steam sends none.
const retryUnavailable = 30 * time.Second

// What an inventory can be beside private, throttled and broken.
var (
	errHidden = fault.New(fault.Conflict, "inventory_hidden",
		"Steam reports assets but shows none: all are hidden or under trade protection. The stored inventory is unchanged.")
	errTooLarge = fault.New(fault.Unprocessable, "inventory_too_large", "The inventory has more than 50,000 assets, which is the maximum.")
)

// tooMany reports whether Steam refused a page because its count was too large: it
// sends 400 without a body.
func tooMany(err error) bool {
	e, ok := errors.AsType[*provider.Error](err)
	return ok && e.Status == statusBadRequest
}

// classify corrects the kind of Steam's errors. A 403 with an HTML page instead of
// null is a rate limit, not a private inventory.
func classify(e *provider.Error) {
	switch {
	case e.Status == statusForbidden && e.Page:
		e.Kind = provider.KindRateLimited
	case e.Status == statusServerError && !passing(e.Detail):
		e.Kind = provider.KindStatus
	}
}

var (
	// passingResults are the results of Steam (EResult) that may be others the next
	// time: Fail, Busy, Timeout, ServiceUnavailable, DuplicateRequest, RemoteCallFailed.
	passingResults = []int{2, 10, 16, 20, 29, 38}
	resultForms    = []*regexp.Regexp{
		regexp.MustCompile(`EResult (\d{1,9})\b`),
		regexp.MustCompile(`\((\d{1,9})\)`),
	}
	passingTexts = []string{"Timeout", "batched request timeout", "Failed to get", "Failed to send"}
)

// passing reports whether a 500 of Steam may be temporary. One without a reason may.
func passing(body string) bool {
	if !strings.Contains(body, `"error"`) {
		return true
	}
	for _, form := range resultForms {
		if found := form.FindStringSubmatch(body); found != nil {
			n, err := strconv.Atoi(found[1])
			return err == nil && slices.Contains(passingResults, n)
		}
	}
	return slices.ContainsFunc(passingTexts, func(text string) bool { return strings.Contains(body, text) })
}

// explain maps the error of a pull to a fault. A rate limit gets its Retry-After;
// the error of a context that ended is returned as it is.
func explain(err error) error {
	e, ok := errors.AsType[*provider.Error](err)
	if !ok {
		return err
	}
	switch {
	case e.Kind == provider.KindCancelled && e.Err != nil:
		return e.Err
	case e.Kind == provider.KindRateLimited, e.Kind == provider.KindBudget:
		return &Failure{e, throttled(e.RetryAfter)}
	case e.Status == statusForbidden, e.Status == statusUnauthorized:
		return &Failure{e, fault.New(fault.Conflict, "inventory_private",
			"The user's inventory on Steam is not public. The stored inventory is unchanged.")}
	}
	return &Failure{e, later("inventory_unavailable", e.RetryAfter, "Steam did not return a complete inventory. The stored inventory is unchanged.")}
}

func throttled(wait time.Duration) *fault.Error {
	return later("steam_throttled", wait, "Steam limits the request rate. The stored inventory is unchanged. Retry later.")
}

func later(code string, wait time.Duration, detail string) *fault.Error {
	f := fault.New(fault.Unavailable, code, "%s", detail)
	if f.RetryAfter = wait; wait <= 0 {
		f.RetryAfter = retryUnavailable
	}
	return f
}

// Failure is a fault with what caused it, which is for the log alone.
type Failure struct {
	Cause error
	Fault *fault.Error
}

// Error returns what was wrong, for the log.
func (f *Failure) Error() string { return f.Fault.Code + ": " + f.Cause.Error() }

// Unwrap returns fault and cause.
func (f *Failure) Unwrap() []error { return []error{f.Fault, f.Cause} }
