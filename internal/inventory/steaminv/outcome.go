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

// HTTP statuses with a specific meaning in Steam's responses.
const (
	statusBadRequest   = 400
	statusUnauthorized = 401
	statusForbidden    = 403
	statusServerError  = 500
)

// retryUnavailable is the default Retry-After. Steam does not send the header.
const retryUnavailable = 30 * time.Second

// Faults of inventories that Steam returns without an error.
var (
	errHidden = fault.New(fault.Conflict, "inventory_hidden",
		"Steam reports assets but shows none: all are hidden or under trade protection. The stored inventory is unchanged.")
	errTooLarge = fault.New(fault.Unprocessable, "inventory_too_large", "The inventory has more than 50,000 assets, which is the maximum.")
)

// tooMany reports whether Steam refused the requested number of assets per page, which it
// does with status 400.
func tooMany(err error) bool {
	e, ok := errors.AsType[*provider.Error](err)
	return ok && e.Status == statusBadRequest
}

// classify sets the kind of errors that are specific to Steam. Status 403 with an HTML page
// is a rate limit. With the body null, it means a private inventory.
func classify(e *provider.Error) {
	switch {
	case e.Status == statusForbidden && e.Page:
		e.Kind = provider.KindRateLimited
	case e.Status == statusServerError && !temporary(e.Detail):
		e.Kind = provider.KindStatus
	}
}

var (
	// temporaryResults are Steam's results (EResult) for temporary errors: Fail, Busy,
	// Timeout, ServiceUnavailable, DuplicateRequest, RemoteCallFailed.
	temporaryResults = []int{2, 10, 16, 20, 29, 38}
	resultPatterns   = []*regexp.Regexp{
		regexp.MustCompile(`EResult (\d{1,9})\b`),
		regexp.MustCompile(`\((\d{1,9})\)`),
	}
	temporaryTexts = []string{"Timeout", "batched request timeout", "Failed to get", "Failed to send"}
)

// temporary reports whether a response with status 500 is worth a retry. It returns true
// for a response without a reason.
func temporary(body string) bool {
	if !strings.Contains(body, `"error"`) {
		return true
	}
	for _, pattern := range resultPatterns {
		if found := pattern.FindStringSubmatch(body); found != nil {
			n, err := strconv.Atoi(found[1])
			return err == nil && slices.Contains(temporaryResults, n)
		}
	}
	return slices.ContainsFunc(temporaryTexts, func(text string) bool { return strings.Contains(body, text) })
}

// explain maps the error of a pull to a fault. The fault of a rate limit has its Retry-After.
// It returns the error of an ended context unchanged.
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

// Failure is a fault with its cause. The cause is only for the log, not for API responses.
type Failure struct {
	Cause error
	Fault *fault.Error
}

// Error returns the fault's code and the cause.
func (f *Failure) Error() string { return f.Fault.Code + ": " + f.Cause.Error() }

// Unwrap returns the fault and the cause.
func (f *Failure) Unwrap() []error { return []error{f.Fault, f.Cause} }
