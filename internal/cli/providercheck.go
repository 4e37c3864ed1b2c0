package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"time"

	"assay/internal/config"
	"assay/internal/db"
	"assay/internal/provider"
	"assay/internal/provider/allowance"
	"assay/internal/view"
)

// providerCheck is the result of one check.
type providerCheck struct {
	Check  string `json:"check"` // name from providerTested.check
	State  string `json:"state"` // ok, warning, failed or unknown
	Detail string `json:"detail"`
}

// The states of a check.
const (
	checkOK      = "ok"
	checkWarning = "warning"
	checkFailed  = "failed"
	checkUnknown = "unknown" // the request did not reach this check
)

// maxSkew is the largest difference between the local clock and the provider's clock without a
// warning.
const maxSkew = 5 * time.Minute

// check adds the results of all checks, in the order of a request: name, address, connection,
// tls, status, key, quota, clock, body, cost.
func (t *providerTested) check(b budgetOf) {
	t.Checks = []providerCheck{}
	if t.remote {
		t.checkConnection()
		t.checkResponse()
		t.checkQuota()
		t.checkClock()
	}
	t.checkBody()
	t.checkCost(b)
}

func (t *providerTested) add(check, state, format string, args ...any) {
	t.Checks = append(t.Checks, providerCheck{Check: check, State: state, Detail: printable(fmt.Sprintf(format, args...))})
}

// failure returns the error of the call. It never returns nil.
func (t *providerTested) failure() *provider.Error {
	if e, ok := errors.AsType[*provider.Error](t.err); ok {
		return e
	}
	return &provider.Error{}
}

// last returns the last sent request, or the zero value if none was sent.
func (t *providerTested) last() provider.Sent {
	if len(t.state.Requests) == 0 {
		return provider.Sent{}
	}
	return t.state.Requests[0]
}

// checkConnection adds the results of the connection steps: DNS, address guard, TCP and TLS.
func (t *providerTested) checkConnection() {
	e, sent := t.failure(), t.last()
	tls := "valid certificate and handshake"
	if !sent.TLS {
		tls = "not used: the address starts with http://"
	}
	steps := []struct {
		step                  provider.Step
		check, works, trouble string
	}{
		{provider.StepName, "name", "found", "DNS lookup of the host failed: "},
		{provider.StepAddress, "address", "allowed", "the address guard rejects it: "},
		{provider.StepConnect, "connection", "open", "no connection: "},
		{provider.StepTLS, "tls", tls, "no secure connection: "},
	}
	reached := checkOK
	if sent.Status == 0 && e.Step == "" {
		reached = checkUnknown
	}
	for _, s := range steps {
		switch {
		case s.step == e.Step:
			t.add(s.check, checkFailed, "%s%s", s.trouble, e.Detail)
			reached = checkUnknown
		case reached == checkUnknown:
			t.add(s.check, checkUnknown, "not known")
		default:
			t.add(s.check, checkOK, "%s", s.works)
		}
	}
}

// checkResponse adds the checks of the status and the key.
func (t *providerTested) checkResponse() {
	e, status := t.failure(), t.last().Status
	switch {
	case status == 0:
		t.add("status", checkUnknown, "no response")
		t.add("key", checkUnknown, "not known")
		return
	case status == http.StatusOK:
		t.add("status", checkOK, "200")
		t.add("key", checkOK, "accepted, or not required")
		return
	case status == http.StatusForbidden && e.Page:
		t.add("status", checkFailed, "403 with an HTML page: a bot check blocks your address or client, even with a key")
		t.add("key", checkUnknown, "not known")
		return
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		t.add("status", checkFailed, "%d %s", status, http.StatusText(status))
		t.add("key", checkFailed, "missing, wrong, revoked, or without permission for this request")
		return
	case status == http.StatusNotAcceptable:
		t.add("status", checkFailed, "406: the provider rejects the request headers, such as the compression")
	case status == http.StatusTooManyRequests:
		t.add("status", checkFailed, "429: rate limited; retry after %s", e.RetryAfter.Round(time.Second))
	case status >= http.StatusInternalServerError:
		t.add("status", checkFailed, "%d %s: an internal error; retry later", status, http.StatusText(status))
	default:
		t.add("status", checkFailed, "%d %s", status, http.StatusText(status))
	}
	t.add("key", checkUnknown, "not known")
}

