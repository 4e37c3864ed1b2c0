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

// author is recorded as the requester of runs started on the page, and in the audit log.
const author = "page"

// start starts a bulk run.
func (s *runPages) start(w http.ResponseWriter, r *http.Request, sess session) error {
	forced := r.PostFormValue("force") == "1"
	run, err := s.Engine.Start(r.Context(), forced, author)
	message := " is started."
	if forced {
		message = " has started and refreshes every item."
	}
	return s.showStarted(w, r, sess, run, message, err)
}

func (s *runPages) cancel(w http.ResponseWriter, r *http.Request, sess session) error {
	id, err := jobID(r.PathValue("id"))
	if err != nil {
		return err
	}
	return s.done(w, r, sess, flash{Good: true, Text: "Run " + text(id) + " is cancelled. Prices written so far are kept."}, s.Engine.Cancel(r.Context(), id))
}

func (s *runPages) retryFailed(w http.ResponseWriter, r *http.Request, sess session) error {
	id, err := jobID(r.PathValue("id"))
	if err != nil {
		return err
	}
	run, err := s.Engine.RetryFailed(r.Context(), id, author)
	return s.showStarted(w, r, sess, run, " retries the failed items of run "+text(id)+".", err)
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
	accept := func(ctx context.Context, provider string) error {
		return s.Engine.AcceptProvider(ctx, provider, market)
	}
	message := "The quarantine of %s has ended."
	if market != "" {
		message = "The quarantine of " + strings.ReplaceAll(market, "%", "%%") + " of %s has ended."
	}
	return s.onProvider(w, r, sess, accept, message)
}

// onProvider changes the provider in the path.
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

// done redirects to the page with the button and shows message there. If the action was
// rejected, it shows the reason instead. It returns all other errors.
func (s *pages) done(w http.ResponseWriter, r *http.Request, sess session, message flash, err error) error {
	if refused := fault.Of(err); refused != nil {
		message = flash{Text: sentence(refused.Error())}
	} else if err != nil {
		return err
	}
	s.sessions.put(sess.key, message)
	http.Redirect(w, r, localPath(r.PostFormValue("back")), http.StatusSeeOther)
	return nil
}

func text(id int64) string { return strconv.FormatInt(id, 10) }
