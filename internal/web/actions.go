package web

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"assay/internal/fault"
	"assay/internal/refresh"
)

// author is recorded as the requester of runs and in the audit log if the session belongs to no
// operator.
const author = "page"

// start starts a bulk run. A forced run needs a confirmation, because it sends more requests.
func (s *runPages) start(w http.ResponseWriter, r *http.Request, sess session) error {
	forced := r.PostFormValue("force") == "1"
	message := " is started."
	if forced {
		message = " has started and refreshes every item."
		status, err := s.Jobs.Status(r.Context())
		if err != nil {
			return err
		}
		items := items(status.Freshness.Fresh + status.Freshness.Stale + status.Freshness.Unknown)
		if ok, err := s.confirmed(w, r, sess, confirmation{
			Question: "Refresh all " + items + "?", Text: "The run includes items with recent quotes and items without sales. Budgets and limits still apply.",
			Button: "Refresh " + items, Danger: true,
		}); !ok {
			return err
		}
	}
	run, err := s.Engine.Start(r.Context(), forced, sess.author())
	return s.showStarted(w, r, sess, run, message, err)
}

// items returns a number of items as text.
func items(n int64) string {
	if n == 1 {
		return "1 item"
	}
	return formatCount(n) + " items"
}

func (s *runPages) cancel(w http.ResponseWriter, r *http.Request, sess session) error {
	id, err := jobID(r.PathValue("id"))
	if err != nil {
		return err
	}
	job, err := s.Jobs.Job(r.Context(), id)
	if err != nil {
		return s.done(w, r, sess, flash{}, err)
	}
	if ok, err := s.confirmed(w, r, sess, confirmation{
		Question: "Cancel run " + job.ID + "?", Text: "Prices written so far are kept. Not finished: " + items(job.PendingItems) + ".", Button: "Cancel run " + job.ID, Danger: true,
	}); !ok {
		return err
	}
	return s.done(w, r, sess, flash{Good: true, Text: "Run " + text(id) + " is cancelled. Prices written so far are kept."}, s.Engine.Cancel(r.Context(), id))
}

// retryFailed retries the items of a run that failed or were skipped because of a budget, pause or
// backoff. If the form names an error, it retries only the items that failed with this error.
func (s *runPages) retryFailed(w http.ResponseWriter, r *http.Request, sess session) error {
	id, err := jobID(r.PathValue("id"))
	if err != nil {
		return err
	}
	cause := r.PostFormValue("cause")
	n, err := s.retried(r.Context(), id, cause)
	if err != nil {
		return s.done(w, r, sess, flash{}, err)
	}
	detail := "A new run requests them again. Budgets and limits still apply."
	if cause != "" {
		detail = "A new run requests the items that failed with this error: " + sentence(cause)
	}
	if ok, err := s.confirmed(w, r, sess, confirmation{Question: "Retry " + items(n) + " of run " + text(id) + "?", Text: detail, Button: "Retry " + items(n)}); !ok {
		return err
	}
	run, err := s.Engine.RetryFailed(r.Context(), id, cause, sess.author())
	return s.showStarted(w, r, sess, run, " retries the failed items of run "+text(id)+".", err)
}

// retried returns how many items a retry includes.
func (s *runPages) retried(ctx context.Context, id int64, cause string) (n int64, err error) {
	if cause == "" {
		job, err := s.Jobs.Job(ctx, id)
		skipped := job.SkippedItems
		return job.FailedItems + skipped.Budget + skipped.Paused + skipped.Backoff, err
	}
	return s.Jobs.FailedWith(ctx, id, cause)
}

// showStarted shows the started run, or the run that prevented the start.
func (s *runPages) showStarted(w http.ResponseWriter, r *http.Request, sess session, run refresh.Started, message string, err error) error {
	id := text(run.JobID)
	switch {
	case err != nil:
	case run.ForcedIgnored:
		message = " is running and is not forced. No new run was started."
	case !run.Started:
		message = " is already running. No new run was started."
	}
	return s.done(w, r, sess, flash{Good: run.Started, Text: "Run " + id + message, Href: "/runs/" + id, Link: "Show it"}, err)
}

func (s *providerPages) pauseProvider(w http.ResponseWriter, r *http.Request, sess session) error {
	return s.onProvider(w, r, sess, s.Engine.PauseProvider, "%s is paused: it gets no requests until you resume it.")
}

func (s *providerPages) resumeProvider(w http.ResponseWriter, r *http.Request, sess session) error {
	return s.onProvider(w, r, sess, s.Engine.ResumeProvider, "%s gets requests again, starting with the next run.")
}

func (s *providerPages) acceptProvider(w http.ResponseWriter, r *http.Request, sess session) error {
	market := r.PostFormValue("market")
	if market == "" {
		n, err := s.quarantined(r.Context(), r.PathValue("provider"))
		if err != nil {
			return err
		}
		if ok, err := s.confirmed(w, r, sess, confirmation{
			Question: "Accept the responses of " + n + "?", Text: "Their quotes are used from the next estimate on, although they failed validation.", Button: "Accept " + n,
		}); !ok {
			return err
		}
	}
	accept := func(ctx context.Context, provider string) error {
		return s.Engine.AcceptProvider(ctx, provider, market)
	}
	message := "The quarantine of %s has ended."
	if market != "" {
		message = "The quarantine of " + strings.ReplaceAll(market, "%", "%%") + " of %s has ended."
	}
	return s.onProvider(w, r, sess, accept, message)
}

// quarantined returns the number of a provider's markets in quarantine as text.
func (s *providerPages) quarantined(ctx context.Context, name string) (string, error) {
	debug, err := s.Providers.ProviderDebug(ctx)
	if err != nil {
		return "", err
	}
	n := 0
	for i := range debug.Providers {
		for j := range debug.Providers[i].Markets {
			if debug.Providers[i].Provider == name && debug.Providers[i].Markets[j].Quarantine != nil {
				n++
			}
		}
	}
	if n == 1 {
		return "1 market", nil
	}
	return strconv.Itoa(n) + " markets", nil
}

// onProvider calls do with the provider in the path and shows the message.
func (s *providerPages) onProvider(w http.ResponseWriter, r *http.Request, sess session, do func(context.Context, string) error, message string) error {
	provider := r.PathValue("provider")
	return s.done(w, r, sess, flash{Good: true, Text: fmt.Sprintf(message, provider)}, do(r.Context(), provider))
}

// acceptItem accepts a held price.
func (s *itemPages) acceptItem(w http.ResponseWriter, r *http.Request, sess session) error {
	key, err := keyOf(r.URL.Query())
	if err != nil {
		return err
	}
	return s.done(w, r, sess, flash{Good: true, Text: "The new price is accepted."}, s.Engine.AcceptItem(r.Context(), key))
}

// done redirects to the page that sent the form and shows message there. If err is a fault, the page
// shows the fault instead. done returns all other errors.
func (s *pages) done(w http.ResponseWriter, r *http.Request, sess session, message flash, err error) error {
	if refused := fault.Of(err); refused != nil {
		message = flash{Text: faultText(refused)}
	} else if err != nil {
		return err
	}
	s.setFlash(w, r, sess, message)
	http.Redirect(w, r, localPath(r.PostFormValue("back")), http.StatusSeeOther)
	return nil
}

func text(id int64) string { return strconv.FormatInt(id, 10) }