// checkQuota adds the reported quota, or the reason why no request was sent.
func (t *providerTested) checkQuota() {
	e, reported := t.failure(), t.state.Budget.Reported
	switch {
	case e.Status == 0 && e.Deferred():
		t.add("quota", checkFailed, "%s", e.Detail)
	case t.last().Status == 0:
		t.add("quota", checkUnknown, "not known")
	case reported == nil:
		t.add("quota", checkUnknown, "the response does not report it")
	default:
		state, of := checkOK, ""
		if reported.Left == 0 {
			state = checkWarning
		}
		if reported.Limit > 0 {
			of = " of " + count(reported.Limit)
		}
		t.add("quota", state, "%s%s requests are left until %s", count(reported.Left), of, reported.ResetsAt.UTC().Format(time.RFC3339))
	}
}

// checkClock compares the local clock with the Date header of the response.
func (t *providerTested) checkClock() {
	sent := t.last()
	if sent.Status == 0 {
		t.add("clock", checkUnknown, "not known")
		return
	}
	if sent.Date.IsZero() {
		t.add("clock", checkUnknown, "the response has no Date header")
		return
	}
	skew := sent.Time.Sub(sent.Date).Round(time.Second)
	switch {
	case skew.Abs() <= maxSkew:
		t.add("clock", checkOK, "the local clock and the provider's clock agree")
	case skew > 0:
		t.add("clock", checkWarning, "the local clock is %s ahead of the provider's clock: one of them is wrong", skew)
	default:
		t.add("clock", checkWarning, "the local clock is %s behind the provider's clock: one of them is wrong", -skew)
	}
}

func (t *providerTested) checkBody() {
	e, status := t.failure(), t.last().Status
	switch {
	case t.OK && len(t.Quotes) == 0:
		t.add("body", checkWarning, "valid, but without prices")
	case t.OK:
		t.add("body", checkOK, "prices in the expected format")
	case t.remote && status != http.StatusOK:
		t.add("body", checkUnknown, "not known")
	case e.Detail != "":
		t.add("body", checkFailed, "%s", e.Detail)
	default:
		t.add("body", checkFailed, "%s", t.Error)
	}
}

func (t *providerTested) checkCost(b budgetOf) {
	t.Counted = t.Requests > 0 && b.store != nil
	switch {
	case t.Requests == 0:
		t.add("cost", checkOK, "no request was sent")
	case t.Counted:
		t.add("cost", checkOK, "%s, counted in the provider's budget", requests(t.Requests))
	default:
		t.add("cost", checkWarning, "%s, not counted in the provider's budget: %s", requests(t.Requests), b.why)
	}
}

func writeChecks(w io.Writer, checks []providerCheck) {
	var rows [][]string
	for _, c := range checks {
		rows = append(rows, []string{"  " + c.Check, c.State, c.Detail})
	}
	table(w, rows)
}

// budgetOf counts test requests in the database. If it cannot count them, why is the reason. If a
// running server has locked the database, budgetOf respects the budget and the retry-after that
// this server reports.
type budgetOf struct {
	store  *db.DB
	why    string
	server *view.ProviderDebug // nil: no server runs
	now    func() time.Time
}

// openBudget opens the database, which other processes may use. It does not create or update
// the database.
func openBudget(ctx context.Context, cfg *config.Config, provider string, now func() time.Time) budgetOf {
	if cfg.Database.Engine == config.SQLite {
		if _, err := os.Stat(cfg.Database.Path); err != nil {
			return budgetOf{why: "the database does not exist yet"}
		}
	}
	s, err := db.Open(ctx, db.Options{
		Path: cfg.Database.Path, URL: cfg.Database.URL.Reveal(), Direct: cfg.Database.Direct.Reveal(),
		KeepSchema: true, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		b := budgetOf{why: "the database cannot be opened, or a server has locked it", now: now}
		b.server = clientOf(cfg, baseURL(cfg.ListenAddr)).debugOf(ctx, provider)
		return b
	}
	return budgetOf{store: s}
}

// allowance returns the value for app.ProviderOptions, or nil if requests are not counted.
func (b budgetOf) allowance() func(string, provider.Host) provider.Allowance {
	if b.server != nil {
		return func(_ string, host provider.Host) provider.Allowance { return heldHost(b.server, host.Key, b.now) }
	}
	if b.store == nil {
		return nil
	}
	return func(p string, host provider.Host) provider.Allowance {
		return allowance.New(b.store, p, host)
	}
}

func (b budgetOf) close() error {
	if b.store == nil {
		return nil
	}
	return b.store.Close()
}
